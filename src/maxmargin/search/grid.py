"""Logarithmic grids of C and the kernel coefficient γ, as LIBSVM's guide recommends.

The ratio of neighbouring values is constant. A refinement around the best point uses the square root of that ratio
(Hsu, Chang & Lin: A practical guide to support vector classification, 2003).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

#: LIBSVM's ranges for scaled data: from, to, ratio.
C_RANGE = (2.0**-5, 2.0**15, 4.0)
GAMMA_RANGE = (2.0**-15, 2.0**3, 4.0)

#: Limit on the values of one axis, against mistyped ranges.
MAX_AXIS_VALUES = 1000

#: Names of the kernels that have a γ.
KERNELS_WITH_GAMMA = ("rbf", "gaussian", "poly", "polynomial", "sigmoid", "laplacian", "chi_squared")


class Point(NamedTuple):
    """Values of C and γ; γ is None if it is not searched for."""

    C: float
    gamma: float | None

    def __str__(self) -> str:
        return f"C = {format_value(self.C)}" + ("" if self.gamma is None else f", gamma = {format_value(self.gamma)}")


def powers(low: float, high: float, factor: float) -> tuple[float, ...]:
    """Return low, low·factor, low·factor², … up to `high`.

    Examples
    --------
    >>> from maxmargin.search import powers
    >>> powers(0.25, 20, 4)
    (0.25, 1.0, 4.0, 16.0)
    """
    if not (0 < low <= high < math.inf):
        raise ValueError(f"a range must ascend from a number above 0, not go from {low:g} to {high:g}")
    if not 1 < factor < math.inf:
        raise ValueError(f"the factor of a range must be above 1, not {factor:g}")
    steps = math.floor(math.log(high / low) / math.log(factor) + 1e-9)
    if steps >= MAX_AXIS_VALUES:
        raise ValueError(
            f"the range from {low:g} to {high:g} with factor {factor:g} has more than {MAX_AXIS_VALUES} values"
        )
    return tuple(low * factor**step for step in range(steps + 1))


def check_values(name: str, values: Iterable[float]) -> tuple[float, ...]:
    """Return the distinct values of an axis in ascending order."""
    found = sorted({float(value) for value in values})
    if not found or not all(0 < value < math.inf for value in found):
        raise ValueError(f"{name} must be numbers above 0, at least one, not {found}")
    return tuple(found)


def has_gamma(estimator: Any) -> bool:
    """Whether the kernel of an estimator depends on its γ."""
    parameters = estimator.get_params(deep=False)
    return "gamma" in parameters and parameters.get("kernel") in KERNELS_WITH_GAMMA


def grid_points(costs: Sequence[float], widths: Sequence[float | None]) -> tuple[Point, ...]:
    """Return all combinations, in ascending order of C: small values train fastest."""
    return tuple(Point(cost, width) for cost in costs for width in widths)


def neighbours(best: Point, cost_ratio: float, width_ratio: float, known: Sequence[Point] = ()) -> tuple[Point, ...]:
    """Return the neighbours of the best point at the given ratios, diagonals included, without the known points."""
    costs = [best.C / cost_ratio, best.C, best.C * cost_ratio]
    widths = [None] if best.gamma is None else [best.gamma / width_ratio, best.gamma, best.gamma * width_ratio]
    return tuple(point for point in grid_points(costs, widths) if not any(_is_close(point, other) for other in known))


def _is_close(point: Point, other: Point) -> bool:
    """Whether two points are equal up to rounding."""
    return all(a == b or (a and b and math.isclose(a, b)) for a, b in zip(point, other, strict=True))


def typical_ratio(values: Sequence[float]) -> float:
    """Return the geometric mean of the ratios of neighbouring values; 4 for a single value."""
    ordered = sorted(set(values))
    factor = (ordered[-1] / ordered[0]) ** (1.0 / (len(ordered) - 1)) if len(ordered) > 1 else 4.0
    return float(f"{factor:.12g}")  # remove rounding errors


def format_value(value: float) -> str:
    """Return a parameter value as text: powers of two as such, others with three significant digits."""
    value = float(value)
    exponent = round(math.log2(value), 9)
    if abs(exponent) > 3 and (8 * exponent).is_integer():
        return f"2^{exponent:g}"
    return f"{value:.0f}" if value.is_integer() and value < 1e5 else f"{value:.3g}"
