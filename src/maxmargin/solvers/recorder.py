"""Recorders: what a running solve leaves for a later one that continues it, for example in a checkpoint file.

A recorder only reads copies of points, at most every so many seconds, and never changes the sequence of steps.
"""

from __future__ import annotations

from maxmargin._typing import Floats
from maxmargin.problems import Counters, Progress, Solution, Status
from maxmargin.solvers.stopping import Callback

#: Statuses of a solve that has nothing left to do.
ENDED = (Status.CONVERGED, Status.PRECISION)


class Recorder:
    """The record of one solve. This one records nothing and knows no earlier solve.

    Attributes
    ----------
    start : float array or None
        The last point of an earlier solve of the same problem, in the form that its solver starts from.
    finished : Solution or None
        The solution of an earlier solve that converged.
    earlier : Counters
        The cost of the earlier solve.
    """

    start: Floats | None = None
    finished: Solution | None = None
    earlier: Counters = Counters()

    def observe(self, callback: Callback) -> Callback:
        """Return the callback for the solver, by which its `Monitor` finds the recorder."""
        return callback

    def is_due(self) -> bool:
        """Return whether a point should be recorded now."""
        return False

    def record(self, start: Floats, counters: Counters) -> None:
        """Record a point of the running solve; the array must not be changed afterwards."""

    def close(self, solution: Solution, start: Floats) -> None:
        """Record how the solve ended, and a start for a later one if it has not converged."""

    def part(self, name: str) -> Recorder:
        """Return the recorder of another problem that is solved on the way."""
        return self


class RecordedCallback:
    """A callback together with the recorder of the solve."""

    def __init__(self, callback: Callback, recorder: Recorder) -> None:
        self.callback, self.recorder = callback, recorder

    def __call__(self, progress: Progress) -> object:
        return self.callback(progress)
