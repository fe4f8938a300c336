"""Nyström approximation of a kernel as a transformer; `models/landmark_features.py` computes the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_random_state

from maxmargin.feature_maps.feature_map import FeatureMap
from maxmargin.kernels import Points
from maxmargin.machines.linear.landmarks import fit_landmarks
from maxmargin.models import LandmarkFeatures
from maxmargin.resources import thread_count


class NystroemMap(FeatureMap):
    """Map samples to features φ with φ(x)·φ(z) ≈ k(x, z): the Nyström approximation with a few landmarks.

    A linear estimator on these features approximates the kernel estimator in time and memory linear in the number of
    samples. Kernel values and features are float32 where the range of the values allows it, and float64 for kernel
    functions given as a callable and for very large values. Besides the features, `transform` needs buffers of 16 MB.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian" or "chi_squared", an object of ``maxmargin.kernels``, or a
        function k(X, Z) that returns a matrix of kernel values.
    gamma : "scale", "auto", float or array-like of shape (n_features,), default="scale"
        Coefficient of the named kernels except "linear"; "scale" means 1 / (n_features · variance of X). An array has
        one for each feature, for "rbf", "laplacian" and "chi_squared".
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    n_components : int, default=100
        Number of landmarks to choose, at most the number of samples.
    landmarks : "sample", "kmeans" or array-like of shape (n_landmarks, n_features), default="sample"
        Samples drawn at random, centres of k-means (a better approximation that takes longer), or given landmarks.
    n_jobs : int, optional
        Number of threads. None means all cores available to the process, or fewer if the BLAS thread limit is
        lower. The features depend on it only through rounding.
    random_state : int, RandomState or None
        Controls the choice of landmarks and of the samples for `approximation_error_`.

    Attributes
    ----------
    landmarks_ : array or sparse matrix of shape (n_landmarks, n_features)
    rank_ : int
        Number of features: the number of landmarks, less where the kernel matrix of the landmarks is numerically
        singular (eigenvalues below 10⁻⁹ of the largest are dropped).
    approximation_error_ : float
        Mean of k(x, x) − ‖φ(x)‖² over up to 1,000 training samples drawn at random: an estimate of the trace of
        K − ΦΦᵀ divided by the number of samples. Compare it with the mean of k(x, x), which is 1 for "rbf",
        "laplacian" and "chi_squared". Rounding or an indefinite kernel can make it slightly negative.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from maxmargin.feature_maps import NystroemMap
    >>> X, y = load_digits(return_X_y=True)
    >>> nystroem = NystroemMap(n_components=300, random_state=0)
    >>> nystroem.fit_transform(X).shape
    (1797, 300)
    >>> print(f"{nystroem.approximation_error_:.2f}")
    0.08
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
        n_components: Any = 100,
        landmarks: Any = "sample",
        n_jobs: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.landmarks = landmarks
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> NystroemMap:
        """Choose the landmarks and estimate the approximation error."""
        X = self._validate_training_data(X)
        random = check_random_state(self.random_state)
        features, self.approximation_error_ = fit_landmarks(self, X, np.ones(X.shape[0]), random)
        self.landmarks_ = features.landmarks.data
        self._n_features_out = self.rank_ = features.rank
        self._kernel_, self._factor_ = features.kernel, features.factor
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of each sample, as float32 where the range of the values allows it."""
        X = self._validate_samples(X)
        threads = thread_count(self.n_jobs)
        return LandmarkFeatures(self._kernel_, Points(self.landmarks_), self._factor_, threads)(Points(X))
