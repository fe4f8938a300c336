"""Radius and angles in place of coordinates: what is a ring around a centre becomes a strip.

In two dimensions x = r cos θ, y = r sin θ. In d dimensions the hyperspherical coordinates,

    x_1 = r cos φ_1,   x_2 = r sin φ_1 cos φ_2,   …,   x_{d−1} = r sin φ_1 … sin φ_{d−2} cos φ_{d−1},
                                                       x_d     = r sin φ_1 … sin φ_{d−2} sin φ_{d−1},

with φ_1 … φ_{d−2} in [0, π] and φ_{d−1} in (−π, π], which is θ for d = 2. An angle that could be any is 0 or π.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted

from maxmargin.feature_maps.feature_map import FeatureMap


class PolarCoordinates(FeatureMap):
    """Map each sample to its distance from a centre and the angles at which it is seen from there.

    The first feature is the radius, the others are angles in radians: in two dimensions the one from the first axis
    towards the second, in (−π, π]; in d dimensions d − 1 hyperspherical ones, of which all but the last are in [0, π].

    Parameters
    ----------
    center : array-like of shape (n_features,) or "mean", optional
        Where the radius is 0: the origin by default, or the mean of the training samples.

    Attributes
    ----------
    center_ : float array of shape (n_features_in_,)

    Examples
    --------
    >>> from maxmargin.feature_maps import PolarCoordinates
    >>> PolarCoordinates().fit_transform([[3.0, 4.0], [0.0, -2.0]]).round(4)
    array([[ 5.    ,  0.9273],
           [ 2.    , -1.5708]])
    """

    _takes_sparse = False

    def __init__(self, center: Any = None) -> None:
        self.center = center

    def fit(self, X: Any, y: Any = None) -> PolarCoordinates:
        """Find the centre."""
        X = self._check_training(X)
        if X.shape[1] < 2:
            raise ValueError("polar coordinates need at least 2 features, but n_features = 1")
        self.center_ = self._find_center(X).astype(X.dtype)
        self._n_features_out = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """Return radius and angles of each sample."""
        X = self._check_samples(X)
        # Adding 0 turns −0 into 0, which has another angle.
        steps = X - self.center_.astype(X.dtype) + X.dtype.type(0)
        # In column k: the length of what is left of a sample from there on; in the last one with its sign.
        rest = np.hypot.accumulate(steps[:, ::-1], axis=1)[:, ::-1]
        features = np.empty_like(steps)
        features[:, 0] = rest[:, 0]
        np.arctan2(rest[:, 1:], steps[:, :-1], out=features[:, 1:])
        return features

    def inverse_transform(self, X: Any) -> Any:
        """Return the samples that have these radii and angles."""
        check_is_fitted(self)
        X = check_array(X, dtype=(np.float64, np.float32))
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"there must be {self.n_features_in_} columns, a radius and angles, not {X.shape[1]}")
        samples = np.empty_like(X)
        rest = X[:, 0].copy()
        for k in range(X.shape[1] - 1):
            samples[:, k] = rest * np.cos(X[:, k + 1])
            rest *= np.sin(X[:, k + 1])
        samples[:, -1] = rest
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
            raise ValueError(f"center must have one number for each of {X.shape[1]} features, not {center.shape}")
        return center
