"""Pair steps on the square block of a working set, by one block of threads or a cluster of blocks."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from maxmargin.cuda.device import cupy
from maxmargin.cuda.modules import kernel
from maxmargin.cuda.report import Report
from maxmargin.precision import BOUND_TOLERANCE

#: Compute capability from which blocks of a cluster read and write each other's shared memory: Hopper.
CLUSTER_CAPABILITY = 90

#: Blocks of a cluster, threads of each, and the size of working sets from which on a cluster takes less time for a step
#: than one block, whose barriers are cheaper.
CLUSTER_BLOCKS, CLUSTER_THREADS, MIN_CLUSTER_SIZE = 8, 256, 1025

#: The most threads of a single block, and the variables that each has at least: fewer threads have cheaper barriers.
MAX_THREADS, MIN_VARIABLES_PER_THREAD = 1024, 2

#: The most variables of a thread: beyond that they do not fit into its registers by far.
MAX_VARIABLES_PER_THREAD = 16

#: Where the report of a launch has the middle of each of two groups, and after the results two counts of each block.
MIDDLES, COUNTS = 4, 6


class DeviceBox(NamedTuple):
    """Bounds, kinks, groups, ridge and curvature of some variables, on the GPU."""

    lower: Any
    upper: Any
    kink: Any
    group: Any
    ridge: Any
    curvature: Any


class PairResult(NamedTuple):
    """What a call of `pair_steps` returns; `changed` and `free` are numbers of variables."""

    violation: float
    gain: float
    steps: int
    reason: int
    changed: int
    free: int
    middles: tuple[float, ...]


class Shape(NamedTuple):
    """How a working set is divided: blocks of the cluster, threads of each block, variables of each thread."""

    blocks: int
    threads: int
    variables: int

    @classmethod
    def of(cls, size: int, clusters: bool) -> Shape:
        """Return the shape for so many variables, with or without clusters."""
        if clusters and size >= MIN_CLUSTER_SIZE:
            return cls(CLUSTER_BLOCKS, CLUSTER_THREADS, -(-size // (CLUSTER_BLOCKS * CLUSTER_THREADS)))
        threads = 32
        while threads < MAX_THREADS and threads * MIN_VARIABLES_PER_THREAD < size:
            threads *= 2
        return cls(1, threads, -(-size // threads))


@lru_cache(maxsize=16)
def has_clusters(device: int) -> bool:
    """Return whether a GPU runs clusters of blocks."""
    return int(cupy().cuda.Device(device).compute_capability) >= CLUSTER_CAPABILITY


def max_variables() -> int:
    """Return the most variables of a working set."""
    return MAX_THREADS * MAX_VARIABLES_PER_THREAD


def step_report() -> Report:
    """Return memory for the results of calls of `pair_steps`, one after the other."""
    return Report(COUNTS + 2 * CLUSTER_BLOCKS)


def pair_steps(
    matrix: Any,
    point: tuple[Any, Any, Any],
    box: DeviceBox,
    middles: tuple[float, ...],
    singles: bool,
    ridged: bool,
    tolerance: float,
    max_steps: int,
    report: Report,
    clusters: bool | None = None,
) -> PairResult:
    """Take pair steps until the violation is within the tolerance.

    `point` are gradient and dual vector, which are changed, and a dual vector to count changes from. `middles` are
    those of the gradient interval of each group, at first of all variables, then of the call before. `clusters`
    chooses between a cluster of blocks and one block; by default a cluster where the GPU has them.
    """
    xp, (gradient, dual, start), groups = cupy(), point, len(middles)
    size = len(dual)
    shape = Shape.of(size, has_clusters(xp.cuda.runtime.getDevice()) if clusters is None else clusters)
    compiled = kernel(
        "pair_steps", "pair_steps", VALUE="float" if matrix.dtype == np.float32 else "double", BLOCKS=shape.blocks,
        THREADS=shape.threads, VARIABLES=shape.variables, GROUPS=max(1, groups), SINGLES=int(singles),
        KINKS=int(box.kink is not None), RIDGE=int(ridged), BOUND_TOLERANCE=BOUND_TOLERANCE,
    )  # fmt: skip
    first, second = (*middles, 0.0, 0.0)[:2]
    arguments = (
        matrix, np.int32(size), gradient, dual, start, box.lower, box.upper,
        np.uint64(0) if box.kink is None else box.kink, box.group, box.ridge, box.curvature, np.float64(tolerance),
        np.int32(max_steps), np.float64(first), np.float64(second), report.pointer,
    )  # fmt: skip
    compiled((shape.blocks,), (shape.threads,), arguments)
    numbers = report.read().tolist()
    violation, gain, steps, reason = numbers[:MIDDLES]
    counts = numbers[COUNTS : COUNTS + 2 * shape.blocks]
    changed, free = int(sum(counts[0::2])), int(sum(counts[1::2]))
    after = tuple(numbers[MIDDLES : MIDDLES + groups])
    return PairResult(violation, gain, int(steps), int(reason), changed, free, after)
