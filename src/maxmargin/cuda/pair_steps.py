"""Pair steps on the square block of a working set, by one block of threads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from maxmargin.cuda.device import cupy
from maxmargin.cuda.modules import kernel, launch
from maxmargin.precision import BOUND_TOLERANCE

#: Threads of a block, and the variables that each has at least: fewer threads have cheaper barriers.
MAX_THREADS, MIN_VARIABLES_PER_THREAD = 1024, 2

#: Bytes of shared memory for each variable (gradient, dual vector, diagonal, flags), and for the candidates of warps.
BYTES_PER_VARIABLE, BYTES_OF_CANDIDATES = 21, 10240

#: Numbers in the buffer of a subproblem: results, and the middle of each of two groups.
RESULTS, BUFFER_SIZE = 6, 8


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
    buffer: Any


def max_variables() -> int:
    """Return the most variables whose gradient and dual vector fit into the shared memory of the current GPU."""
    shared = int(cupy().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])
    return (shared - BYTES_OF_CANDIDATES) // BYTES_PER_VARIABLE - MAX_THREADS


def step_buffer(middles: tuple[float, ...]) -> Any:
    """Return the memory that calls of `pair_steps` on one subproblem share, with the middle of each group."""
    numbers = np.zeros(BUFFER_SIZE)
    numbers[RESULTS : RESULTS + len(middles)] = middles
    return cupy().asarray(numbers)


def pair_steps(
    matrix: Any,
    point: tuple[Any, Any, Any],
    box: DeviceBox,
    groups: int,
    singles: bool,
    ridged: bool,
    tolerance: float,
    max_steps: int,
    buffer: Any,
) -> PairResult:
    """Take pair steps until the violation is within the tolerance.

    `point` are gradient and dual vector, which are changed, and a dual vector to count changes from. `buffer` is that
    of `step_buffer`, one for all calls on the same variables.
    """
    xp, (gradient, dual, start) = cupy(), point
    size = len(dual)
    threads = 32
    while threads < MAX_THREADS and threads * MIN_VARIABLES_PER_THREAD < size:
        threads *= 2
    variables = -(-size // threads)
    compiled = kernel(
        "pair_steps", "pair_steps", VALUE="float" if matrix.dtype == xp.float32 else "double", THREADS=threads,
        VARIABLES=variables, GROUPS=max(1, groups), SINGLES=int(singles), KINKS=int(box.kink is not None),
        RIDGE=int(ridged),
        BOUND_TOLERANCE=BOUND_TOLERANCE,
    )  # fmt: skip
    arguments = (
        matrix, xp.int32(size), gradient, dual, start, box.lower, box.upper,
        xp.uint64(0) if box.kink is None else box.kink, box.group, box.ridge, box.curvature,
        xp.float64(tolerance), xp.int32(max_steps), buffer,
    )  # fmt: skip
    launch(compiled, (1,), (threads,), arguments, BYTES_PER_VARIABLE * threads * variables)
    violation, gain, steps, reason, changed, free = (float(value) for value in buffer[:RESULTS].get())
    return PairResult(violation, gain, int(steps), int(reason), int(changed), int(free), buffer)
