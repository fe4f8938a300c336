"""`NystroemMap`: features whose inner products approximate a kernel; `models/landmark_features.py` computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_random_state

from maxmargin.estimators.linear.landmarks import fit_landmarks
from maxmargin.feature_maps.feature_map import FeatureMap
from maxmargin.kernels import Points
from maxmargin.models import LandmarkFeatures
from maxmargin.resources import thread_count


class NystroemMap(FeatureMap):
    """Map samples to features φ with φ(x)·φ(z) ≈ k(x, z): Nyström's approximation with a few landmarks.

    A linear machine on these features is nearly the machine with the kernel, and its time and memory grow with the
    number of samples, not with its square. Kernel values are computed natively, and with the features are in single
    precision where that serves (in double precision for a function of your own and for huge values); beyond the
    features, transforming takes blocks of 16 MB.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian" or "chi_squared", an object of ``maxmargin.kernels``, or a
        function k(X, Z) that returns a block of values.
    gamma : "scale", "auto" or float, default="scale"
        Coefficient for the named kernels but "linear"; "scale" means 1 / (n_features · variance of X).
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant in "poly" and "sigmoid".
    n_components : int, default=100
        How many landmarks to choose; never more than there are samples.
    landmarks : "sample", "kmeans" or array-like of shape (n_landmarks, n_features), default="sample"
        Samples drawn at random, centres of k-means (which approximate better and take longer), or rows that you
        give.
    n_jobs : int, optional
        Threads. None means all cores that the process may use, or fewer where BLAS is limited. The features do not
        depend on it beyond rounding.
    random_state : int, RandomState or None
        For the choice of landmarks and of the samples that the error is measured on.

    Attributes
    ----------
    landmarks_ : array or sparse matrix of shape (n_landmarks, n_features)
    rank_ : int
        The number of features: that of landmarks, or fewer where these depend on one another so that the kernel's
        eigenvalues among them differ by more than single precision can tell (10⁹).
    approximation_error_ : float
        The mean of k(x, x) − ‖φ(x)‖² over up to 1,000 training samples, drawn at random: an estimate of the trace of
        K − ΦΦᵀ divided by the number of samples. Compare it with the mean of k(x, x), which is 1 for "rbf",
        "laplacian" and "chi_squared". Rounding can make it a little less than 0, and so can an indefinite kernel.

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
        """Choose the landmarks and measure how well they do."""
        X = self._check_training(X)
        random = check_random_state(self.random_state)
        features, self.approximation_error_ = fit_landmarks(self, X, np.ones(X.shape[0]), random)
        self.landmarks_ = features.landmarks.data
        self._n_features_out = self.rank_ = features.rank
        self._kernel_, self._factor_ = features.kernel, features.factor
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of each sample, in single precision where that serves."""
        X = self._check_samples(X)
        threads = thread_count(self.n_jobs)
        return LandmarkFeatures(self._kernel_, Points(self.landmarks_), self._factor_, threads)(Points(X))
