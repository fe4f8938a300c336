"""Training several machines, for example one for each pair of classes, on one thread or several."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from itertools import combinations
from time import perf_counter
from typing import TypeVar

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation
from maxmargin.problems import DualProblem, Status
from maxmargin.solvers import Callback, SharedCallback
from maxmargin.training import JUDGED_AT_ONCE, Machine, Solver, train

Pose = Callable[[int, int], tuple[DualProblem, Indices]]
Result = TypeVar("Result")


def train_pairs(
    pose: Pose,
    classes: int,
    solver: Solver,
    formulation: Formulation,
    starts: list[Floats] | None,
    callback: Callback | None,
    threads: int,
) -> list[Machine]:
    """Return the machines of all pairs of classes, in the order (0, 1), (0, 2) and so on."""
    pairs = list(combinations(range(classes), 2))
    return train_several(
        lambda position: pose(*pairs[position]), len(pairs), solver, formulation, starts, callback, threads
    )


def train_several(
    pose: Callable[[int], tuple[DualProblem, Indices]],
    count: int,
    solver: Solver,
    formulation: Formulation,
    starts: list[Floats] | None,
    callback: Callback | None,
    threads: int,
) -> list[Machine]:
    """Return machines for the problems 0 to `count` − 1, each of which `pose` returns together with its training rows.

    A limit on seconds holds for all together, and an interruption ends them all.
    """
    deadline = None
    if solver.stopping.max_seconds is not None:
        deadline = perf_counter() + solver.stopping.max_seconds
    watch = SharedCallback(callback)

    def train_one(position: int) -> Machine:
        problem, samples = pose(position)
        start = None if starts is None else starts[position]
        machine = train(problem, solver, samples, formulation, start, watch, deadline, JUDGED_AT_ONCE // count)
        if machine.status is Status.INTERRUPTED:
            watch.stopped.set()
        return machine

    return _mark_interrupted(*side_by_side(train_one, count, watch, threads))


def side_by_side(
    task: Callable[[int], Result], count: int, watch: SharedCallback, threads: int
) -> tuple[list[Result], bool]:
    """Return what a task makes of 0, 1, … on some threads, and whether it was interrupted; tasks look at the watch."""
    watch.begin(count)

    def count_task(position: int) -> Result:
        result = task(position)
        watch.count_finished()
        return result

    if threads == 1 or count == 1:
        return [count_task(position) for position in range(count)], False
    interrupted = False
    with ThreadPoolExecutor(min(threads, count)) as pool:
        futures = [pool.submit(count_task, position) for position in range(count)]
        while True:
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                break
            except KeyboardInterrupt:  # only this thread hears Ctrl-C; the others look at the watch
                interrupted = True
                watch.stopped.set()
        if any(future.done() and future.exception() for future in futures):
            watch.stopped.set()  # an error in one: the others need not go on
    return [future.result() for future in futures], interrupted


def _mark_interrupted(machines: list[Machine], interrupted: bool) -> list[Machine]:
    """Call all machines interrupted that stopped because one was."""
    if interrupted or any(machine.status is Status.INTERRUPTED for machine in machines):
        for machine in machines:
            if machine.status is Status.STOPPED:
                machine.status = Status.INTERRUPTED
    return machines
