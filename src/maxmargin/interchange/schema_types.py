"""Descriptions of attributes: a type, and sizes with names that must agree wherever a name comes up."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse


class Sizes(dict[str, int]):
    """Named sizes. The first mention sets one, all others must agree."""

    def agree(self, names: tuple[str | int, ...], shape: tuple[int, ...]) -> bool:
        """Whether an array of this shape has the named sizes."""
        return len(names) == len(shape) and all(
            (name if isinstance(name, int) else self.setdefault(name, size)) == size
            for name, size in zip(names, shape, strict=True)
        )


Check = Callable[[Any, Sizes], bool]


def floats(*names: str | int) -> Check:
    """Describe an array of finite numbers."""
    return lambda value, sizes: is_floats(value) and sizes.agree(names, value.shape)


def matrix(*names: str | int, single: bool = False) -> Check:
    """Describe a matrix of finite numbers, dense or of compressed rows, in double or also in single precision."""

    def check(value: Any, sizes: Sizes) -> bool:
        entries = value.data if sparse.issparse(value) else value
        return is_floats(entries, single) and sizes.agree(names, value.shape)

    return check


def whole(*names: str | int, below: str | None = None) -> Check:
    """Describe an array of whole numbers of at least 0, and below a named size."""

    def check(value: Any, sizes: Sizes) -> bool:
        good = isinstance(value, np.ndarray) and value.dtype == np.int32 and sizes.agree(names, value.shape)
        return good and is_within(value, 2**31 if below is None else sizes.get(below, 2**31))

    return check


def number(value: Any, sizes: Sizes) -> bool:
    """Describe one finite number."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and bool(np.isfinite(float(value)))


def count(name: str | None = None) -> Check:
    """Describe one whole number of at least 0, or a named size of at least 1."""
    least = 0 if name is None else 1

    def check(value: Any, sizes: Sizes) -> bool:
        good = isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) < 2**62
        return good and (name is None or sizes.agree((name,), (int(value),)))

    return check


def is_floats(value: Any, single: bool = False) -> bool:
    """Whether it is an array of finite numbers, in double or also in single precision."""
    good = isinstance(value, np.ndarray) and value.dtype in ((np.float64, np.float32) if single else (np.float64,))
    return good and bool(np.isfinite(value).all())


def is_within(values: Any, end: int) -> bool:
    """Whether all are at least 0 and below the end."""
    return not values.size or (int(values.min()) >= 0 and int(values.max()) < end)
