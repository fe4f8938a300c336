"""When a solver stops: the stopping rule that all solvers share, and the callback that may request a stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

import numpy as np

from maxmargin.problems import Progress

#: Called with the progress a few times a second; returning True stops the solver.
Callback = Callable[[Progress], object]


def requests_stop(answer: object) -> bool:
    """Return whether the return value of a callback requests a stop: True does, other truthy values do not."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


@dataclass(frozen=True)
class StoppingRule:
    """When a solver stops: at the first criterion that is met. Violation and gaps count as converged, limits do not.

    Parameters
    ----------
    violation : float
        Tolerance on the largest violation of the optimality criterion (Bottou & Lin 1.21).
    gap : float, optional
        Tolerance on the duality gap; reaching it is enough even if the violation is larger.
    max_iterations, max_seconds : optional
        Limits on the work. The point reached is feasible and its certificate states how far from optimal it may be.
    relative_gap : float, optional
        Tolerance on the duality gap relative to the larger of primal and dual value. Used by the linear solvers.
    """

    violation: float = 1e-3
    gap: float | None = None
    max_iterations: int | None = None
    max_seconds: float | None = None
    relative_gap: float | None = None

    def __post_init__(self) -> None:
        if not self.violation > 0:
            raise ValueError(f"the tolerance on the violation must be above 0, not {self.violation}")
        for name in ("gap", "relative_gap", "max_iterations", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value}")

    def accepts_gap(self, primal: float, dual: float) -> bool:
        """Return whether the gap between a primal and a dual value is within one of the two tolerances."""
        if not (isfinite(primal) and isfinite(dual)):
            return False
        if self.gap is not None and primal - dual <= self.gap:
            return True
        return self.relative_gap is not None and primal - dual <= self.relative_gap * max(abs(primal), abs(dual))


class GapSchedule:
    """When a solver verifies the gap by a recomputed gradient: after every failure at a longer interval."""

    def __init__(self) -> None:
        self._next = self._failures = 0

    def is_due(self, step: int) -> bool:
        """Return whether the gap may be verified after so many steps."""
        return step >= self._next

    def postpone(self, step: int) -> None:
        """Record that the gap was verified after so many steps and was too large."""
        self._failures += 1
        self._next = step + 2**self._failures
