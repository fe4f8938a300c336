"""Training one machine for each pair of classes, on one thread or several."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import combinations
from time import perf_counter

from maxmargin.matrices.symmetric_matrix import Floats, Indices
from maxmargin.problems import DualProblem, Progress, Status
from maxmargin.solvers import Callback
from maxmargin.training import BinaryMachine, Solver, train_binary

Pose = Callable[[int, int], tuple[DualProblem, Indices]]


def train_pairs(
    pose: Pose,
    classes: int,
    solver: Solver,
    starts: list[Floats] | None,
    callback: Callback | None,
    threads: int,
) -> list[BinaryMachine]:
    """Return the machines of all pairs of classes, in the order (0, 1), (0, 2) and so on.

    A limit on seconds holds for all pairs together, and an interruption ends them all.
    """
    pairs = list(combinations(range(classes), 2))
    deadline = None
    if solver.stopping.max_seconds is not None:
        deadline = perf_counter() + solver.stopping.max_seconds
    stopped = threading.Event()

    def report(progress: Progress) -> bool:
        if callback is not None and callback(progress) is True:
            stopped.set()
        return stopped.is_set()

    alone = threads == 1 or len(pairs) == 1
    watch = None if alone and callback is None else report

    def train(position: int) -> BinaryMachine:
        problem, samples = pose(*pairs[position])
        start = None if starts is None else starts[position]
        machine = train_binary(problem, solver, samples, start, watch, deadline)
        if machine.status is Status.INTERRUPTED:
            stopped.set()
        return machine

    if alone:
        return [train(position) for position in range(len(pairs))]
    with ThreadPoolExecutor(min(threads, len(pairs))) as pool:
        futures = [pool.submit(train, position) for position in range(len(pairs))]
        interrupted = False
        while True:
            try:
                wait(futures)
                break
            except KeyboardInterrupt:  # only this thread hears Ctrl-C; the others stop at their next report
                interrupted = True
                stopped.set()
    machines = [future.result() for future in futures]
    if interrupted:
        for machine in machines:
            if machine.status is Status.STOPPED:
                machine.status = Status.INTERRUPTED
    return machines
