"""The subproblem of a working set on a device."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.backends import free_equations
from maxmargin.backends.array_operations import Part, to_host
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
    start : device array
        The dual vector when the subproblem was opened.
    middles : tuple of float
        The middle of the gradient interval of each group, as of the last step.
    members : object
        What the stepper leaves to its next call; None where nothing that it knows holds.
    """

    def __init__(self, state: Any, working_set: Any, values: Any, part: Part, middles: tuple[float, ...]) -> None:
        self.xp, self.totals, self.groups = state.xp, state.totals, state.groups
        self.stepper: PairStepper = state.stepper
        self.singles, self.bounded = state.problem.ungrouped > 0, state.problem.bounded
        self.ridged = state.problem.facts.ridged
        self.working_set, self.values = working_set, values
        self.dual, self.gradient, self.start, self.variables = part
        self.precise = values.dtype == np.float64
        self.active, self.violation = len(working_set), np.inf
        self.middles = middles
        self.members: Any = None
        self._changed: int | None = None
        self._free: int | None = None

    def pair_steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take pair steps with second-order selection until the violation is within the tolerance, or a limit."""
        self.know(None, None)
        reason: StopReason = self.stepper(self, tolerance, max_steps, max_seconds)
        if self.violation == np.inf or np.isnan(self.violation):
            raise ValueError(NON_FINITE_MESSAGE)
        return reason

    def know(self, changed: int | None, free: int | None) -> None:
        """Keep how many variables differ from the start and how many are free; None if that must be counted."""
        self._changed, self._free = changed, free

    def count_free(self) -> int:
        """Return the number of variables off their bounds and kinks."""
        return int(self.variables.is_free(self.dual).sum()) if self._free is None else self._free

    def count_changed(self) -> int:
        """Return the number of variables that have changed."""
        return int((self.dual != self.start).sum()) if self._changed is None else self._changed

    def solve_free(self, max_work: float) -> float:
        """Move the free variables to the solution of their linear equations, which are solved on the host."""
        free = self.xp.flatnonzero(self.variables.is_free(self.dual))
        equations = _FreeEquations(self, free)
        work = free_equations.solve_free(equations, np.arange(len(free)), max_work)
        if equations.change is not None:
            change, dual = self.xp.asarray(equations.change), self.xp.asarray(equations.dual)
            self.gradient -= change @ self.values[free].astype(np.float64)
            self.gradient[free] -= self.variables.ridge[free] * change
            self.dual[free], self.members = dual, None
            self.know(None, None)
            self.totals.dual_value += equations.gain
        return work


class _FreeEquations:
    """The free variables of a subproblem in host memory, and their move."""

    def __init__(self, part: DeviceSubproblem, free: Any) -> None:
        box = part.variables
        self.dual, self.gradient = to_host(part.dual[free]), to_host(part.gradient[free])
        self.lower, self.upper, self.ridge = (to_host(array[free]) for array in (box.lower, box.upper, box.ridge))
        self.kink = np.empty(0) if box.kink is None else to_host(box.kink[free])
        self.group = to_host(box.group[free]).astype(np.int32)
        self.bounded, self.accuracy = part.bounded, 1e-11 if part.precise else 1e-7
        self._values = to_host(part.values[free[:, None], free]).astype(np.float64)
        self.change: Floats | None = None
        self.gain = 0.0

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix."""
        return np.asarray(self._values[positions[:, None], positions])

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Keep the move of all variables and its gain."""
        slope = float(change @ self.gradient)
        if len(self.kink):
            slope -= 2.0 * float(change @ np.copysign(self.kink, self.dual))
        after = self.gradient - self._values @ change - self.ridge * change
        self.gain = 0.5 * (slope + float(change @ after))
        self.change, self.dual = change, values
