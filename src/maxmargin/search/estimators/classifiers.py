"""Classifiers that choose their parameters: validation of labels, accuracy, stratified folds."""

from __future__ import annotations

from typing import Any

from maxmargin._typing import Floats
from maxmargin.machines.validation.training_data import number_classes, single_class_message
from maxmargin.search.estimators.cross_validated import CrossValidatedEstimator


class SearchingClassifier(CrossValidatedEstimator):
    """Base of the classifiers that choose their parameters."""

    _default_scoring = "accuracy"

    def _check_data(self, template: Any, X: Any, y: Any) -> tuple[Any, Any]:
        checked: tuple[Any, Any] = validator(template)(X, y)
        return checked

    def _check_labels(self, template: Any, y: Any, weights: Floats) -> None:
        template._validate_labels(y)
        number_classes(y, weights, single_class_message)

    def _is_stratified(self, y: Any) -> bool:
        return True


def validator(template: Any) -> Any:
    """Return the method of an estimator that validates samples and targets."""
    return getattr(template, "_check_training_data", template._validate_pairs)
