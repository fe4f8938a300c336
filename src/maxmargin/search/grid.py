"""Logarithmic grids of C, the kernel coefficient γ, ε and ν, as LIBSVM's guide recommends.

The ratio of neighbouring values is constant. A refinement around the best point uses the square root of that ratio
(Hsu, Chang & Lin: A practical guide to support vector classification, 2003).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

#: LIBSVM's ranges for scaled data: from, to, ratio.
C_RANGE = (2.0**-5, 2.0**15, 4.0)
GAMMA_RANGE = (2.0**-15, 2.0**3, 4.0)

#: Limit on the values of one axis, against mistyped ranges.
MAX_AXIS_VALUES = 1000

#: Names of the kernels that have a γ.
KERNELS_WITH_GAMMA = ("rbf", "gaussian", "poly", "polynomial", "sigmoid", "laplacian", "chi_squared")


class Point(NamedTuple):
    """Values of the parameters of an estimator; None for those that are not searched for.

    γ is a number, or a tuple with one for each feature.
    """

    C: float | None = None
    gamma: Any = None
    epsilon: float | None = None
    nu: float | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The values by name, without those that are not searched for, in alphabetical order."""
        return {name: value for name, value in sorted(self._asdict().items()) if value is not None}

    @property
    def path_position(self) -> tuple[float, ...]:
        """What to sort by for a path of warm starts: other parameters first, then C from small to large."""
        return tuple(0.0 if value is None else value for value in (*self[1:], self.C))

    def __str__(self) -> str:
        named = zip(self._fields, self, strict=True)
        return ", ".join(f"{name} = {_text(value)}" for name, value in named if value is not None)


def _text(value: float | tuple[float, ...]) -> str:
    if not isinstance(value, tuple):
        return format_value(value)
    return f"of {sum(each > 0 for each in value)} of {len(value)} features"


#: Values by the names of parameters.
Axes = Mapping[str, Sequence[float]]


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


def check_values(name: str, values: Iterable[float], *, most: float = math.inf) -> tuple[float, ...]:
    """Return the distinct values of an axis, in the given order; 0 is a value of ε."""
    try:
        found = list(dict.fromkeys(float(value) for value in values))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, at least one, not {values!r}") from error
    least = "at least 0" if name == "epsilons" else "above 0"
    valid = all((value > 0 or (value == 0 and name == "epsilons")) and value <= most for value in found)
    if not found or not valid or not all(map(math.isfinite, found)):
        limit = "" if most == math.inf else f" and at most {most:g}"
        raise ValueError(f"{name} must be numbers {least}{limit}, at least one, not {found}")
    return tuple(found)


def has_gamma(estimator: Any) -> bool:
    """Whether the kernel of an estimator depends on its γ."""
    parameters = estimator.get_params(deep=False)
    return "gamma" in parameters and parameters.get("kernel") in KERNELS_WITH_GAMMA


def grid_points(axes: Axes) -> tuple[Point, ...]:
    """Return all combinations, in the order of scikit-learn's ParameterGrid: by names, the first one varies slowest."""
    names = sorted(axes)
    return tuple(Point(**dict(zip(names, values, strict=True))) for values in product(*(axes[name] for name in names)))


def neighbours(best: Point, ratios: Mapping[str, float], known: Sequence[Point] = ()) -> tuple[Point, ...]:
    """Return the neighbours of the best point at the given ratios, diagonals included, without the known points."""
    axes: dict[str, tuple[float, ...]]
    axes = {name: (value / ratios[name], value, value * ratios[name]) for name, value in best.parameters.items()}
    if best.nu is not None:
        axes["nu"] = tuple(value for value in axes["nu"] if value <= 1)
    if best.epsilon == 0:
        axes["epsilon"] = (0.0,)
    return tuple(point for point in grid_points(axes) if not any(_is_close(point, other) for other in known))


def _is_close(point: Point, other: Point) -> bool:
    """Whether two points are equal up to rounding."""
    return all(a == b or (a and b and math.isclose(a, b)) for a, b in zip(point, other, strict=True))


def typical_ratio(values: Sequence[float]) -> float:
    """Return the geometric mean of the ratios of neighbouring values above 0; 4 for a single value."""
    ordered = sorted({value for value in values if value > 0})
    factor = (ordered[-1] / ordered[0]) ** (1.0 / (len(ordered) - 1)) if len(ordered) > 1 else 4.0
    return float(f"{factor:.12g}")  # remove rounding errors


def format_value(value: float) -> str:
    """Return a parameter value as text: powers of two as such, others with three significant digits."""
    value = float(value)
    if value <= 0:
        return f"{value:g}"
    exponent = round(math.log2(value), 9)
    if abs(exponent) > 3 and (8 * exponent).is_integer():
        return f"2^{exponent:g}"
    return f"{value:.0f}" if value.is_integer() and value < 1e5 else f"{value:.3g}"
