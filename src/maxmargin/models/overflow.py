"""Decision values beyond the range of float64: an error that says so, instead of NaN or a wrong class."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats


def ignored_overflow() -> Any:
    """Return a context in which overflow gives infinities and NaN without a warning; `check_finite` finds them."""
    return np.errstate(over="ignore", invalid="ignore")


def check_finite(decisions: Floats) -> Floats:
    """Return decision values, a row for each sample, or raise if one is not finite."""
    if not np.isfinite(decisions).all():
        sample = int(np.argmin(np.isfinite(decisions).reshape(len(decisions), -1).all(axis=1)))
        raise ValueError(
            f"the decision value of sample {sample} exceeds the range of float64: its features, or the numbers of the "
            "model, are too large; scale the features as in training"
        )
    return decisions
