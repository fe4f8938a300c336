"""Leave-one-out cross-validation: every sample is predicted by a model that was trained on all others.

The score is computed once from all held-out predictions, so that scores which need several samples, such as R² or the
area under a curve, are defined; accuracies and mean errors equal the mean over single samples.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _safe_split

from maxmargin.deadline import check_deadline
from maxmargin.search.fold_scoring import FoldScorer

#: The methods whose results scores are computed from, as far as an estimator has them.
OUTPUTS = ("predict", "decision_function", "predict_proba")


class HeldOutOutputs:
    """What the models that were trained without a sample say of that sample; scorers take it for an estimator.

    Parameters
    ----------
    estimator : estimator
        Whose tags they have.
    outputs : dict
        Arrays by the name of the method that returned them, a row for each sample.
    classes : array, optional
        Of a classifier.
    """

    def __init__(self, estimator: Any, outputs: dict[str, Any], classes: Any = None) -> None:
        self._tags = get_tags(estimator)
        for name, values in outputs.items():
            setattr(self, name, _returning(name, values))
        if classes is not None:
            self.classes_ = classes

    def __sklearn_tags__(self) -> Any:
        return self._tags

    def fit(self, X: Any, y: Any = None) -> HeldOutOutputs:
        """Raise: the models are trained already."""
        raise TypeError("these are the outputs of models that are trained already")


def _returning(name: str, values: Any) -> Callable[[Any], Any]:
    """Return a method of this name that returns values for all samples; scorers go by the name."""

    def method(X: Any) -> Any:
        return values

    method.__name__ = name
    return method


def leave_one_out(estimator: Any, X: Any, y: Any, fit_arguments: dict[str, Any]) -> HeldOutOutputs:
    """Return the output for each sample of the model that is trained on all others.

    Parameters
    ----------
    estimator : estimator
        With all parameters. It is not modified.
    X, y
        Validated samples, and their labels or targets, if any.
    fit_arguments : dict
        Arguments of ``fit`` with a value for each sample, such as sample_weight.
    """
    samples = X.shape[0]
    classes = np.unique(y) if is_classifier(estimator) else None
    outputs: dict[str, list[Any]] = {}
    for sample in range(samples):
        check_deadline()
        others = np.delete(np.arange(samples), sample)
        model = copy(estimator)
        training = _safe_split(model, X, y, others)
        model.fit(*training, **{name: _safe_indexing(values, others) for name, values in fit_arguments.items()})
        held_out = _safe_split(model, X, y, [sample], others)[0]
        whole = classes is None or len(model.classes_) == len(classes)
        for name in OUTPUTS if whole else OUTPUTS[:1]:  # columns of the others are those of fewer classes
            if hasattr(model, name):
                outputs.setdefault(name, []).append(getattr(model, name)(held_out)[0])
    # A class that is missing without one of its samples has no column there: only predictions are known for all.
    known = {name: np.array(values) for name, values in outputs.items() if len(values) == samples}
    return HeldOutOutputs(estimator, known, classes)


class LeaveOneOutScorer(FoldScorer):
    """Trials by leave-one-out cross-validation; the only split has all samples for testing."""

    def trained(self, estimator: Any, fold: int) -> Any:
        """Return the outputs for all samples, of models that were trained without them."""
        return leave_one_out(estimator, self.X, self.y, self.fit_arguments)
