"""The noise of regression targets: the scale of a Laplace distribution of cross-validated errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.machines.validation.availability import available_if
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.parameters import check_number
from maxmargin.models.calibration import interval_half_width


def check_noise(estimator: Any) -> bool:
    """Raise unless the estimator was asked to estimate the noise."""
    if not estimator.noise:
        raise AttributeError("predict_interval is not available when noise=False")
    return True


class NoiseIntervals:
    """Methods of regressors with ``noise=True``."""

    # Defined by the regressor.
    noise: Any
    noise_scale_: Any
    predict: Any
    _not_fitted_error: type[Exception]

    @available_if(check_noise)
    @following_samples
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Return the interval that holds the target of each sample with probability `coverage`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        coverage : float, default=0.9
            At least 0, below 1.

        Returns
        -------
        array of shape (n_samples, 2), or (n_samples, n_outputs, 2)
            Lower and upper ends: the function, minus and plus the same half-width for all samples.
        """
        if check_number("coverage", coverage, least=0) >= 1:
            raise ValueError(f"coverage must be a number of at least 0 and below 1, not {coverage!r}")
        middle = self.predict(X)
        if "noise_scale_" not in self.__dict__:
            raise self._not_fitted_error(
                "predict_interval is not available when fitted with noise=False, or when fit was interrupted"
            )
        half = interval_half_width(self.noise_scale_, coverage)
        return np.stack([middle - half, middle + half], axis=-1)
