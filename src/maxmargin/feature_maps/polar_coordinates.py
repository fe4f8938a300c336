"""Polar and hyperspherical coordinates: a ring around the centre becomes linearly separable.

In two dimensions x = r cos θ, y = r sin θ. In d dimensions the hyperspherical coordinates,

    x_1 = r cos φ_1,   x_2 = r sin φ_1 cos φ_2,   …,   x_{d−1} = r sin φ_1 … sin φ_{d−2} cos φ_{d−1},
                                                       x_d     = r sin φ_1 … sin φ_{d−2} sin φ_{d−1},

with φ_1 … φ_{d−2} in [0, π] and φ_{d−1} in (−π, π], which is θ for d = 2. An undefined angle is 0 or π.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from maxmargin.feature_maps.feature_map import FeatureMap


class PolarCoordinates(FeatureMap):
    """Map each sample to polar (hyperspherical) coordinates around a centre.

    The first feature is the radius, the others are angles in radians: in two dimensions the angle from the first axis
    towards the second, in (−π, π]; in d dimensions d − 1 hyperspherical angles, all but the last in [0, π].

    Parameters
    ----------
    center : array-like of shape (n_features,) or "mean", optional
        The point of radius 0: the origin by default, "mean" for the mean of the training samples.

    Attributes
    ----------
    center_ : float array of shape (n_features,)

    Examples
    --------
    >>> from maxmargin.feature_maps import PolarCoordinates
    >>> PolarCoordinates().fit_transform([[3.0, 4.0], [0.0, -2.0]]).round(4)
    array([[ 5.    ,  0.9273],
           [ 2.    , -1.5708]])
    """

    _accepts_sparse = False

    def __init__(self, center: Any = None) -> None:
        self.center = center

    def fit(self, X: Any, y: Any = None) -> PolarCoordinates:
        """Determine the centre."""
        X = self._validate_training_data(X)
        if X.shape[1] < 2:
            raise ValueError("PolarCoordinates requires at least 2 features, but n_features = 1")
        self.center_ = self._find_center(X).astype(X.dtype)
        self._n_features_out = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """Return radius and angles of each sample."""
        X = self._validate_samples(X)
        # Adding 0 turns −0 into +0, because arctan2 distinguishes them.
        shifted = X - self.center_.astype(X.dtype) + X.dtype.type(0)
        # Column k holds the norm of the coordinates k to d; the last column keeps its sign.
        norms = np.hypot.accumulate(shifted[:, ::-1], axis=1)[:, ::-1]
        features = np.empty_like(shifted)
        features[:, 0] = norms[:, 0]
        np.arctan2(norms[:, 1:], shifted[:, :-1], out=features[:, 1:])
        return features

    def inverse_transform(self, X: Any) -> Any:
        """Return the Cartesian coordinates of points given by radius and angles."""
        check_is_fitted(self)
        X = check_array(X, dtype=(np.float64, np.float32))
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have {self.n_features_in_} columns (the radius and the angles), not {X.shape[1]}")
        samples = np.empty_like(X)
        remaining = X[:, 0].copy()
        for k in range(X.shape[1] - 1):
            samples[:, k] = remaining * np.cos(X[:, k + 1])
            remaining *= np.sin(X[:, k + 1])
        samples[:, -1] = remaining
        return samples + self.center_.astype(X.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return "radius", then "angle" or "angle1", "angle2", …."""
        check_is_fitted(self)
        many = self.n_features_in_ > 2
        names = [f"angle{k}" if many else "angle" for k in range(1, self.n_features_in_)]
        return np.array(["radius", *names], dtype=object)

    def _find_center(self, X: Any) -> Any:
        if self.center is None:
            return np.zeros(X.shape[1])
        if isinstance(self.center, str):
            if self.center != "mean":
                raise ValueError(f"center must be 'mean', an array or None, not {self.center!r}")
            return X.mean(axis=0, dtype=np.float64)
        center = check_array(self.center, ensure_2d=False, dtype=np.float64, input_name="center")
        if center.shape != (X.shape[1],):
            raise ValueError(f"center must have shape ({X.shape[1]},), one number per feature, not {center.shape}")
        return center
