"""Kernel values between samples and support vectors, in blocks of bounded size, on several threads.

Prediction never forms the matrix of all samples and all support vectors: each thread holds one block of at most
`BLOCK_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline, inheriting_deadline
from maxmargin.kernels import Kernel, NativeKernel, Points
from maxmargin.kernels.kernel_columns import KernelColumns, kernel_product, pack_columns

#: Maximum size of the block of kernel values of one thread, in bytes.
BLOCK_BYTES = 4 * 2**20

#: Minimum number of kernel values for several threads: fewer are computed before a second thread starts.
MIN_VALUES_FOR_THREADS = 2**18


class KernelBlocks(Protocol):
    """Rows of kernel values: one per sample, one column per support vector."""

    def __len__(self) -> int: ...

    def block(self, rows: slice) -> Floats:
        """Return the kernel values of some samples and every support vector."""
        ...

    def combine(self, weights: Floats, threads: int) -> Floats:
        """Return Σ weights[s] k(support vector s, sample) for every sample."""
        ...


@dataclass(frozen=True)
class ComputedKernelBlocks:
    """Kernel values computed from samples and support vectors."""

    kernel: Kernel
    samples: Points
    support: Points

    def __len__(self) -> int:
        return len(self.samples)

    def block(self, rows: slice) -> Floats:
        if self._columns is None:
            return self.kernel.evaluate(self.samples.take(rows), self.support)
        samples = self.samples.take(rows)
        values = np.empty((len(samples), len(self.support)))
        self._columns.fill(samples, values, np.arange(len(samples)))
        return values

    def combine(self, weights: Floats, threads: int) -> Floats:
        if not isinstance(self.kernel, NativeKernel):
            return map_blocks(self, len(weights), lambda block: (block @ weights)[:, None], 1, threads).ravel()
        return kernel_product(self.kernel.formula, self.samples, self.support, weights, threads)

    @cached_property
    def _columns(self) -> KernelColumns | None:
        """The support vectors, packed once for all blocks."""
        if not isinstance(self.kernel, NativeKernel):
            return None
        return pack_columns(self.kernel.formula, self.support, np.float64, 1)


@dataclass(frozen=True)
class PrecomputedKernelBlocks:
    """Kernel values given by the user, of samples and all training rows, of which the support vectors are used."""

    values: Any
    support: Indices

    def __len__(self) -> int:
        return len(self.values)

    def block(self, rows: slice) -> Floats:
        return np.ascontiguousarray(self.values[rows][:, self.support], dtype=np.float64)

    def combine(self, weights: Floats, threads: int) -> Floats:
        return map_blocks(self, len(weights), lambda block: (block @ weights)[:, None], 1, threads).ravel()


def map_blocks(
    blocks: KernelBlocks, width: int, combine: Callable[[Floats], Floats], outputs: int, threads: int
) -> Floats:
    """Return combine(block) of all blocks of rows, stacked vertically."""
    count = len(blocks)
    out = np.empty((count, outputs))
    step = max(1, BLOCK_BYTES // (8 * max(1, width)))
    if count * width < MIN_VALUES_FOR_THREADS:
        threads = 1
    if threads > 1:  # at least two blocks per thread
        step = max(1, min(step, -(-count // (2 * threads))))

    def fill(start: int) -> None:
        check_deadline()
        rows = slice(start, min(count, start + step))
        out[rows] = combine(blocks.block(rows))

    starts = range(0, count, step)
    if threads > 1 and len(starts) > 1:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(inheriting_deadline(fill), starts))
    else:
        for start in starts:
            fill(start)
    return out
