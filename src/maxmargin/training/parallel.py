"""Tasks on a pool of threads, with progress and Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from maxmargin.solvers import SharedCallback

Result = TypeVar("Result")


def run_parallel(
    task: Callable[[int], Result], count: int, callback: SharedCallback, workers: int
) -> tuple[list[Result], bool]:
    """Return the results of ``task(0)`` to ``task(count - 1)``, and whether Ctrl-C was pressed.

    Tasks must end soon after ``callback.stopped`` is set: only the calling thread receives Ctrl-C.
    """
    callback.begin(count)

    def counted(position: int) -> Result:
        result = task(position)
        callback.count_finished()
        return result

    if workers == 1 or count == 1:
        return [counted(position) for position in range(count)], False
    interrupted = False
    with ThreadPoolExecutor(min(workers, count)) as pool:
        futures = [pool.submit(counted, position) for position in range(count)]
        while True:
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                break
            except KeyboardInterrupt:
                interrupted = True
                callback.stopped.set()
        if any(future.done() and future.exception() for future in futures):
            callback.stopped.set()  # an error in one task: the others need not continue
    return [future.result() for future in futures], interrupted
