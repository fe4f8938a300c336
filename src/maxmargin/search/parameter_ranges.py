"""The values of C, γ, ε and ν that are searched: those of the user, or as many as asked for within a range.

The ranges are logarithmic, and relative to the data where the best value is: γ to 1 / (features · variance of X), C
and ε of a regression to the standard deviation of the targets. So a change of units changes nothing.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.machines.validation.training_data import weighted_variance
from maxmargin.search.grid import Axes, check_values, has_gamma

#: From, to. Those of C and γ are those of `choose_estimator`.
C_RANGE = (2.0**-5, 2.0**11)
LINEAR_C_RANGE = (2.0**-11, 2.0**9)
GAMMA_RANGE = (2.0**-8, 2.0**4)
EPSILON_RANGE = (0.01, 1.0)
NU_RANGE = (0.01, 0.5)

#: A deviation of this fraction of the largest target is rounding: all targets are equal.
MAX_ROUNDING = 1e-14

#: Plural → parameter.
PARAMETERS = {"Cs": "C", "gammas": "gamma", "epsilons": "epsilon", "nus": "nu"}


def search_axes(estimator: Any, given: dict[str, Any], X: Any, targets: Any, weights: Floats) -> Axes:
    """Return the values of each parameter that is searched for.

    Parameters
    ----------
    estimator : estimator
        Whose parameters they are.
    given : dict
        A number of values, or values, by "Cs", "gammas", "epsilons" and "nus".
    X, weights
        Validated samples, and their weights.
    targets : array or None
        The targets of a regression.
    """
    axes = {}
    for plural, wanted in given.items():
        name = PARAMETERS[plural]
        if name == "gamma" and not has_gamma(estimator):
            if _count(plural, wanted) is None:
                raise ValueError("gammas are for kernels that have a gamma: rbf, poly, sigmoid, laplacian, chi_squared")
            continue
        count = _count(plural, wanted)
        if count is None:
            axes[name] = check_values(plural, wanted, most=1.0 if name == "nu" else math.inf)
            continue
        low, high = _range(name, estimator)
        unit = _unit(name, estimator, X, targets, weights)
        # One value is the middle of the range.
        ends = (math.sqrt(low * high),) * 2 if count == 1 else (low, high)
        # Without rounding errors of the geometric sequence, 0.49999999999999994 instead of 0.5.
        axes[name] = tuple(unit * float(f"{value:.12g}") for value in np.geomspace(*ends, count))
    return axes


def _count(plural: str, wanted: Any) -> int | None:
    """Return the number of values that is wanted, None if the values are given."""
    if isinstance(wanted, str) or not (hasattr(wanted, "__iter__") or isinstance(wanted, Integral)):
        also = ", or 'ard'" if plural == "gammas" else ""
        raise ValueError(f"{plural} must be a number of values, or a list of values{also}, not {wanted!r}")
    if not isinstance(wanted, Integral):
        return None
    if isinstance(wanted, bool) or wanted < 1:
        raise ValueError(f"{plural} must be at least 1 if it is a number of values, not {wanted!r}")
    return int(wanted)


def _range(name: str, estimator: Any) -> tuple[float, float]:
    """Return the ends of a range."""
    linear = not hasattr(estimator, "kernel")
    return {
        "C": LINEAR_C_RANGE if linear else C_RANGE,
        "gamma": GAMMA_RANGE,
        "epsilon": EPSILON_RANGE,
        "nu": NU_RANGE,
    }[name]


def _unit(name: str, estimator: Any, X: Any, targets: Any, weights: Floats) -> float:
    """Return what a range is relative to."""
    if name == "gamma":
        variance = weighted_variance(X, weights)
        return 1.0 / (X.shape[1] * variance) if 0 < variance < math.inf else 1.0
    if targets is None or name == "nu" or (name == "C" and estimator.loss.startswith("squared")):
        return 1.0
    columns = np.asarray(targets, dtype=np.float64).reshape(len(weights), -1)
    share = weights / weights.sum()
    deviation = math.sqrt(float((share @ (columns - share @ columns) ** 2).mean()))
    rounding = MAX_ROUNDING * float(np.abs(columns).max())
    return deviation if rounding < deviation < math.inf else 1.0
