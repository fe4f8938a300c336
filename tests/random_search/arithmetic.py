"""Numbers with more digits than float64, with one interface for arrays of them.

`EXTENDED` is NumPy's longdouble: on x86-64 a significand of 64 bits, 2,048 times finer than float64, and exponents up
to 10⁴⁹³². `MULTIPLE` has arrays of mpmath numbers with a significand of 320 bits, for what extended precision leaves
open.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

#: Bits of the significand of the numbers of `MULTIPLE`.
MULTIPLE_BITS = 320


class Extended:
    """Arrays of longdouble numbers."""

    #: The relative error of one operation.
    unit = np.finfo(np.longdouble).eps / 2

    def array(self, values: Any) -> Any:
        """Return float64 or float32 values, which are exact in this arithmetic."""
        return np.asarray(values).astype(np.longdouble)

    def exp(self, values: Any) -> Any:
        """Return eˣ of each value."""
        return np.exp(values)

    def tanh(self, values: Any) -> Any:
        """Return tanh x of each value."""
        return np.tanh(values)

    def dot(self, left: Any, right: Any) -> Any:
        """Return the matrix product."""
        return left @ right


class Multiple:
    """Arrays of mpmath numbers."""

    unit = mpmath.mpf(2) ** -MULTIPLE_BITS

    def __init__(self) -> None:
        mpmath.mp.prec = MULTIPLE_BITS
        self._exp, self._tanh = np.frompyfunc(mpmath.exp, 1, 1), np.frompyfunc(mpmath.tanh, 1, 1)
        self._number = np.frompyfunc(lambda value: mpmath.mpf(float(value)), 1, 1)

    def array(self, values: Any) -> Any:
        """Return float64 or float32 values, which are exact in this arithmetic."""
        return np.asarray(self._number(np.asarray(values)), dtype=object)

    def exp(self, values: Any) -> Any:
        """Return eˣ of each value."""
        return self._exp(values)

    def tanh(self, values: Any) -> Any:
        """Return tanh x of each value."""
        return self._tanh(values)

    def dot(self, left: Any, right: Any) -> Any:
        """Return the matrix product."""
        return np.dot(left, right)


#: Whether longdouble has at least the 64 bits of x86-64; elsewhere everything is computed in multiple precision.
EXTENDED_IS_WIDER = np.finfo(np.longdouble).eps <= 2.0**-63

EXTENDED, MULTIPLE = Extended(), Multiple()
