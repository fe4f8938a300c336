"""Leave-one-out cross-validation: every sample is predicted by a model that was trained on all others.

The score is computed once from all held-out predictions, so that scores which need several samples, such as R² or the
area under a curve, are defined; accuracies and mean errors equal the mean over single samples.

The kernel machines of `maxmargin.leave_one_out` need one fit and what follows from it; others are fitted without each
sample. Also fitted are machines whose parameters depend on the samples (``class_weight="balanced"``), those with a
class of one sample, and those whose probabilities are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _safe_split

from maxmargin.deadline import TimeLimitReachedError, check_deadline
from maxmargin.search.fold_scoring import SCORERS, FoldScorer
from maxmargin.search.grid import has_gamma
from maxmargin.selection.leave_one_out import MACHINES, leave_one_out

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


def held_out_outputs(
    estimator: Any, X: Any, y: Any, fit_arguments: dict[str, Any], values: bool = True
) -> HeldOutOutputs:
    """Return the output for each sample of the model that is trained on all others.

    Parameters
    ----------
    estimator : estimator
        With all parameters. It is not modified.
    X, y
        Validated samples, and their labels or targets, if any.
    fit_arguments : dict
        Arguments of ``fit`` with a value for each sample, such as sample_weight.
    values : bool, default=True
        Whether decision values are needed, besides predictions.
    """
    if follows_from_a_fit(estimator, y, fit_arguments):
        return _outputs_of_a_fit(estimator, X, y, fit_arguments, values)
    return _outputs_of_fits(estimator, X, y, fit_arguments)


def follows_from_a_fit(estimator: Any, y: Any, fit_arguments: dict[str, Any]) -> bool:
    """Whether the held-out outputs follow from a fit on all samples."""
    parameters = estimator.get_params(deep=False)
    known = type(estimator).__name__ in MACHINES and parameters.get("multi_class", "ovo") in ("ovo", "ovr")
    own = parameters.get("probability", False) in (False, "deprecated") and parameters.get("class_weight") != "balanced"
    fixed = "nu" not in parameters and not (has_gamma(estimator) and isinstance(parameters["gamma"], str))
    if not known or not own or not fixed or not all((np.asarray(part) > 0).all() for part in fit_arguments.values()):
        return False
    return not is_classifier(estimator) or int(np.unique(y, return_counts=True)[1].min()) > 1


def _outputs_of_a_fit(estimator: Any, X: Any, y: Any, fit_arguments: dict[str, Any], values: bool) -> HeldOutOutputs:
    """Return the outputs that follow from a fit on all samples."""
    model = copy(estimator).fit(X, y, **fit_arguments)
    found = leave_one_out(model, values=values)
    if not found.status.converged:
        raise TimeLimitReachedError
    outputs = {"predict": found.predictions}
    if found.decision_function is not None and hasattr(model, "decision_function"):
        outputs["decision_function"] = found.decision_function
    return HeldOutOutputs(estimator, outputs, np.unique(y) if is_classifier(estimator) else None)


def _outputs_of_fits(estimator: Any, X: Any, y: Any, fit_arguments: dict[str, Any]) -> HeldOutOutputs:
    """Return the outputs of a fit without each sample."""
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
        values = self.scoring.scorer not in SCORERS.values()
        return held_out_outputs(estimator, self.X, self.y, self.fit_arguments, values)
