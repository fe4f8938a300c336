"""Validation of constructor parameters, in ``fit``."""

from __future__ import annotations

from math import inf, isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(
    name: str, value: Any, *, least: float | None = None, above: float | None = None, infinite: bool = False
) -> float:
    """Return `value` as a float, or raise: it must be a number in the given range."""
    good = type(value) is float or (isinstance(value, Real) and not isinstance(value, bool | np.bool_))
    if type(value) is not float and good and isinstance(value, Integral) and abs(int(value)) >= 2**1023:
        raise ValueError(f"{name} overflows float64")
    good = good and (isfinite(value) or (infinite and float(value) == inf))
    good = good and (least is None or float(value) >= least) and (above is None or float(value) > above)
    if not good:
        wanted = "a number"
        if above is not None:
            wanted += f" above {above:g}"
        if least is not None:
            wanted += f" of at least {least:g}"
        raise ValueError(f"{name} must be {wanted}, not {value!r}")
    return float(value)


def check_fraction(name: str, value: Any) -> float:
    """Return `value` as a float, or raise: it must be above 0 and at most 1."""
    fraction = check_number(name, value, above=0)
    if fraction > 1:
        raise ValueError(f"{name} must be a number above 0 and at most 1, not {value!r}")
    return fraction


def check_count(name: str, value: Any, least: int) -> int:
    """Return `value` as an int, or raise: it must be a whole number of at least `least`."""
    whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool | np.bool_))
    if not whole or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return `value` as a bool, or raise."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value`, or raise with the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value
