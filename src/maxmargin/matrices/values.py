"""The one complaint about matrix values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite: the kernel gave values that are not finite; scale the data "
    "(for example with StandardScaler), or choose a smaller degree, gamma or coef0"
)


def check_finite(values: NDArray[Any]) -> None:
    """Raise one clear error if a value is infinite or not a number."""
    # A sum is quicker than a look at every value, and finite if they all are and are not huge.
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if not np.isfinite(total) and not np.isfinite(values).all():
        raise ValueError(NOT_FINITE)
