"""The estimator of a machine that was trained, or read from a file, without scikit-learn."""

from __future__ import annotations

from typing import Any

from maxmargin import estimators
from maxmargin.machines.base import Machine


def as_estimator(machine: Machine) -> Any:
    """Return the estimator with the parameters and the fitted attributes of a machine."""
    kind = getattr(estimators, type(machine).__name__)
    estimator = kind.__new__(kind)
    vars(estimator).update(vars(machine))
    return estimator
