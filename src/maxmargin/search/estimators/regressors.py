"""Regressions that choose their parameters: validation of targets, R²."""

from __future__ import annotations

from typing import Any

from maxmargin.machines.validation.training_data import check_targets
from maxmargin.search.estimators.classifiers import validator
from maxmargin.search.estimators.cross_validated import CrossValidatedEstimator


class SearchingRegressor(CrossValidatedEstimator):
    """Base of the regressions that choose their parameters."""

    _default_scoring = "r2"

    def _check_data(self, template: Any, X: Any, y: Any) -> tuple[Any, Any]:
        return check_targets(validator(template), X, y)

    def _units(self, targets: Any) -> Any:
        return targets
