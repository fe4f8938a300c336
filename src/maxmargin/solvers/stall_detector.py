"""Detect that an iteration has stopped making progress."""

from __future__ import annotations

from math import inf


class StallDetector:
    """Report a stall when a violation has not halved within a number of steps.

    The step count is whatever measures the effort: pair steps, rounds, passes. A stall means that rounding errors undo
    the steps, or that the method converges too slowly to be useful.

    Parameters
    ----------
    patience : float
        Steps within which the violation must fall below `factor` times its previous minimum; infinite: never stalls.
    factor : float
        How far the violation must fall for the step to count as progress.
    step : int
        The step count at the beginning.
    """

    def __init__(self, patience: float, factor: float = 0.5, step: int = 0) -> None:
        self.patience, self.factor = patience, factor
        self.restart(inf, step)

    def restart(self, violation: float, step: int) -> None:
        """Measure progress from this violation and step on."""
        self._violation, self._step = violation, step

    def stalled(self, violation: float, step: int) -> bool:
        """Record the violation after so many steps and return whether progress has stalled."""
        if violation < self.factor * self._violation:
            self.restart(violation, step)
        return self.waited(step) > self.patience

    def waited(self, step: int) -> float:
        """Return the number of steps since the last progress."""
        return step - self._step
