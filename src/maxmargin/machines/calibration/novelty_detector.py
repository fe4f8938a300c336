"""Methods of novelty detectors: decision values, scores, predictions and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.machines.calibration.probabilities import check_probabilities
from maxmargin.machines.validation.availability import available_if
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.models.calibration import one_class_probabilities

#: A decision value that small, relative to the offset, is a rounding error: the sample lies on the boundary.
BOUNDARY_ROUNDING = 1e-10


class NoveltyDetector:
    """Mixin of the one-class estimators."""

    # Defined by the estimator.
    offset_: Any
    density_marks_: Any
    _decide: Any
    _not_fitted_error: type[Exception]

    @following_samples
    def decision_function(self, X: Any) -> Floats:
        """Return the signed distance from the boundary: positive inside, negative outside, 0 on it."""
        return rounded(self._decide(X).ravel(), self.offset_)

    @following_samples
    def score_samples(self, X: Any) -> Floats:
        """Return the decision function without its offset."""
        return np.asarray(self.decision_function(X) + self.offset_)

    @following_samples
    def predict(self, X: Any) -> Any:
        """Return 1 for samples inside, −1 for those outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    @available_if(check_probabilities)
    @following_samples
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of each sample to be inside and to be outside, in this order.

        They sum to 1, rise and fall with the decision function, and are one half at the boundary, so that ``predict``
        and the more probable answer agree. Within the training data the probability to be inside grows by a tenth with
        every fifth of the samples on one side of the boundary.
        """
        decision = self.decision_function(X)
        if "density_marks_" not in self.__dict__:
            raise self._not_fitted_error("predict_proba is not available when fitted with probability=False")
        return one_class_probabilities(decision, self.density_marks_)


def rounded(decision: Floats, offset: Floats) -> Floats:
    """Return decision values with those that differ from 0 by rounding set to 0."""
    decision[np.abs(decision) <= BOUNDARY_ROUNDING * np.abs(offset)] = 0.0
    return decision
