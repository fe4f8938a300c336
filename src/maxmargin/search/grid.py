"""Grids of the cost C and the kernel's width γ: evenly spaced logarithms, as LIBSVM's guide recommends.

What a machine learns changes with the order of magnitude of C and γ, so a grid has a constant factor from a value to
the next. A finer grid around the best point so far has the square root of that factor (Hsu, Chang & Lin: A practical
guide to support vector classification, 2003).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

#: LIBSVM's ranges for scaled data.
COSTS = (2.0**-5, 2.0**15, 4.0)
WIDTHS = (2.0**-15, 2.0**3, 4.0)

#: More values than that on one axis are a slip of the pen.
MOST_VALUES = 1000

#: The kernels, by name, whose values depend on γ.
WITH_GAMMA = ("rbf", "gaussian", "poly", "polynomial", "sigmoid", "laplacian", "chi_squared")


class Point(NamedTuple):
    """A cost and a width; the width is None where the kernel has none."""

    C: float
    gamma: float | None

    def __str__(self) -> str:
        return f"C = {number(self.C)}" + ("" if self.gamma is None else f", gamma = {number(self.gamma)}")


def powers(low: float, high: float, factor: float) -> tuple[float, ...]:
    """Return low, low·factor, low·factor², … up to `high`.

    Examples
    --------
    >>> from maxmargin.search import powers
    >>> powers(0.25, 20, 4)
    (0.25, 1.0, 4.0, 16.0)
    """
    if not (0 < low <= high < math.inf):
        raise ValueError(f"a range goes up from a number above 0, not from {low:g} to {high:g}")
    if not 1 < factor < math.inf:
        raise ValueError(f"the factor from a value to the next must be above 1, not {factor:g}")
    steps = math.floor(math.log(high / low) / math.log(factor) + 1e-9)
    if steps >= MOST_VALUES:
        raise ValueError(f"from {low:g} to {high:g} by {factor:g} there are more than {MOST_VALUES} values")
    return tuple(low * factor**step for step in range(steps + 1))


def check_values(name: str, values: Iterable[float]) -> tuple[float, ...]:
    """Return the values of an axis, each once and in order."""
    found = sorted({float(value) for value in values})
    if not found or not all(0 < value < math.inf for value in found):
        raise ValueError(f"{name} must be numbers above 0, at least one, not {found}")
    return tuple(found)


def has_gamma(estimator: Any) -> bool:
    """Whether the kernel of an estimator depends on its γ."""
    parameters = estimator.get_params(deep=False)
    return "gamma" in parameters and parameters.get("kernel") in WITH_GAMMA


def grid_of(costs: Sequence[float], widths: Sequence[float | None]) -> tuple[Point, ...]:
    """Return all points, those with a small cost first: they are the quickest to train."""
    return tuple(Point(cost, width) for cost in costs for width in widths)


def around(best: Point, of_cost: float, of_width: float, known: Sequence[Point] = ()) -> tuple[Point, ...]:
    """Return the points a factor away from the best one, in one direction or in both, without those known."""
    costs = [best.C / of_cost, best.C, best.C * of_cost]
    widths = [None] if best.gamma is None else [best.gamma / of_width, best.gamma, best.gamma * of_width]
    return tuple(point for point in grid_of(costs, widths) if not any(_same(point, other) for other in known))


def _same(point: Point, other: Point) -> bool:
    """Whether two points are equal up to rounding."""
    return all(a == b or (a and b and math.isclose(a, b)) for a, b in zip(point, other, strict=True))


def step_of(values: Sequence[float]) -> float:
    """Return the typical factor from a value of an axis to the next; 4 if there is only one."""
    ordered = sorted(set(values))
    factor = (ordered[-1] / ordered[0]) ** (1.0 / (len(ordered) - 1)) if len(ordered) > 1 else 4.0
    return float(f"{factor:.12g}")  # 4 and not its neighbour


def number(value: float) -> str:
    """Return a number for people: a power of two as such, fractions with three digits."""
    value = float(value)
    exponent = round(math.log2(value), 9)
    if abs(exponent) > 3 and (8 * exponent).is_integer():
        return f"2^{exponent:g}"
    return f"{value:.0f}" if value.is_integer() and value < 1e5 else f"{value:.3g}"
