"""Derivatives of decision values by the hyperparameters C, γ (one for each feature) and ε, through the solution.

A model f(x) = Σ_s β_s k(x_s, x) + b is differentiable in its hyperparameters where no sample changes between the three
sets of its dual variables: 0, at a bound ±C w (B), and free (F). The free ones and the offset solve

    (K_FF + R) β_F + b 1 = t_F − ε sign(β_F) − K_FB β_B,    1ᵀ β_F = −1ᵀ β_B

with the ridge R = r / (C w): r is 0 for the hinge and the tube, ½ for their squares and 1 for least squares, and B is
empty where it is not 0. Given δ, the derivative of a loss by the decision values of validation samples V, one more
solution of the same equations, (d, d_b) with the right-hand side (K_FV δ, 1ᵀ δ), gives the derivatives by all
hyperparameters at once (Chapelle, Vapnik, Bousquet & Mukherjee 2002; Keerthi, Sindhwani & Chapelle 2006). With
u = δ on V and −d on F,

    ∂/∂γ_j = −Σ_{z in V and F} Σ_s u_z β_s k(z, x_s) distance_j(z, x_s)
    ∂/∂C   = Σ_z Σ_{s in B} u_z k(z, x_s) w_s sign(β_s) − d_b Σ_{s in B} w_s sign(β_s) + r Σ_F d_s β_s / (C² w_s)
    ∂/∂ε   = −Σ_F d_s sign(β_s)

Without free variables the offset is the mean of the values that two
samples impose on it, and these take the place of F.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.estimators import LSSVC, LSSVR, SVC, SVR
from maxmargin.kernels.formula import Term
from maxmargin.kernels.radial import RadialKernel
from maxmargin.machines.validation.training_data import check_sample_weights

#: A variable this close to its bound, relative to it, is at the bound.
AT_BOUND = 1e-9

#: Added to the diagonal of the equations of the free variables, relative to its largest value; a hundred times as much
#: as often as the factorisation fails.
JITTER = 1e-13

#: Number of values of a block of kernel values.
BLOCK_VALUES = 2**21


@dataclass(frozen=True)
class HyperparameterGradient:
    """Derivatives by hyperparameters.

    Attributes
    ----------
    C : float
    gamma : float array, one for each feature
        By one γ for all features it is their sum.
    epsilon : float
        0 for a classifier.
    """

    C: float
    gamma: Floats
    epsilon: float


def hyperparameter_gradient(
    model: Any, X: Any, y: Any, X_validation: Any, derivative: Any, sample_weight: Any = None
) -> HyperparameterGradient:
    """Differentiate a loss on validation samples by the hyperparameters of a fitted model.

    Parameters
    ----------
    model : SVC or LSSVC of two classes, SVR or LSSVR
        Fitted on `X` and `y`, with the kernel "rbf", "laplacian" or "chi_squared" and a small `tol` (such as 1e-6).
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    X_validation : array-like or sparse matrix of shape (n_validation, n_features)
    derivative : array-like of shape (n_validation,)
        The derivative of the loss by the decision value, or prediction of a regression, of each validation sample.
    sample_weight : array-like of shape (n_samples,), optional
        Those of the fit.

    Returns
    -------
    HyperparameterGradient

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVR
    >>> from maxmargin.search import hyperparameter_gradient
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(200, 2))
    >>> y = np.sin(2 * X[:, 0])
    >>> model = SVR(gamma=[0.3, 0.3], tol=1e-6).fit(X[:100], y[:100])
    >>> residual = model.predict(X[100:]) - y[100:]
    >>> gradient = hyperparameter_gradient(model, X[:100], y[:100], X[100:], residual)
    >>> gradient.gamma.round(1)  # the squared error decreases with γ of the first feature, increases with the other
    array([-5.7,  2.5])
    """
    delta = np.asarray(derivative, dtype=np.float64)
    X, X_validation = (as_table(table) for table in (X, X_validation))
    solution = _Solution.of(model, X, y, sample_weight)
    members, adjoint, of_offset = solution.solve_adjoint(X_validation, delta)
    rows = _stacked(X_validation, X[members])
    return solution.gradient(rows, np.concatenate([delta, -adjoint]), members, adjoint, of_offset)


def as_table(X: Any) -> Any:
    """Return samples as a CSR matrix, or as a dense array."""
    return sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)


def _stacked(first: Any, second: Any) -> Any:
    return sparse.vstack([first, second], format="csr") if sparse.issparse(first) else np.concatenate([first, second])


@dataclass(frozen=True)
class _Solution:
    """The solution of a fit, by training sample: targets t, dual variables β, weights w, and what is free."""

    X: Any
    kernel: RadialKernel
    targets: Floats
    dual: Floats
    weights: Floats
    free: Indices
    bounded: Indices
    cost: float
    epsilon: float
    ridge: float
    offset: float
    has_offset: bool

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, sample_weight: Any) -> _Solution:
        """Read a fitted model."""
        if not isinstance(model, SVC | LSSVC | SVR | LSSVR):
            raise ValueError(f"{type(model).__name__} is not differentiated; use SVC, LSSVC, SVR or LSSVR")
        if not isinstance(model._kernel_, RadialKernel):
            raise ValueError("only the kernels rbf, laplacian and chi_squared are differentiated")
        if not np.isfinite(model.C):
            raise ValueError("a hard margin (C = inf) is not differentiated; use a finite C")
        weights, targets = check_sample_weights(sample_weight, X), np.asarray(y, dtype=object)
        if isinstance(model, SVC | LSSVC):
            if len(model.classes_) != 2:
                raise ValueError(f"the model has {len(model.classes_)} classes; differentiate one of two classes")
            positive = np.asarray(y) == model.classes_[1]
            targets = np.where(positive, 1.0, -1.0)
            weights = weights * np.where(positive, model.class_weight_[1], model.class_weight_[0])
        targets = np.asarray(targets, dtype=np.float64)
        dual = np.zeros(len(targets))
        coefficients = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
        dual[model.support_] = np.ravel(coefficients)
        ridge = 1.0 if isinstance(model, LSSVC | LSSVR) else 0.5 if model.loss.startswith("squared") else 0.0
        at_bound = np.abs(dual) >= model.C * weights * (1 - AT_BOUND)
        bounded = np.flatnonzero((dual != 0) & at_bound & (ridge == 0.0))
        free = np.setdiff1d(np.flatnonzero(dual), bounded)
        epsilon = float(model.epsilon) if isinstance(model, SVR) else 0.0
        offset = float(np.ravel(model.intercept_)[0])
        return cls(
            X, model._kernel_, targets, dual, weights, free, bounded, float(model.C), epsilon, ridge, offset,
            bool(model.fit_intercept),
        )  # fmt: skip

    def solve_adjoint(self, X_validation: Any, delta: Floats) -> tuple[Indices, Floats, float]:
        """Return the samples whose equations determine the solution, and the multipliers d and d_b."""
        free = self.free
        if not len(free):
            return self._without_free(float(delta.sum()))
        matrix = self.kernel(self.X[free])
        matrix[np.diag_indices(len(free))] += self.ridge / (self.cost * self.weights[free])
        right = np.column_stack([self._combined(X_validation, delta), np.ones(len(free))])
        check_deadline()
        first, ones = linalg.cho_solve(_factor(matrix), right).T
        if not self.has_offset:
            return free, first, 0.0
        of_offset = (first.sum() - delta.sum()) / ones.sum()
        return free, first - of_offset * ones, float(of_offset)

    def _combined(self, X_validation: Any, delta: Floats) -> Floats:
        """Return K_FV δ."""
        out = np.zeros(len(self.free))
        for part in _parts(len(delta), len(self.free)):
            out += delta[part] @ self.kernel(X_validation[part], self.X[self.free])
        return out

    def _without_free(self, total: float) -> tuple[Indices, Floats, float]:
        if not self.has_offset:
            return self.free, np.empty(0), 0.0
        support = np.flatnonzero(self.dual)
        values = np.concatenate([
            self.kernel(self.X[part], self.X[support]) @ self.dual[support]
            for part in _parts(len(self.dual), len(support))
        ])  # fmt: skip
        gradient, limit = self.targets - values, self.cost * self.weights
        lower, upper = -limit, limit
        if self.epsilon == 0.0 and np.abs(self.targets).min() == 1.0 == np.abs(self.targets).max():
            lower, upper = np.minimum(0.0, self.targets * limit), np.maximum(0.0, self.targets * limit)
        rising = gradient - np.where(self.dual >= 0, self.epsilon, -self.epsilon)
        falling = gradient + np.where(self.dual <= 0, self.epsilon, -self.epsilon)
        slack = AT_BOUND * limit
        first = int(np.argmax(np.where(self.dual < upper - slack, rising, -np.inf)))
        second = int(np.argmin(np.where(self.dual > lower + slack, falling, np.inf)))
        return np.array([first, second]), np.full(2, 0.5 * total), 0.0

    def gradient(
        self, rows: Any, u: Floats, members: Indices, adjoint: Floats, of_offset: float
    ) -> HyperparameterGradient:
        """Sum the derivatives over blocks of kernel values."""
        support = np.flatnonzero(self.dual)
        sign = np.zeros(len(self.dual))
        sign[self.bounded] = np.sign(self.dual[self.bounded]) * self.weights[self.bounded]
        distances = _WeightedDistances(self.kernel, self.X[support])
        of_cost, of_gamma = -of_offset * float(sign.sum()), np.zeros(self.X.shape[1])
        for part in _parts(len(u), max(len(support), self.X.shape[1])):
            check_deadline()
            values = self.kernel(rows[part], self.X[support])
            of_cost += float(u[part] @ (values @ sign[support]))
            of_gamma -= distances(rows[part], u[part, None] * values * self.dual[support])
        of_epsilon = -float(adjoint @ np.sign(self.dual[members])) if self.epsilon > 0 else 0.0
        of_ridge = float((adjoint * self.dual[members] / self.weights[members]).sum())
        of_cost += self.ridge / self.cost**2 * of_ridge
        return HyperparameterGradient(of_cost, of_gamma, of_epsilon)


class _WeightedDistances:
    """Σ_{z,s} weight_zs distance_j(z, x_s) of each feature j, for rows z and fixed samples x_s."""

    def __init__(self, kernel: RadialKernel, samples: Any) -> None:
        self.kernel, self.samples = kernel, samples
        self.dense = not sparse.issparse(samples)
        self.centre = samples.mean(axis=0) if self.dense and len(samples) else 0.0

    def __call__(self, rows: Any, weights: Floats) -> Floats:
        if self.kernel.distance is Term.SQUARED:
            return self._squared(rows, weights)
        left, right = (table.T.toarray() if sparse.issparse(table) else table.T for table in (rows, self.samples))
        return np.array([float((weights * self._distance(x, z)).sum()) for x, z in zip(left, right, strict=True)])

    def _squared(self, rows: Any, weights: Floats) -> Floats:
        """Expand (x − z)² = x² + z² − 2 x z, which makes a product of matrices of it; dense samples are centred."""
        if not self.dense:
            cross = np.asarray(rows.multiply(weights @ self.samples).sum(axis=0)).ravel()
            squares = (rows.multiply(rows)).T @ weights.sum(axis=1)
            return np.asarray(squares + (self.samples.multiply(self.samples)).T @ weights.sum(axis=0) - 2.0 * cross)
        x, z = rows - self.centre, self.samples - self.centre
        cross = np.einsum("ij,ij->j", x, weights @ z)
        return np.asarray(weights.sum(axis=1) @ x**2 + weights.sum(axis=0) @ z**2 - 2.0 * cross)

    def _distance(self, x: Floats, z: Floats) -> Floats:
        difference = x[:, None] - z
        if self.kernel.distance is Term.ABSOLUTE:
            return np.abs(difference)
        total = x[:, None] + z
        return np.divide(difference**2, total, out=np.zeros_like(total), where=total != 0)


def _factor(matrix: Floats) -> Any:
    """Return the Cholesky factor of a positive semi-definite matrix, with as little added as it takes."""
    jitter, size = JITTER, float(matrix.diagonal().max())
    while True:
        shifted = matrix.copy()
        shifted[np.diag_indices(len(matrix))] += jitter * size
        try:
            return linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            jitter *= 100.0


def _parts(rows: int, width: int) -> list[slice]:
    step = max(1, BLOCK_VALUES // max(1, width))
    return [slice(start, min(rows, start + step)) for start in range(0, rows, step)]
