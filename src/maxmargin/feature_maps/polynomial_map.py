"""All monomials up to degree d, weighted so that their inner products equal the polynomial kernel.

    φ(x)·φ(z) = (γ x·z + c)^d,   φ_a(x) = √(d! / (a_0! a_1! … a_p!) · c^{a_0} γ^{d − a_0}) Π_j x_j^{a_j},

one feature for each composition d = a_0 + a_1 + … + a_p: C(p + d, d) features, or C(p + d − 1, d) with c = 0. The
monomials are those of scikit-learn's `PolynomialFeatures`, which has no weights. With the weights, a linear estimator
on the features has the same solution as the estimator with the polynomial kernel.
"""

from __future__ import annotations

from itertools import chain, combinations_with_replacement
from math import comb, factorial
from typing import Any

import numpy as np
from scipy import sparse, special

from maxmargin._typing import Floats
from maxmargin.feature_maps.feature_map import FeatureMap, require_finite
from maxmargin.kernels.native_kernel import check_gamma
from maxmargin.machines.validation.parameters import check_count, check_number
from maxmargin.machines.validation.training_data import resolve_gamma
from maxmargin.resources import usable_memory


class PolynomialMap(FeatureMap):
    """Map samples to weighted monomials whose inner products equal the polynomial kernel (γ x·z + c)^d.

    Parameters have the names, meanings and defaults of ``SVC(kernel="poly")``, so that a linear estimator on these
    features has the same solution. Sparse samples give sparse features.

    Parameters
    ----------
    degree : int, default=3
        d, at least 1.
    gamma : "scale", "auto" or float, default="scale"
        γ; "scale" means 1 / (n_features · variance of X), "auto" 1 / n_features.
    coef0 : float, default=0.0
        c, at least 0 (a negative c makes the kernel indefinite). With 0 all monomials have degree d.

    Attributes
    ----------
    n_output_features_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.feature_maps import PolynomialMap
    >>> features = PolynomialMap(degree=2, gamma=1.0, coef0=1.0).fit_transform([[1.0, 2.0], [3.0, 4.0]])
    >>> (features @ features.T).round(6)  # (1 + x·z)²
    array([[ 36., 144.],
           [144., 676.]])
    """

    def __init__(self, degree: Any = 3, gamma: Any = "scale", coef0: Any = 0.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0

    def fit(self, X: Any, y: Any = None) -> PolynomialMap:
        """Determine γ and the weights of the monomials."""
        X = self._validate_training_data(X)
        degree = check_count("degree", self.degree, 1)
        coef0 = check_number("coef0", self.coef0, least=0)
        check_gamma(0.0 if isinstance(self.gamma, str) else self.gamma)  # one for all features
        gamma = float(resolve_gamma(self.gamma, X, np.ones(X.shape[0])))
        lowest = 0 if coef0 > 0 else degree
        count = sum(comb(X.shape[1] + k - 1, k) for k in range(lowest, degree + 1))
        self._check_memory(count, 8 * (degree + 1), f"the weights of {count:,} features")
        self._monomials = self._make_monomials(lowest, degree).fit(X[:1])
        self._weights = _weights(X.shape[1], lowest, degree, gamma, coef0)
        self._n_features_out = self.n_output_features_ = count
        return self

    def transform(self, X: Any) -> Any:
        """Return the weighted monomials of each sample."""
        X = self._validate_samples(X)
        degree, count = self._monomials.degree[1], self._n_features_out
        if sparse.issparse(X):
            stored = special.comb(np.diff(X.indptr) + degree, degree).sum()
            self._check_memory(stored, X.dtype.itemsize + 8, f"{X.shape[0]:,} sparse samples of {count:,} features")
        else:
            self._check_memory(X.shape[0] * count, X.dtype.itemsize, f"{X.shape[0]:,} samples of {count:,} features")
        with np.errstate(over="ignore", invalid="ignore"):  # reported by require_finite
            features = self._monomials.transform(X)
            weights = self._weights.astype(X.dtype, copy=False)
            if sparse.issparse(features):
                features.data *= weights[features.indices]
            else:
                features *= weights
        return require_finite(features, "scale the data (e.g. with MaxAbsScaler), or choose a smaller degree or gamma")

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the monomials, such as ``"x0^2 x1"``, without their weights."""
        return self._monomials.get_feature_names_out(
            getattr(self, "feature_names_in_", None) if input_features is None else input_features
        )

    def _make_monomials(self, lowest: int, degree: int) -> Any:
        from sklearn.preprocessing import PolynomialFeatures  # slow import

        return PolynomialFeatures((lowest, degree), include_bias=lowest == 0)

    def _check_memory(self, values: float, size: int, what: str) -> None:
        if values * size > usable_memory():
            raise ValueError(
                f"degree={self.degree} gives too many features: {what} need {values * size / 2**30:,.1f} GiB, but "
                f"{usable_memory() / 2**30:,.1f} GiB are available; use SVC(kernel='poly'), which needs no explicit "
                "features, or NystroemMap(kernel='poly') with fewer features"
            )


def _weights(features: int, lowest: int, degree: int, gamma: float, coef0: float) -> Floats:
    """Return the weight of each monomial, in the order of `PolynomialFeatures`: by degree, then by features."""
    weights = []
    for k in range(lowest, degree + 1):
        count = comb(features + k - 1, k)
        factors = np.fromiter(chain.from_iterable(combinations_with_replacement(range(features), k)), int, count * k)
        factors = factors.reshape(count, k)
        # run is the length of the current run of equal factors; the product of its values over all factors is Π a_j!.
        run, factorials = np.ones(count), np.ones(count)
        for j in range(1, k):
            run = np.where(factors[:, j] == factors[:, j - 1], run + 1, 1.0)
            factorials *= run
        multinomials = factorial(degree) / (factorial(degree - k) * factorials)
        weights.append(np.sqrt(multinomials * coef0 ** (degree - k) * gamma**k))
    return np.concatenate(weights)
