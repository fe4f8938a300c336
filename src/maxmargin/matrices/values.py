"""The one complaint about values that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

KERNEL_NOT_FINITE = (
    "the kernel gave values that are not finite; scale the data (for example with StandardScaler), or choose a smaller "
    "degree, gamma or coef0"
)
NOT_FINITE = f"The dual coefficients or intercepts are not finite: {KERNEL_NOT_FINITE}"


def check_finite(values: NDArray[Any], complaint: str = NOT_FINITE) -> None:
    """Raise one clear error if a value is infinite or not a number."""
    # A sum is quicker than a look at every value, and finite if they all are and are not huge.
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if not np.isfinite(total) and not np.isfinite(values).all():
        raise ValueError(complaint)
