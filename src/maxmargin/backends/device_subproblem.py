"""The subproblem of a working set on a device."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends import free_equations
from maxmargin.backends.interface import StopReason
from maxmargin.matrices import NON_FINITE_MESSAGE


class PairStepper(Protocol):
    """Takes pair steps on a subproblem: changes its dual vector and gradient."""

    def __call__(self, part: DeviceSubproblem, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take steps until the violation is within the tolerance; set `violation`, add to the totals."""
        ...


class DeviceSubproblem:
    """Dual vector, gradient, box and square block of the matrix of some variables, on a device.

    Attributes
    ----------
    working_set : device array
        The variables.
    values : device array
        The matrix between them.
    precise : bool
        Whether the matrix is in double precision.
    violation : float
        The largest KKT violation among them, as of the last step.
    """

    def __init__(self, state: Any, working_set: Any, values: Any, dual: Any, gradient: Any, box: Any) -> None:
        self.xp, self.totals, self.groups, self.stepper = state.xp, state.totals, state.groups, state.stepper
        self.singles, self.bounded = state.problem.ungrouped > 0, state.problem.bounded
        self.working_set, self.values, self.dual, self.gradient, self.box = working_set, values, dual, gradient, box
        self.precise = values.dtype == np.float64
        self.active, self.violation = len(working_set), np.inf
        self._start = dual.copy()

    def pair_steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take pair steps with second-order selection until the violation is within the tolerance, or a limit."""
        reason = self.stepper(self, tolerance, max_steps, max_seconds)
        if self.violation == np.inf or np.isnan(self.violation):
            raise ValueError(NON_FINITE_MESSAGE)
        return reason

    def is_free(self) -> Any:
        """Return which variables are off their bounds and kinks."""
        box = self.box
        inside = (box.lower < self.dual) & (self.dual < box.upper)
        return inside if box.kink is None else inside & ((self.dual != 0) | (box.kink == 0))

    def count_free(self) -> int:
        """Return the number of variables off their bounds and kinks."""
        return int(self.is_free().sum())

    def changed(self) -> Any:
        """Return the positions of the variables that have changed."""
        return self.xp.flatnonzero(self.dual != self._start)

    def count_changed(self) -> int:
        """Return the number of variables that have changed."""
        return len(self.changed())

    def solve_free(self, max_work: float) -> float:
        """Move the free variables to the solution of their linear equations, which are solved on the host."""
        free = self.xp.flatnonzero(self.is_free())
        equations = _FreeEquations(self, free)
        work = free_equations.solve_free(equations, np.arange(len(free)), max_work)
        if equations.change is not None:
            change, dual = self.xp.asarray(equations.change), self.xp.asarray(equations.dual)
            self.gradient -= change @ self.values[free].astype(np.float64)
            self.gradient[free] -= self.box.ridge[free] * change
            self.dual[free] = dual
            self.totals.dual_value += equations.gain
        return work


class _FreeEquations:
    """The free variables of a subproblem in host memory, and their move."""

    def __init__(self, part: DeviceSubproblem, free: Any) -> None:
        box = part.box
        self.dual, self.gradient = _host(part.dual[free]), _host(part.gradient[free])
        self.lower, self.upper, self.ridge = (_host(array[free]) for array in (box.lower, box.upper, box.ridge))
        self.kink = np.empty(0) if box.kink is None else _host(box.kink[free])
        self.group = _host(box.group[free]).astype(np.int32)
        self.bounded, self.accuracy = part.bounded, 1e-11 if part.precise else 1e-7
        self._values = _host(part.values[free[:, None], free]).astype(np.float64)
        self.change: Floats | None = None
        self.gain = 0.0

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix."""
        return self._values[positions[:, None], positions]

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Keep the move of all variables and its gain."""
        slope = float(change @ self.gradient)
        if len(self.kink):
            slope -= 2.0 * float(change @ np.copysign(self.kink, self.dual))
        after = self.gradient - self._values @ change - self.ridge * change
        self.gain = 0.5 * (slope + float(change @ after))
        self.change, self.dual = change, values


def _host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.get()
