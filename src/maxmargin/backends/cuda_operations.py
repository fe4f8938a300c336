"""Operations over all variables on a GPU, by compiled kernels: few launches, and no copies to the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.backends.array_operations import ArrayOperations, DeviceVariables, Part, Violations, middles_of
from maxmargin.cuda.device import cupy
from maxmargin.cuda.modules import kernel
from maxmargin.cuda.report import Report

#: Threads of a block, and of one that scans; bins and kinds of the histograms in `cuda/sources/variables.cu`.
THREADS, SCAN_THREADS, BINS, KINDS = 256, 1024, 32768, 3

#: Blocks that reduce all variables, and numbers of each; numbers of all: slopes, sum, free variables, violation.
REDUCING_BLOCKS, PARTIAL_ENDS, ENDS = 256, 8, 9

#: Arrays of a working set: dual vector, gradient, bounds, ridge, curvature, dual vector at the start, kink.
GATHERED = 8


class CudaOperations(ArrayOperations):
    """Operations on the arrays of one problem on the current GPU."""

    def __init__(self, groups: int, size: int) -> None:
        xp = cupy()
        super().__init__(xp, groups)
        self.size = size
        self._reducing_blocks, self._scan_blocks = min(REDUCING_BLOCKS, _blocks(size)), -(-size // SCAN_THREADS)
        self._partial, self._ends = xp.empty((self._reducing_blocks, PARTIAL_ENDS)), xp.empty(ENDS)
        self._codes, self._bins = xp.empty(size, dtype=xp.uint32), xp.empty((KINDS, BINS), dtype=xp.uint32)
        self._counts, self._arrived = xp.empty(KINDS, dtype=xp.uint32), xp.zeros(1, dtype=xp.uint32)
        self._limits = xp.empty((KINDS, 3), dtype=xp.int32)
        self._places = xp.empty((KINDS + 1, self._scan_blocks), dtype=xp.int32)
        self._report = Report(ENDS + KINDS)

    def find_violations(self, variables: DeviceVariables, dual: Any, gradient: Any) -> Violations:
        """Return the KKT violations at a point; their selection is valid until the next call of any operation."""
        point, kinks = self._find_ends(variables, dual, gradient)
        arguments = (
            *point, self._ends, self._codes, self._bins, self._counts, self._arrived, self._report.pointer
        )  # fmt: skip
        _function("count_bins", kinks)((_blocks(self.size),), (THREADS,), arguments)
        numbers = self._report.read().tolist()
        counts = tuple(int(count) for count in numbers[ENDS:])
        middles = middles_of(numbers[: self.groups], [-down for down in numbers[3 : 3 + self.groups]])
        return Violations(numbers[8], numbers[6], counts[0], middles, counts)

    def _find_ends(self, variables: DeviceVariables, dual: Any, gradient: Any) -> tuple[tuple[Any, ...], int]:
        """Find the ends of the violation; return arguments of other functions of a point, and whether it has kinks."""
        point = (
            dual, gradient, variables.lower, variables.upper, _pointer(variables.kink), variables.group,
            np.int32(self.size),
        )  # fmt: skip
        kinks = int(variables.kink is not None)
        arguments = *point, self._partial, self._ends, self._bins, self._counts, self._arrived
        _function("ends", kinks)((self._reducing_blocks,), (THREADS,), arguments)
        return point, kinks

    def sample(self, variables: DeviceVariables, dual: Any, gradient: Any, at_each_end: int, every: int) -> Any:
        """Return the variables nearest to each end of the violation, and one in so many of all; some twice."""
        xp = self.xp
        point, kinks = self._find_ends(variables, dual, gradient)
        arguments = *point, self._ends, self._codes, self._bins
        _function("count_distances", kinks)((_blocks(self.size),), (THREADS,), arguments)
        ends = xp.zeros(2 * at_each_end, dtype=xp.int32)  # where there are less, the first variable
        self._take((0, at_each_end, at_each_end), ends)
        return xp.concatenate([ends, xp.arange(0, self.size, every, dtype=xp.int32)])

    def errors(
        self, variables: DeviceVariables, point: tuple[Any, Any], sample: Any, product: Any, factor: float
    ) -> tuple[float, float]:
        """Return the largest error of the gradient in a sample, and the largest that matters."""
        all_of_point, kinks = self._find_ends(variables, *point)
        arguments = (
            *all_of_point, self._ends, variables.linear, variables.ridge, sample, np.int32(len(sample)), product,
            np.float64(factor), self._report.pointer,
        )  # fmt: skip
        _function("largest_errors", kinks)((1,), (SCAN_THREADS,), arguments)
        largest, counted, *_ = self._report.read().tolist()
        return largest, counted

    def select(self, violations: Violations, size: int) -> Any:
        """Return a working set of at most `size` variables, in order."""
        free, growing, falling = violations.private
        take_free = max(0, min(free, size // 2, size - 2))  # the most violating pair must fit
        take_growing = min(growing, (size - take_free) // 2)
        take_falling = min(falling, size - take_free - take_growing)
        take_growing = min(growing, size - take_free - take_falling)
        take_free = min(free, size - take_growing - take_falling)
        out = self.xp.empty(take_free + take_growing + take_falling, dtype=self.xp.int32)
        self._take((take_free, take_growing, take_falling), out)
        return out

    def _take(self, wanted: tuple[int, int, int], out: Any) -> None:
        """Take so many variables of each kind, from the largest bins."""
        blocks, threads = (self._scan_blocks,), (SCAN_THREADS,)
        codes = self._codes, np.int32(self.size), self._limits, self._places
        _function("find_bins")((KINDS,), threads, (self._bins, *(np.int32(count) for count in wanted), self._limits))
        _function("count_places")(blocks, threads, codes)
        _function("take_places")(blocks, threads, (*codes, out))

    def gather(self, variables: DeviceVariables, dual: Any, gradient: Any, working_set: Any) -> Part:
        """Return the arrays of a working set."""
        xp, count, kink = self.xp, len(working_set), variables.kink
        out, group = xp.empty((GATHERED, count)), xp.empty(count, dtype=xp.int8)
        arguments = (
            working_set, np.int32(count), dual, gradient, variables.lower, variables.upper, variables.ridge,
            variables.curvature, _pointer(kink), variables.group, out, group,
        )  # fmt: skip
        _function("gather")((_blocks(count),), (THREADS,), arguments)
        lower, upper, ridge, curvature = out[2], out[3], out[4], out[5]
        arrays = DeviceVariables(None, lower, upper, ridge, curvature, group, None if kink is None else out[7])
        return Part(out[0], out[1], out[6], arrays)

    def changes(self, working_set: Any, start: Any, dual: Any, count: int) -> tuple[Any, Any]:
        """Return the `count` variables of a working set that differ from the start, and their changes."""
        at, change = self.xp.empty(count, dtype=self.xp.int32), self.xp.empty(count)
        arguments = dual, start, working_set, np.int32(len(working_set)), at, change
        _function("take_changes")((1,), (SCAN_THREADS,), arguments)
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
        dual, gradient = self.xp.empty((2, self.size))
        arguments: tuple[Any, ...] = *point, parts, np.int32(len(parts)), np.int32(self.size), dual, gradient
        _function("subtract_parts")((_blocks(self.size),), (THREADS,), arguments)
        arguments = (
            part_dual, working_set, np.int32(len(working_set)), at, change, np.int32(len(at)), variables.ridge, dual,
            gradient,
        )  # fmt: skip
        _function("apply_changes")((_blocks(len(working_set)),), (THREADS,), arguments)
        return dual, gradient


def _function(name: str, kinks: int = 0) -> Any:
    return kernel("variables", name, KINKS=kinks)


def _blocks(count: int) -> int:
    return -(-count // THREADS)


def _pointer(array: Any) -> Any:
    """Return a missing array as a null pointer."""
    return np.uint64(0) if array is None else array
