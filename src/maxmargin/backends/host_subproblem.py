"""A subproblem whose arrays are NumPy arrays: what the native and the NumPy backend have in common.

Pair steps need nothing but the square block of the matrix between the variables. Shrinking continues with a smaller
subproblem of the variables that can still be selected; when that is solved, the larger one is updated from its own rows
and checked again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats, Indices
from maxmargin.backends.interface import RunningTotals, StopReason
from maxmargin.matrices.numerics import inner
from maxmargin.problems.kinks import is_free


class ParentVariables(Protocol):
    """Variables that a subproblem is a part of: all variables, or a larger subproblem."""

    lower: Floats
    upper: Floats
    curvature: Floats
    ridge: Floats
    kink: Floats
    group: np.ndarray
    groups: int
    bounded: bool
    totals: RunningTotals
    threads: int

    @property
    def dual(self) -> Floats:
        """The dual variables."""
        ...

    @property
    def gradient(self) -> Floats:
        """The gradient of the dual objective."""
        ...


class HostSubproblem(ABC):
    """Dual vector, gradient, box and matrix of some variables.

    Attributes
    ----------
    variables : int array
        Their positions in the larger subproblem or the whole problem.
    active : int
        Their number: all take part.
    values : float array
        The matrix between them.
    violation : float
        The largest KKT violation among them, as of the last step.
    accuracy : float
        The relative accuracy of the matrix: flat directions may have a negative curvature of that size.
    precise : bool
        Whether the matrix is in double precision.
    has_all_values : bool
        Whether all values between the variables are in memory.
    """

    accuracy = 1e-7
    precise = False
    has_all_values = True

    def __init__(self, parent: ParentVariables, variables: Indices, values: NDArray[Any]) -> None:
        self.variables, self.values, self.active = variables, values, len(variables)
        self.dual, self.gradient = parent.dual[variables], parent.gradient[variables]
        self.lower, self.upper = parent.lower[variables], parent.upper[variables]
        self.curvature, self.ridge = parent.curvature[variables], parent.ridge[variables]
        self.kink = parent.kink[variables] if len(parent.kink) else parent.kink
        group = parent.group[variables]
        self.group, self.groups = (group, parent.groups) if parent.groups <= 1 else renumbered(group)
        self.singles = int((group < 0).sum())
        self.bounded, self.totals, self.threads = parent.bounded, parent.totals, parent.threads
        self.violation = np.inf
        self._start = self.dual.copy()

    @abstractmethod
    def pair_steps(self, tolerance: float, max_steps: int, max_seconds: float) -> StopReason:
        """Take pair steps with second-order selection."""

    @abstractmethod
    def solve_free(self, max_work: float) -> float:
        """Move the free variables to the solution of their linear equations; return the multiplications."""

    @abstractmethod
    def selectable(self) -> Indices:
        """Return the positions of the variables that may still be selected for a step."""

    @abstractmethod
    def fill_block(self, positions: Indices, out: NDArray[Any]) -> Indices:
        """Write the values between some positions to `out`; return the positions in the order of its rows."""

    @abstractmethod
    def combine(self, positions: Indices, weights: Floats) -> Floats:
        """Return Σ weights · row."""

    def free(self) -> Indices:
        """Return the positions of the variables off their bounds and kinks."""
        return np.flatnonzero(is_free(self.dual, self.lower, self.upper, self.kink))

    def count_free(self) -> int:
        """Return the number of variables off their bounds and kinks."""
        return len(self.free())

    def changed(self) -> Indices:
        """Return the positions of the variables that have changed."""
        return np.flatnonzero(self.dual != self._start)

    def count_changed(self) -> int:
        """Return the number of variables that have changed."""
        return len(self.changed())

    def restricted(self, positions: Indices) -> HostSubproblem:
        """Return the subproblem of some of the variables."""
        values = np.empty((len(positions), len(positions)), dtype=self.values.dtype)
        positions = self.fill_block(positions, values)
        return self._part(positions, values)

    def _part(self, positions: Indices, values: NDArray[Any]) -> HostSubproblem:
        return type(self)(self, positions, values)

    def absorb(self, part: HostSubproblem) -> None:
        """Update dual vector and gradient by the changes of a smaller subproblem."""
        moved = part.changed()
        at, change = part.variables[moved], part.dual[moved] - self.dual[part.variables[moved]]
        gradient = self.gradient - self.combine(at, change)
        gradient[part.variables] = part.gradient  # with their ridge, and as exact as the steps were
        self.gradient, self.dual[at] = gradient, part.dual[moved]

    def gradient_at(self, dual: Floats) -> Floats:
        """Return the gradient at other values of the variables."""
        change = dual - self.dual
        moved = np.flatnonzero(change)
        if not len(moved):
            return self.gradient
        return self.gradient - self.combine(moved, change[moved]) - self.ridge * change

    def block(self, positions: Indices) -> Floats:
        """Return the square block of the matrix at some positions: the values that pair steps use, no better ones.

        Two kinds of steps that disagreed about the matrix in the last digits could undo each other for ever.
        """
        values = np.empty((len(positions), len(positions)), dtype=self.values.dtype)
        self.fill_block(positions, values)
        return values.astype(np.float64)

    def move(self, positions: Indices, change: Floats, values: Floats) -> None:
        """Set some variables to new values, on the same side of their kinks; update gradient and dual objective."""
        slope = inner(change, self.gradient[positions])
        if len(self.kink):
            slope -= 2.0 * inner(change, np.copysign(self.kink[positions], self.dual[positions]))
        self.gradient -= self.combine(positions, change)
        self.gradient[positions] -= self.ridge[positions] * change
        self.dual[positions] = values
        self.totals.dual_value += 0.5 * (slope + inner(change, self.gradient[positions]))  # the gradient is linear


def renumbered(group: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the groups of some variables numbered from 0, and how many there are: selection visits every group."""
    single = group < 0
    names, number = np.unique(group[~single], return_inverse=True)
    new = np.full(len(group), -1, dtype=group.dtype)
    new[~single] = number
    return new, len(names)
