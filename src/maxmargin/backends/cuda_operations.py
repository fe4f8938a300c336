"""Operations over all variables on a GPU, by compiled kernels: few launches, and one transfer of some numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.backends.array_operations import ArrayOperations, DeviceVariables, Part, Violations, middles_of
from maxmargin.cuda.device import cupy
from maxmargin.cuda.modules import kernel

#: Threads of a block, and of one that scans; bins and kinds of the histograms in `cuda/sources/variables.cu`.
THREADS, SCAN_THREADS, BINS, KINDS = 256, 1024, 32768, 3

#: Blocks that reduce all variables.
REDUCING_BLOCKS = 256


class _Found(NamedTuple):
    codes: Any
    bins: Any
    counts: tuple[int, int, int]


class CudaOperations(ArrayOperations):
    """Operations on the arrays of one problem on the current GPU."""

    def __init__(self, groups: int, size: int) -> None:
        xp = cupy()
        super().__init__(xp, groups)
        self.size = size
        self._blocks = min(REDUCING_BLOCKS, _blocks(size))
        self._partial, self._ends = xp.empty((self._blocks, 8)), xp.empty(9)

    def find_violations(self, variables: DeviceVariables, dual: Any, gradient: Any) -> Violations:
        """Return the KKT violations at a point."""
        xp, size = self.xp, self.size
        point = (
            dual, gradient, variables.lower, variables.upper, _pointer(variables.kink), variables.group, np.int32(size)
        )  # fmt: skip
        self._function("ends", variables)((self._blocks,), (THREADS,), (*point, self._partial))
        self._function("combine_ends", variables)((1,), (32,), (self._partial, np.int32(self._blocks), self._ends))
        codes, bins = xp.empty(size, dtype=xp.uint32), xp.zeros((KINDS, BINS), dtype=xp.uint32)
        self._function("count_bins", variables)((_blocks(size),), (THREADS,), (*point, self._ends, codes, bins))
        counts = bins.sum(axis=1, dtype=xp.float64)
        numbers = xp.concatenate([self._ends, counts]).get()
        kinds = int(numbers[9]), int(numbers[10]), int(numbers[11])
        middles = middles_of(numbers[: self.groups], -numbers[3 : 3 + self.groups])
        return Violations(float(numbers[8]), float(numbers[6]), kinds[0], middles, _Found(codes, bins, kinds))

    def select(self, violations: Violations, size: int) -> Any:
        """Return a working set of at most `size` variables, in order."""
        xp, found = self.xp, violations.private
        free, growing, falling = found.counts
        take_free = max(0, min(free, size // 2, size - 2))  # the most violating pair must fit
        take_growing = min(growing, (size - take_free) // 2)
        take_falling = min(falling, size - take_free - take_growing)
        take_growing = min(growing, size - take_free - take_falling)
        take_free = min(free, size - take_growing - take_falling)
        wanted = xp.asarray(np.array([take_free, take_growing, take_falling], dtype=np.int32))
        limits = xp.empty((KINDS, 3), dtype=xp.int32)
        blocks = -(-self.size // SCAN_THREADS)
        places = xp.empty((KINDS + 1, blocks), dtype=xp.int32)
        out = xp.empty(take_free + take_growing + take_falling, dtype=xp.int64)
        size32 = np.int32(self.size)
        self._function("find_bins")((KINDS,), (SCAN_THREADS,), (found.bins, wanted, limits))
        self._function("count_places")((blocks,), (SCAN_THREADS,), (found.codes, size32, limits, places))
        self._function("scan_places")((KINDS + 1,), (SCAN_THREADS,), (places, np.int32(blocks)))
        self._function("take_places")((blocks,), (SCAN_THREADS,), (found.codes, size32, limits, places, out))
        return out

    def gather(self, variables: DeviceVariables, dual: Any, gradient: Any, working_set: Any) -> Part:
        """Return the arrays of a working set."""
        xp, count, kink = self.xp, len(working_set), variables.kink
        out, group = xp.empty((7, count)), xp.empty(count, dtype=xp.int8)
        arguments = (
            working_set, np.int32(count), dual, gradient, variables.lower, variables.upper, variables.ridge,
            variables.curvature, _pointer(kink), variables.group, out, group,
        )  # fmt: skip
        self._function("gather")((_blocks(count),), (THREADS,), arguments)
        arrays = DeviceVariables(None, out[2], out[3], out[4], out[5], group, None if kink is None else out[6])
        return Part(out[0], out[1], arrays)

    def changes(self, working_set: Any, start: Any, dual: Any, count: int) -> tuple[Any, Any]:
        """Return the `count` variables of a working set that differ from the start, and their changes."""
        at, change = self.xp.empty(count, dtype=self.xp.int64), self.xp.empty(count)
        arguments = dual, start, working_set, np.int32(len(working_set)), at, change
        self._function("take_changes")((1,), (SCAN_THREADS,), arguments)
        return at, change

    def updated(
        self,
        variables: DeviceVariables,
        point: tuple[Any, Any],
        part: tuple[Any, Any],
        changes: tuple[Any, Any],
        parts: Any,
    ) -> tuple[Any, Any]:
        """Return dual vector and gradient after the changes of a working set."""
        (working_set, part_dual), (at, change) = part, changes
        dual, gradient = point[0].copy(), point[1]
        after = self.xp.empty(self.size)
        arguments: tuple[Any, ...] = gradient, parts, np.int32(len(parts)), np.int32(self.size), after
        self._function("subtract_parts")((_blocks(self.size),), (THREADS,), arguments)
        arguments = (
            part_dual, working_set, np.int32(len(working_set)), at, change, np.int32(len(at)), variables.ridge, dual,
            after,
        )  # fmt: skip
        self._function("apply_changes")((_blocks(len(working_set)),), (THREADS,), arguments)
        return dual, after

    def _function(self, name: str, variables: DeviceVariables | None = None) -> Any:
        kinks = variables is not None and variables.kink is not None
        return kernel("variables", name, KINKS=int(kinks))


def _blocks(count: int) -> int:
    return -(-count // THREADS)


def _pointer(array: Any) -> Any:
    """Return a missing array as a null pointer."""
    return np.uint64(0) if array is None else array
