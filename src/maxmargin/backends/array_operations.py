"""Operations over all variables between two rounds, on arrays of any module with NumPy's functions.

They are the readable form of what compiled kernels do on a GPU (`cuda_operations`), and run in the tests with NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.backends.selection import largest, select_by_violation
from maxmargin.problems import DualProblem


class DeviceVariables(NamedTuple):
    """The arrays of some variables on a device; `kink` is None where there is none."""

    linear: Any
    lower: Any
    upper: Any
    ridge: Any
    curvature: Any
    group: Any
    kink: Any

    @classmethod
    def of(cls, problem: DualProblem, xp: Any) -> DeviceVariables:
        """Copy the arrays of a problem to a device."""
        return cls(
            xp.asarray(problem.linear),
            xp.asarray(problem.lower),
            xp.asarray(problem.upper),
            xp.asarray(problem.ridge),
            xp.asarray(problem.curvature),
            xp.asarray(problem.group.astype(np.int8)),
            xp.asarray(problem.kink) if problem.kinked else None,
        )

    def is_free(self, dual: Any) -> Any:
        """Return which variables are strictly between their bounds and not at a kink."""
        inside = (self.lower < dual) & (dual < self.upper)
        return inside if self.kink is None else inside & ((dual != 0) | (self.kink == 0))


class Violations(NamedTuple):
    """KKT violations of all variables.

    Attributes
    ----------
    largest, gradient_sum : float
        The largest one; and a number that is not finite if a gradient is not.
    free : int
        The number of variables off their bounds and kinks.
    middles : tuple of float
        The middle between largest slope up and smallest slope down of each group.
    private : object
        What the selection of a working set reads.
    """

    largest: float
    gradient_sum: float
    free: int
    middles: tuple[float, ...]
    private: Any


class Part(NamedTuple):
    """Dual vector, gradient, a copy of the dual vector, and arrays of a working set."""

    dual: Any
    gradient: Any
    start: Any
    variables: DeviceVariables


class ArrayOperations:
    """Operations on arrays of the module `xp`.

    Parameters
    ----------
    xp : module
    groups : int
        Of the problem, at most two.
    """

    def __init__(self, xp: Any, groups: int) -> None:
        self.xp, self.groups = xp, groups

    def find_violations(self, variables: DeviceVariables, dual: Any, gradient: Any) -> Violations:
        """Return the KKT violations at a point."""
        xp = self.xp
        up, down = self.slopes(variables, dual, gradient)
        highest, lowest = self.extremes(variables, up, down)
        growing, falling = up - lowest[variables.group], highest[variables.group] - down
        worst = xp.maximum(growing.max(), falling.max())
        most, total, *ends = to_host(xp.stack([worst, gradient.sum(), *highest[:-1], *lowest[:-1]]))
        free = variables.is_free(dual)
        middles = middles_of(ends[: self.groups], ends[self.groups :])
        return Violations(max(float(most), 0.0), float(total), int(free.sum()), middles, (growing, falling, free))

    def slopes(self, variables: DeviceVariables, dual: Any, gradient: Any) -> tuple[Any, Any]:
        """Return the slope of the objective along each variable, up (−∞ if it cannot grow) and down (∞ likewise)."""
        xp, kink = self.xp, variables.kink
        growing = falling = gradient
        if kink is not None:
            less, more = gradient - kink, gradient + kink
            growing, falling = xp.where(dual < 0, more, less), xp.where(dual > 0, less, more)
        up = xp.where(dual < variables.upper, growing, -xp.inf)
        return up, xp.where(dual > variables.lower, falling, xp.inf)

    def extremes(self, variables: DeviceVariables, up: Any, down: Any) -> tuple[Any, Any]:
        """Return, per group, the largest slope up and the smallest down; a last 0, for variables in no group."""
        xp = self.xp
        members = [variables.group == g for g in range(self.groups)]
        zero = xp.zeros(())
        highest = [xp.where(each, up, -xp.inf).max() for each in members]
        lowest = [xp.where(each, down, xp.inf).min() for each in members]
        return xp.stack([*highest, zero]), xp.stack([*lowest, zero])

    def sample(self, variables: DeviceVariables, dual: Any, gradient: Any, at_each_end: int, every: int) -> Any:
        """Return the variables nearest to each end of the violation, and one in so many of all."""
        xp = self.xp
        up, down = self.slopes(variables, dual, gradient)
        ends = [largest(values, at_each_end, -np.inf, xp) for values in (up, -down)]
        return xp.unique(xp.concatenate([*ends, xp.arange(0, len(dual), every)]))

    def errors(
        self, variables: DeviceVariables, point: tuple[Any, Any], sample: Any, product: Any, factor: float
    ) -> tuple[float, float]:
        """Return the largest error of the gradient in a sample, and the largest that matters.

        `product` are the rows of the sample times the dual vector, in double precision. An error matters where so many
        times of it could let the variable move.
        """
        xp, (dual, gradient) = self.xp, point
        precise = variables.linear[sample] - product - variables.ridge[sample] * dual[sample]
        errors = xp.abs(precise - gradient[sample])
        counted = xp.where(self.could_move(variables, dual, gradient, factor * errors, sample), errors, 0.0)
        return float(errors.max()), float(counted.max())

    def could_move(self, variables: DeviceVariables, dual: Any, gradient: Any, error: Any, which: Any) -> Any:
        """Return which of some variables could move if their gradients were off by `error`."""
        up, down = self.slopes(variables, dual, gradient)
        highest, lowest = self.extremes(variables, up, down)
        group = variables.group[which]
        return (up[which] + error >= lowest[group]) | (down[which] - error <= highest[group])

    def select(self, violations: Violations, size: int) -> Any:
        """Return a working set of at most `size` variables, in order."""
        growing, falling, free = violations.private
        return self.xp.sort(
            select_by_violation(self.xp.flatnonzero(free), growing.copy(), falling.copy(), size, self.xp)
        )

    def gather(self, variables: DeviceVariables, dual: Any, gradient: Any, working_set: Any) -> Part:
        """Return the arrays of a working set."""
        arrays = DeviceVariables(*(None if array is None else array[working_set] for array in variables))
        return Part(dual[working_set], gradient[working_set], dual[working_set], arrays)

    def changes(self, working_set: Any, start: Any, dual: Any, count: int) -> tuple[Any, Any]:
        """Return the `count` variables of a working set that differ from the start, and their changes."""
        moved = self.xp.flatnonzero(dual != start)
        return working_set[moved], (dual - start)[moved]

    def updated(
        self,
        variables: DeviceVariables,
        point: tuple[Any, Any],
        part: tuple[Any, Any],
        changes: tuple[Any, Any],
        parts: Any,
    ) -> tuple[Any, Any]:
        """Return the point, dual vector and gradient, after the changes of a working set.

        `part` are its variables and their dual vector, `parts` the addends of the product of the matrix with the
        changes.
        """
        (working_set, part_dual), (at, change) = part, changes
        dual, gradient = point[0].copy(), point[1] - parts.sum(axis=0)
        dual[working_set] = part_dual
        gradient[at] -= variables.ridge[at] * change
        return dual, gradient


def middles_of(highest: Sequence[float], lowest: Sequence[float]) -> tuple[float, ...]:
    """Return the middle of the interval of each group; 0 where an end is missing."""
    middles = (0.5 * (float(high) + float(low)) for high, low in zip(highest, lowest, strict=True))
    return tuple(middle if isfinite(middle) else 0.0 for middle in middles)


def to_host(array: Any) -> Floats:
    """Return an array in host memory."""
    on_host: Floats = array if isinstance(array, np.ndarray) else array.get()
    return on_host
