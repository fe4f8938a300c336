"""Recursive feature elimination with kernels: Guyon's criterion from the dual variables (Guyon et al. 2002).

Without feature j the term ½ bᵀ K b of the dual objective, of the same coefficients b, is smaller by ½ bᵀ (K − K₋ⱼ) b,
where K₋ⱼ is the kernel matrix without that feature; for a linear kernel this is ½ w_j². The features of the least
difference are removed. It is signed: without an irrelevant feature, samples of one class and of both are closer to each
other, and the term of a radial kernel grows.

The sums over features, squared distances or inner products, are kept for all pairs of samples. Removing a feature
subtracts its contribution, so that no kernel value is computed from the features again; and the next fit, on the
remaining features, starts from the dual variables of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.feature_selection import RFE
from sklearn.utils.validation import validate_data

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Gaussian, Laplacian, Linear, Polynomial, Sigmoid
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.machines.linear.linear_estimator import LinearEstimator
from maxmargin.machines.validation.parameters import check_number
from maxmargin.machines.validation.training_data import check_sample_weights
from maxmargin.resources import check_memory

#: Kernel values of which changes are computed at a time.
VALUES_AT_A_TIME = 2**20


class KernelRFE(RFE):  # type: ignore[misc]  # scikit-learn has no type hints
    """Select features by recursive elimination, by what the squared norm of a kernel machine loses without each.

    As ``sklearn.feature_selection.RFE``, which needs ``coef_`` and so a linear kernel. Here kernels are "linear",
    "poly", "rbf", "sigmoid" and "laplacian". Kernel values are computed once: removing a feature subtracts its part,
    and every fit starts from the one before. The sums over features take 16 n² bytes of n samples; linear machines
    (`LinearSVC`, `LinearSVR`) take none: their criterion is ½ w_j².

    Parameters
    ----------
    estimator : estimator
        A kernel machine, such as ``SVC()`` or ``SVR()``, or a linear one. γ of ``gamma="scale"`` is that of all
        features throughout, also in ``estimator_``.
    n_features_to_select : int or float, default=None
        How many features are selected, or which part of them; None is half of them.
    step : int or float, default=1
        How many features are removed after each fit, or which part of all.

    Attributes
    ----------
    n_features_ : int
        How many features are selected.
    support_ : bool array of shape (n_features,)
        Which.
    ranking_ : int array of shape (n_features,)
        1 for selected features; the larger, the earlier a feature was removed.
    estimator_ : estimator
        The estimator, fitted to the selected features.
    classes_, n_features_in_, feature_names_in_
        As in scikit-learn's ``RFE``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC, KernelRFE
    >>> X = np.random.default_rng(0).normal(size=(300, 6))
    >>> y = X[:, 1] ** 2 + X[:, 4] ** 2 > 1.4  # a circle, which no linear machine finds
    >>> KernelRFE(SVC(C=10), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([1, 4])
    """

    #: Parameters of scikit-learn's class that have one value here.
    verbose, importance_getter = 0, "auto"

    def __init__(self, estimator: Any, *, n_features_to_select: Any = None, step: Any = 1) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.step = step

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Eliminate features, and fit the estimator to those that are left.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels or targets.
        sample_weight : array-like of shape (n_samples,), optional
            As in ``fit`` of the estimator.

        Returns
        -------
        self
            The fitted selector.
        """
        self._validate_params()
        options = {"multi_output": True, "y_numeric": False}
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_features=2, **options)
        weights = {} if sample_weight is None else {"sample_weight": check_sample_weights(sample_weight, X)}
        elimination = _elimination(self.estimator, X, weights)
        goal, step = self._counts(X.shape[1])
        self.support_ = np.ones(X.shape[1], dtype=bool)
        self.ranking_ = np.ones(X.shape[1], dtype=int)
        while (left := int(self.support_.sum())) > goal:
            features = np.flatnonzero(self.support_)
            changes = elimination.changes(y, features)
            removed = features[np.argsort(changes, kind="stable")[: min(step, left - goal)]]
            elimination.remove(removed)
            self.support_[removed] = False
            self.ranking_[~self.support_] += 1
        self.n_features_ = int(self.support_.sum())
        self.estimator_ = elimination.estimator(self.support_).fit(X[:, np.flatnonzero(self.support_)], y, **weights)
        return self

    def _counts(self, features: int) -> tuple[int, int]:
        """Return how many features are selected, and how many are removed after each fit, as scikit-learn does."""
        goal = self.n_features_to_select
        goal = features // 2 if goal is None else goal if isinstance(goal, int | np.integer) else int(features * goal)
        step = max(1, int(self.step * features)) if 0.0 < self.step < 1.0 else int(self.step)
        return max(1, int(goal)), step


class _Linear:
    """The elimination of a linear machine, by its weights."""

    def __init__(self, estimator: Any, X: Any, weights: dict[str, Any]) -> None:
        self._given, self._X, self._weights = estimator, X, weights
        self._machine = clone(estimator)
        self._machine.set_params(warm_start=True)

    def changes(self, y: Any, features: Indices) -> Floats:
        """Return ½ Σ w_j² of a fit on these features."""
        self._machine.fit(self._X[:, features], y, **self._weights)
        weights = self._machine.coef_
        squares: Floats = 0.5 * np.square(np.atleast_2d(weights)).sum(axis=0)
        return squares

    def remove(self, features: Indices) -> None:
        """Forget features: nothing is kept of them."""

    def estimator(self, support: Any) -> Any:
        """Return the estimator for the selected features."""
        return clone(self._given)


class _KernelSums(NamedTuple):
    """How kernel values depend on sums over features: k = shape(Σ_j term_j).

    Attributes
    ----------
    term : callable
        From two columns of one feature, and its γ, to the contributions of the feature.
    shape : callable
        From the sums to the kernel values.
    """

    term: Callable[[Floats, Floats, float], Floats]
    shape: Callable[[Floats], Floats]


class _Kernel:
    """The elimination of a kernel machine, on a kernel matrix that loses features."""

    def __init__(self, estimator: Any, X: Any, weights: dict[str, Any]) -> None:
        count = X.shape[0]
        check_memory(16 * count**2, f"the sums over features of {count:,} samples", "use fewer samples")
        self._given, self._weights = estimator, weights
        self._columns = X.tocsc() if sparse.issparse(X) else np.asfortranarray(X)
        self._gamma, kernel = _resolved_kernel(estimator, X, weights)
        self._gammas = np.broadcast_to(np.asarray(self._gamma, dtype=np.float64), X.shape[1:])
        self._kernel = _sums_of(kernel)
        self._sums = np.zeros((count, count))
        for feature in range(X.shape[1]):
            self._sums += self._contribution(feature)
        self._machine = clone(estimator).set_params(kernel="precomputed", gamma="scale", warm_start=True)

    def changes(self, y: Any, features: Indices) -> Floats:
        """Return ½ Σ_m bᵀ (K − K₋ⱼ) b of a fit on these features, m the functions of the machine."""
        matrix = self._kernel.shape(self._sums)
        self._machine.fit(matrix, y, **self._weights)
        coefficients = np.zeros((len(matrix), 0))
        for model in self._machine._models_:
            own = np.asarray(model.expansion.coefficients).reshape(len(model.samples), -1)
            whole = np.zeros((len(matrix), own.shape[1]))
            whole[model.samples] = own
            coefficients = np.hstack([coefficients, whole])
        used = np.flatnonzero(coefficients.any(axis=1))
        changes = np.zeros(len(features))
        for rows in _parts(used):
            factors = coefficients[rows] @ coefficients[used].T
            sums = self._sums[np.ix_(rows, used)]
            before = matrix[np.ix_(rows, used)]
            for place, feature in enumerate(features.tolist()):
                without = self._kernel.shape(sums - self._contribution(feature, rows, used))
                changes[place] += 0.5 * float(np.sum(factors * (before - without)))
        return changes

    def remove(self, features: Indices) -> None:
        """Subtract the contributions of features from the sums of all pairs of samples."""
        for feature in features.tolist():
            self._sums -= self._contribution(feature)

    def estimator(self, support: Any) -> Any:
        """Return the estimator for the selected features, with their γ."""
        gamma = np.asarray(self._gamma)[support] if np.ndim(self._gamma) else self._gamma
        return clone(self._given).set_params(gamma=gamma)

    def _contribution(self, feature: int, rows: Indices | None = None, columns: Indices | None = None) -> Floats:
        """Return the contributions of a feature to the sums of pairs of samples."""
        values: Any = self._columns[:, [feature]]
        values = values.toarray()[:, 0] if sparse.issparse(values) else values[:, 0]
        left, right = (values if some is None else values[some] for some in (rows, columns))
        return self._kernel.term(left[:, None], right, float(self._gammas[feature]))


def _elimination(estimator: Any, X: Any, weights: dict[str, Any]) -> _Linear | _Kernel:
    if isinstance(estimator, LinearEstimator):
        return _Linear(estimator, X, weights)
    if not isinstance(estimator, KernelEstimator) or "warm_start" not in estimator.get_params():
        raise ValueError(
            f"{type(estimator).__name__} has no dual variables on a kernel matrix to eliminate features by; use a "
            "kernel machine such as SVC or SVR, or sklearn.feature_selection.RFE for estimators with coef_"
        )
    return _Kernel(estimator, X, weights)


def _resolved_kernel(estimator: Any, X: Any, weights: dict[str, Any]) -> tuple[Any, Any]:
    """Return γ as a number, or one for each feature, and the kernel of all features."""
    machine = clone(estimator)
    kernel = machine._make_kernel(X, weights.get("sample_weight", np.ones(X.shape[0])))
    return machine._gamma, kernel


def _sums_of(kernel: Any) -> _KernelSums:
    """Return how the values of a kernel depend on sums over features."""

    def product(left: Floats, right: Floats, gamma: float) -> Floats:
        return left * right

    if isinstance(kernel, Linear):
        return _KernelSums(product, np.copy)
    if isinstance(kernel, Polynomial):
        gamma, constant, degree = check_number("gamma", kernel.gamma), kernel.coef0, kernel.degree
        return _KernelSums(product, lambda sums: (gamma * sums + constant) ** degree)
    if isinstance(kernel, Sigmoid):
        gamma, constant = check_number("gamma", kernel.gamma), kernel.coef0
        return _KernelSums(product, lambda sums: np.tanh(gamma * sums + constant))
    if isinstance(kernel, Gaussian):
        return _KernelSums(lambda left, right, gamma: gamma * np.square(left - right), _decreasing)
    if isinstance(kernel, Laplacian):
        return _KernelSums(lambda left, right, gamma: gamma * np.abs(left - right), _decreasing)
    raise ValueError(
        "recursive elimination needs kernel='linear', 'poly', 'rbf', 'sigmoid' or 'laplacian', of which a feature can "
        f"be removed, not {kernel if kernel is not None else 'precomputed'!r}"
    )


def _decreasing(sums: Floats) -> Floats:
    """Return exp(−sums); what subtractions leave below 0 is rounding."""
    values: Floats = np.exp(-np.maximum(sums, 0.0))
    return values


def _parts(rows: Indices) -> Iterator[Indices]:
    """Divide rows of a square table into parts of bounded size."""
    step = max(1, VALUES_AT_A_TIME // max(1, len(rows)))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]
