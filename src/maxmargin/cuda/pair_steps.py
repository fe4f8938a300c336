"""Pair steps on the square block of a working set, by one block of threads or a cluster of blocks.

On large working sets they are joint steps: many pair steps between two exchanges of all multiprocessors.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from maxmargin.cuda.device import cupy
from maxmargin.cuda.modules import kernel, launch
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

#: From so many variables on, 32 warps then, steps are joint, if there is one group, no variable without one, values
#: are in single precision, and the tolerance is not below this, where slopes in float32 may not suffice.
MIN_JOINT_SIZE, MIN_JOINT_TOLERANCE = MIN_CLUSTER_SIZE, 1e-6

#: A joint step ends when the violation of its members is this fraction of that at its start.
JOINT_FRACTION = 0.4

#: The shared memory for the matrix between 128 members, with four columns to spare, and the numbers that a launch of
#: joint steps leaves to the next: the members that stay, and which half of all the next ones are.
JOINT_MEMORY, CARRIED = 128 * 132 * 4, 64 + 1

#: Where the report of a launch has the middle of each of two groups, and three numbers of each block.
MIDDLES, BLOCKS = 3, 5


class DeviceBox(NamedTuple):
    """Bounds, kinks, groups, ridge and curvature of some variables, on the GPU."""

    lower: Any
    upper: Any
    kink: Any
    group: Any
    ridge: Any
    curvature: Any


class PairResult(NamedTuple):
    """What a call of `pair_steps` returns; `changed` and `free` are numbers of variables.

    `middles` and `members` are for the next call on the same subproblem.
    """

    violation: float
    gain: float
    steps: int
    reason: int
    changed: int
    free: int
    middles: tuple[float, ...]
    members: Any


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
    return Report(BLOCKS + 3 * CLUSTER_BLOCKS)


def pair_steps(
    matrix: Any,
    point: tuple[Any, Any, Any],
    box: DeviceBox,
    middles: tuple[float, ...],
    members: Any,
    singles: bool,
    ridged: bool,
    tolerance: float,
    max_steps: int,
    report: Report,
    clusters: bool | None = None,
) -> PairResult:
    """Take pair steps until the violation is within the tolerance.

    `point` are gradient and dual vector, which are changed, and a dual vector to count changes from. `middles` are
    those of the gradient interval of each group, at first of all variables, then of the call before; `members` is None
    at first and after any other change of the point. Joint steps that have begun are finished: up to 127 pair steps
    beyond `max_steps`. `clusters` chooses between a cluster of blocks and one block; by default a cluster where the GPU
    has them.
    """
    xp, (gradient, dual, start), size = cupy(), point, len(point[0])
    shape = Shape.of(size, has_clusters(xp.cuda.runtime.getDevice()) if clusters is None else clusters)
    large = size >= MIN_JOINT_SIZE and tolerance >= MIN_JOINT_TOLERANCE
    joint = large and len(middles) == 1 and not singles and matrix.dtype == np.float32
    constants = {
        "BLOCKS": shape.blocks, "THREADS": shape.threads, "VARIABLES": shape.variables,
        "KINKS": int(box.kink is not None), "RIDGE": int(ridged), "BOUND_TOLERANCE": BOUND_TOLERANCE,
    }  # fmt: skip
    first, second = (*middles, 0.0, 0.0)[:2]
    arguments: tuple[Any, ...] = (
        matrix, np.int32(size), gradient, dual, start, box.lower, box.upper,
        np.uint64(0) if box.kink is None else box.kink, box.group, box.ridge, box.curvature, np.float64(tolerance),
        np.int32(max_steps), np.float64(first),
    )  # fmt: skip
    if joint:
        compiled = kernel("joint_steps", "joint_steps", FRACTION=JOINT_FRACTION, **constants)
        fresh, members = members is None, xp.empty(CARRIED, dtype=np.int32) if members is None else members
        arguments = *arguments, members, np.int32(fresh), report.pointer
        launch(compiled, (shape.blocks,), (shape.threads,), arguments, JOINT_MEMORY)
    else:
        members, value = None, "float" if matrix.dtype == np.float32 else "double"
        more = {"VALUE": value, "GROUPS": max(1, len(middles)), "SINGLES": int(singles)}
        compiled = kernel("pair_steps", "pair_steps", **more, **constants)
        compiled((shape.blocks,), (shape.threads,), (*arguments, np.float64(second), report.pointer))
    numbers = report.read().tolist()
    violation, steps, reason = numbers[:MIDDLES]
    after, blocks = tuple(numbers[MIDDLES : MIDDLES + len(middles)]), numbers[BLOCKS : BLOCKS + 3 * shape.blocks]
    changed, free, gain = (sum(blocks[k::3]) for k in range(3))
    return PairResult(violation, gain, int(steps), int(reason), int(changed), int(free), after, members)
