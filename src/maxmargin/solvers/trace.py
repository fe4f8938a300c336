"""A callback that records the progress of a solver, for plots and tables of its convergence."""

from __future__ import annotations

from dataclasses import replace

from maxmargin.problems import Counters, Progress
from maxmargin.solvers.stopping import Callback, requests_stop


class Trace:
    """A callback that keeps every `Progress` it receives as one of its `entries`.

    Values in its entries are those of all variables, shrunk ones included. The solver's clock is stopped while they are
    computed, so that the `seconds` of the entries, and a limit on them, are those of the solver alone. If several
    solves share a trace, their counts continue from its last entry. An entry equal to the one before is left out.

    Parameters
    ----------
    interval : float
        Minimum number of seconds between two entries; with 0 a solver reports every round.
    callback : callable, optional
        Is called with the same progress, and may stop the solver.
    steps : int, optional
        Maximum number of steps between two entries for a solver that takes many steps at a time; 1 records each pair
        step of the pairwise solver. By default a twentieth of the steps so far, which spaces the entries evenly on a
        logarithmic axis.
    points : bool
        Whether each entry keeps a copy of the dual vector as its `point`.
    """

    def __init__(
        self, interval: float = 0.0, callback: Callback | None = None, steps: int | None = None, points: bool = False
    ) -> None:
        if steps is not None and steps < 1:
            raise ValueError(f"there must be at least 1 step between two entries, not {steps}")
        self.interval, self.callback, self.steps, self.points = interval, callback, steps, points
        self.entries: list[Progress] = []
        self._before = Counters()

    def begin(self) -> None:
        """Start recording a new solve, whose counts continue from the last entry."""
        if self.entries:
            last = self.entries[-1]
            self._before = Counters(last.iteration, last.kernel_evaluations, seconds=last.seconds)

    def next_entry(self, iterations: int) -> int:
        """Return the number of steps at which the next entry is due."""
        return iterations + (max(1, iterations // 20) if self.steps is None else self.steps)

    def __call__(self, progress: Progress) -> bool:
        progress = replace(
            progress,
            iteration=progress.iteration + self._before.iterations,
            seconds=progress.seconds + self._before.seconds,
            kernel_evaluations=progress.kernel_evaluations + self._before.kernel_evaluations,
        )
        if not self.entries or progress != replace(self.entries[-1], seconds=progress.seconds):
            self.entries.append(progress)
        return self.callback is not None and requests_stop(self.callback(progress))
