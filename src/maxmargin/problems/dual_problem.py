"""The optimisation problem that every estimator is posed as.

In the signed dual variable b (β = yα in the literature), the expansion coefficient of each sample:

    maximise    D(b) = linear·b − Σ kink_i |b_i| − ½ bᵀ M b − ½ Σ ridge_i b_i²
    subject to  lower ≤ b ≤ upper
                Σ_{i in group g} b_i = total_g      for every group g

The kink, zero for most formulations, is the tube of regression: with it a sample needs one variable instead of two. The
gradient g = linear − M b − ridge∘b does not include it. Where a variable is 0, the slope of D has two sides: g − kink
when it increases and −g − kink when it decreases; elsewhere it is g − kink · sign(b).

Labels, classes and targets only fill these arrays; nothing below a formulation depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import fsum, inf, isfinite, nextafter
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.matrices.numerics import inner
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.precision import GROUP_SUM_TOLERANCE


class InfeasibleProblemError(ValueError):
    """No point satisfies the constraints."""


class ProblemFacts(NamedTuple):
    """What the arrays of a problem are like (native/problem_facts.hpp).

    Attributes
    ----------
    valid : bool
        Whether all are numbers, ridges and kinks finite and at least 0, kinks within the box, and groups known.
    zero_fits : bool
        Whether 0 is within all bounds.
    bounded, coercive, ridged, kinked, ungrouped
        The properties of the problem.
    largest_linear : float
        The largest magnitude of the linear term and the kinks.
    largest_bound : float
        Of the finite ones.
    least_ridge, largest_ridge : float
        Of the positive ones, 0 if there is none.
    largest_total : float
        The largest magnitude of the totals; infinite if one is not finite.
    room : float
        The least difference of a total from the sums of the bounds of its group; below 0 beyond one of them.
    """

    valid: bool
    zero_fits: bool
    bounded: bool
    coercive: bool
    ridged: bool
    kinked: bool
    ungrouped: int
    largest_linear: float
    largest_bound: float
    least_ridge: float
    largest_ridge: float
    largest_total: float
    room: float


@dataclass(frozen=True)
class DualProblem:
    """A box- and sum-constrained concave quadratic program with kinks at zero.

    Parameters
    ----------
    matrix : SymmetricMatrix
        M, of as many rows as there are variables.
    linear, lower, upper : float arrays
        The linear term and the box; bounds may be infinite.
    ridge : float array, optional
        Added to the diagonal of M; zero by default.
    group : int32 array, optional
        The group of each variable, −1 for none; by default all are in group 0.
    total : float array, optional
        The sum of each group; by default one group of total 0.
    kink : float array, optional
        The cost of each variable's magnitude; zero by default. Where it is positive, the bounds include 0.
    linear_error : float array, optional
        Bounds on the rounding errors of `linear`, if it was computed; None for numbers that define the problem.
    """

    matrix: SymmetricMatrix
    linear: Floats
    lower: Floats
    upper: Floats
    ridge: Floats = field(default_factory=lambda: np.empty(0))
    group: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    total: Floats = field(default_factory=lambda: np.zeros(1))
    kink: Floats = field(default_factory=lambda: np.empty(0))
    linear_error: Floats | None = None
    facts: ProblemFacts = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        n = self.matrix.size
        arrays: dict[str, Any] = {}
        for name in ("linear", "lower", "upper", "ridge", "kink", "group"):
            given, kind = getattr(self, name), np.int32 if name == "group" else np.float64
            absent = name in ("ridge", "kink", "group") and not len(given)
            array = arrays[name] = np.zeros(n, kind) if absent else np.ascontiguousarray(given, kind)
            if array.shape != (n,):
                raise ValueError(f"{name} must have one entry for each of the {n} variables")
        arrays["total"] = np.ascontiguousarray(self.total, dtype=np.float64)
        facts = ProblemFacts(*_native.problem_facts(**arrays))
        self.__dict__.update(arrays, facts=facts)
        if not self.facts.valid:
            self._raise_invalid()
        self._check_feasible()

    def _raise_invalid(self) -> NoReturn:
        """Raise ValueError with what is wrong with the arrays."""
        if not np.isfinite(self.linear).all():
            raise ValueError("linear must be finite")
        for name in ("ridge", "kink"):
            if not (np.isfinite(getattr(self, name)).all() and (getattr(self, name) >= 0).all()):
                raise ValueError(f"{name} must be finite and at least 0")
        if np.isnan(self.lower).any() or np.isnan(self.upper).any():
            raise ValueError("a bound in lower or upper is not a number")
        if not (self.group.min() >= -1 and self.group.max() < len(self.total)):
            raise ValueError(f"a group must lie between -1 and {len(self.total) - 1}")
        raise ValueError("the bounds of a variable with a kink must include 0")

    @property
    def size(self) -> int:
        """The number of variables."""
        return self.matrix.size

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.total)

    @property
    def ungrouped(self) -> int:
        """The number of variables in no group."""
        return self.facts.ungrouped

    @property
    def bounded(self) -> bool:
        """Whether every bound is finite."""
        return self.facts.bounded

    @property
    def ridged(self) -> bool:
        """Whether every variable has a ridge."""
        return self.facts.ridged

    @property
    def kinked(self) -> bool:
        """Whether a variable has a kink."""
        return self.facts.kinked

    @property
    def kinks(self) -> Floats:
        """The kinks as loops over variables take them: empty if there are none."""
        return self.kink if self.kinked else self.kink[:0]

    @property
    def coercive(self) -> bool:
        """Whether the maximum is finite for any matrix: each variable has finite bounds or a ridge."""
        return self.facts.coercive

    @property
    def zero_is_feasible(self) -> bool:
        """Whether dual = 0 is feasible, as for most formulations."""
        return self.facts.zero_fits and not self.facts.largest_total

    @property
    def native(self) -> _native.BoxProblem:
        """The problem without its matrix, as the compiled loops over features take it; they take no kinks."""
        assert not self.kinked, "pose the split form"
        return _native.BoxProblem(
            linear=self.linear,
            lower=self.lower,
            upper=self.upper,
            ridge=self.ridge,
            group=self.group,
            groups=self.groups,
        )

    @property
    def curvature(self) -> Floats:
        """The diagonal of M plus the ridge: the curvature along each variable."""
        return self.matrix.diagonal() + self.ridge

    def with_matrix(self, matrix: SymmetricMatrix) -> DualProblem:
        """Return the same problem with another form of its matrix, without validation."""
        other = DualProblem.__new__(DualProblem)
        other.__dict__.update(self.__dict__, matrix=matrix)
        return other

    def gradient(self, dual: Floats) -> Floats:
        """Return linear − M b − ridge∘b."""
        gradient: Floats = self.linear - self.matrix.matvec(dual) - self.ridge * dual
        return gradient

    def value(self, dual: Floats, gradient: Floats) -> float:
        """Return the dual objective of a point, given its gradient."""
        value = 0.5 * inner(dual, self.linear + gradient)
        return value - inner(self.kink, np.abs(dual)) if self.kinked else value

    def group_sums(self, values: Floats) -> Floats:
        """Return the sum of `values` over each group."""
        if not self.groups:
            return np.empty(0)
        if self.ungrouped == 0 and self.groups == 1:  # the common case, several times faster
            return np.array([values.sum()], dtype=np.float64)
        if self.ungrouped == 0:
            return _sums(self.group, values, self.groups)
        grouped = self.group >= 0
        return _sums(self.group[grouped], values[grouped], self.groups)

    def members(self, group: int) -> Indices | slice:
        """Return the variables of a group, as an index."""
        if self.groups == 1 and not self.ungrouped:
            return slice(None)
        order, starts = self._grouped
        return order[starts[group] : starts[group + 1]]

    @cached_property
    def _grouped(self) -> tuple[Indices, Indices]:
        """The variables ordered by group, and where each group starts."""
        order = np.argsort(self.group, kind="stable")
        return order, np.searchsorted(self.group[order], np.arange(self.groups + 1))

    def expand_groups(self, per_group: Floats) -> Floats:
        """Return the value of each variable's group, 0 for a variable in no group."""
        if self.ungrouped == 0 and self.groups == 1:  # the common case, several times faster
            return np.full(self.size, per_group[0])
        if self.ungrouped == 0:
            return per_group[self.group]
        if not len(per_group):
            return np.zeros(self.size)
        return np.where(self.group >= 0, per_group[self.group], 0.0)

    def minus_groups(self, values: Floats, per_group: Floats) -> Floats:
        """Return `values` minus the value of each variable's group."""
        if not self.groups:
            return values
        if self.ungrouped == 0 and self.groups == 1:  # without an array of equal numbers
            return np.asarray(values - per_group[0])
        return values - self.expand_groups(per_group)

    def _check_feasible(self) -> None:
        if self.zero_is_feasible:
            return
        if not self.facts.zero_fits and len(crossed := np.flatnonzero(self.lower > self.upper)):
            raise InfeasibleProblemError(f"variable {crossed[0]} has its lower bound above its upper bound")
        facts = self.facts
        if facts.bounded and facts.room > GROUP_SUM_TOLERANCE * (facts.largest_total + self.size * facts.largest_bound):
            return  # totals further from the ends than any rounding error
        least, most = self.group_sums(self.lower), self.group_sums(self.upper)
        below, above = (self._sum_slack(bounds) for bounds in (self.lower, self.upper))
        for g in range(self.groups):
            if not least[g] - below[g] <= self.total[g] <= most[g] + above[g]:
                raise InfeasibleProblemError(
                    f"group {g} must sum to {self.total[g]:g}, but its bounds only allow {least[g]:g} to {most[g]:g}"
                )
        close = np.flatnonzero((self.total < least + below) | (self.total > most - above))
        if len(close):
            object.__setattr__(self, "total", self._reachable_totals(close))

    def _sum_slack(self, bounds: Floats) -> Floats:
        """Return by how much each group's total may exceed the sum of its bounds: rounding errors of both."""
        sizes = self.group_sums(np.abs(bounds))
        return GROUP_SUM_TOLERANCE * (np.abs(self.total) + np.where(np.isfinite(sizes), sizes, 0.0))

    def _reachable_totals(self, close: Indices) -> Floats:
        """Return the totals, of which those of the groups `close` are replaced by the nearest that the bounds allow.

        With ν = 1 every variable is at its bound, and the sum of the bounds is the total, except for rounding. If the
        total were beyond it, no point would satisfy the constraints: the optimum would not exist, and no bound on it.
        """
        total = self.total.copy()
        for g in close.tolist():
            members = self.members(g)
            total[g] = -_at_most(-float(total[g]), -self.lower[members])
            total[g] = _at_most(float(total[g]), self.upper[members])
        return total


def _at_most(total: float, bounds: Floats) -> float:
    """Return the largest number that is at most `total` and the exact sum of the bounds."""
    negated = (-bounds).tolist()
    if not (isfinite(bounds.sum()) and fsum([total, *negated]) > 0):
        return total
    nearest = fsum(bounds.tolist())
    return nearest if fsum([nearest, *negated]) <= 0 else nextafter(nearest, -inf)


def _sums(group: NDArray[np.int32], values: Floats, count: int) -> Floats:
    return np.bincount(group, weights=values, minlength=count).astype(np.float64, copy=False)
