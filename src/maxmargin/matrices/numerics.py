"""Checks for non-finite values, weights of any magnitude, and inner products that start no BLAS threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._typing import Floats

NON_FINITE_KERNEL_MESSAGE = (
    "the kernel gave values that are not finite; scale the data (for example with StandardScaler), or choose a smaller "
    "degree, gamma or coef0"
)
#: The beginning of this message is scikit-learn's.
NON_FINITE_MESSAGE = f"The dual coefficients or intercepts are not finite: {NON_FINITE_KERNEL_MESSAGE}"


def check_finite(values: NDArray[Any], message: str = NON_FINITE_MESSAGE) -> None:
    """Raise ValueError if a value is infinite or NaN."""
    # A sum is faster than a test of every value, and finite if all values are and the sum does not overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if not np.isfinite(total) and not np.isfinite(values).all():
        raise ValueError(message)


def ordinary_weights(weights: Floats) -> Floats:
    """Return weights times a power of two, the largest of them about 1: their means are the same, without overflow."""
    with np.errstate(under="ignore"):
        scaled: Floats = np.ldexp(weights, -int(np.frexp(weights.max(initial=0.0))[1]))
    return scaled


def inner(left: Floats, right: Floats) -> float:
    """Return the inner product of two vectors, infinite without a warning if it overflows float64.

    It runs on this thread: BLAS would wake its own for vectors of ten thousand numbers, and they spin for a tenth of a
    second afterwards, which slows down other threads (a fit of 20 ms took 35 ms).
    """
    return float(np.einsum("i,i->", left, right))
