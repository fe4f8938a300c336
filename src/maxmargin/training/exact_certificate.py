"""Bounds on the optimum of an exact kernel problem from a machine on landmarks, from both sides.

    primal   any function in feature space has a primal value of at least the optimum: the function of the landmarks,
             and Σ b_i Φ(x_i) where the values K b are affordable
    dual     any feasible dual vector has a dual value of at most the optimum: that of the landmark machine, adapted to
             the exact kernel (`adapted_dual`), which takes the kernel values among its support vectors; or, without
             them, the residuals of the features (`models.residual_bound`)

At w = 0 and b = 0 both are known at once, so that there are bounds after any time limit. All of them include bounds on
their rounding errors. They hold for positive semi-definite kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats
from maxmargin.deadline import TimeLimitReachedError, check_deadline, seconds_until_deadline
from maxmargin.double_double import DoubleDouble, exact_sum
from maxmargin.matrices.kernel_matrix import KernelMatrix, expansion_values
from maxmargin.matrices.numerics import inner
from maxmargin.models.residual_bound import bound_quadratic_form
from maxmargin.precision import SMALLEST_DOUBLE, UNIT_ROUNDOFF
from maxmargin.problems import Certificate, DualProblem, certify
from maxmargin.problems.certificate import MAX_EXTENDED_WORK, certificate_of
from maxmargin.problems.dual_bound import best_multiple, bound_of_best_multiple
from maxmargin.problems.products import Products, norm_of_expansion
from maxmargin.training.adapted_dual import AdaptedDual, adapted_dual

#: The values of all samples with all support vectors are computed, for a full certificate, if they take at most so many
#: multiplications: a few seconds.
MAX_CERTIFICATE_WORK = 4 * 10**10

#: The squared norm of the landmark function is computed in double-double arithmetic if the bound on its rounding error
#: in float64 is above this fraction of it.
NEGLIGIBLE_ROUNDING = 1e-10


@dataclass(frozen=True)
class ExactCertificate:
    """Proven bounds on the optimum of the exact kernel problem, that of `SVC`, from a machine on landmarks.

    Attributes
    ----------
    primal, dual : float
        The optimum lies between them (for a positive semi-definite kernel), rounding errors included.
    model_primal : float
        The objective of the exact problem at the fitted function, at most; infinite if there was no time for it. It
        exceeds the optimum by at most ``model_primal - dual``.
    primal_from, dual_from : str
        What the bounds were computed from.
    """

    primal: float
    dual: float
    model_primal: float
    primal_from: str
    dual_from: str

    @property
    def gap(self) -> float:
        """Primal − dual: the width of the interval that contains the optimum."""
        return max(0.0, float(np.nextafter(self.primal - self.dual, np.inf)))

    @property
    def relative_gap(self) -> float:
        """The gap relative to the larger of primal and dual value."""
        if not np.isfinite(self.gap):
            return float("inf")
        return self.gap / max(abs(self.primal), abs(self.dual), SMALLEST_DOUBLE)

    def tightened(self, certificate: Certificate, count: int) -> ExactCertificate:
        """Return these bounds and those of a certificate of the exact problem, whichever are closer.

        `count` is the number of its support vectors. The function of the model is the better one of both.
        """
        primal, dual = certificate.primal, certificate.dual
        lower, higher = primal < self.primal, dual > self.dual
        return ExactCertificate(
            primal=primal if lower else self.primal,
            dual=dual if higher else self.dual,
            model_primal=min(primal, self.model_primal),
            primal_from=f"the expansion of {count:,} support vectors" if lower else self.primal_from,
            dual_from=f"{count:,} support vectors" if higher else self.dual_from,
        )

    def __str__(self) -> str:
        return (
            f"exact optimum between {self.dual:.10g} ({self.dual_from}) and {self.primal:.10g} ({self.primal_from}), "
            f"relative gap {self.relative_gap:.2g}; objective of this model {self.model_primal:.10g}"
        )


@dataclass(frozen=True)
class LandmarkFunction:
    """f(x) = Σ_j coefficients_j k(z_j, x) + offset, with the kernel matrix of the landmarks z."""

    landmarks: KernelMatrix
    coefficients: Floats
    offset: float


#: From a problem and a feasible vector to a vector of higher dual value, with its squared norm.
Adapt = Callable[[DualProblem, Floats], AdaptedDual]


class BoundedOptimum(NamedTuple):
    """The bounds on an optimum, and the feasible vector with that dual value (up to rounding)."""

    certificate: ExactCertificate
    dual: Floats


def bound_exact_optimum(problem: DualProblem, dual: Floats, function: LandmarkFunction) -> BoundedOptimum:
    """Return the bounds for a problem with an exact kernel matrix, which 0 is a feasible point of.

    `dual` is a feasible dual vector. When a time limit is reached, the bounds are those known by then.
    """
    bounds = _Bounds(problem)
    try:
        bounds.use_function(function)
        if np.isfinite(seconds_until_deadline()):
            bounds.use_residuals(dual, function.landmarks)
        if dual.any():
            bounds.use_dual(adapted_dual(problem, dual))
    except TimeLimitReachedError:
        pass
    return BoundedOptimum(bounds.certificate(), bounds.vector)


def loss_of_function(problem: DualProblem, function: LandmarkFunction) -> tuple[float, Floats]:
    """Return an upper bound on the loss of a landmark function, rounding errors included, and its slacks.

    The loss of several parts of the rows is the sum of those of each.
    """
    assert isinstance(problem.matrix, KernelMatrix)
    values, errors = expansion_values(problem.matrix, function.landmarks, function.coefficients)
    zero = np.zeros(problem.size)
    products = Products(
        product=DoubleDouble(zero, zero[:0]),
        product_error=zero,
        decision=DoubleDouble(values, zero[:0]),
        decision_error=errors.double,
        dual_norm=0.0,
        dual_norm_error=0.0,
        weights_norm=0.0,
        weights_norm_error=0.0,
        weights=function.coefficients,
    )
    certificate = certificate_of(problem, zero, products, np.full(problem.groups, function.offset))
    return certificate.primal, certificate.slack


def bound_from_parts(
    loss: float, function: LandmarkFunction, problem: DualProblem, dual: Floats, adapt: Adapt = adapted_dual
) -> ExactCertificate:
    """Return bounds for a problem of more rows than fit into memory.

    `loss` is that of the function for all rows; `problem` and the feasible `dual` are those of the rows that may have a
    variable above 0. `adapt` is `adapted_dual`, or does the same elsewhere. A time limit leaves the bounds known then.
    """
    norm, norm_error = _squared_norm(function.landmarks, function.coefficients)
    primal, bound, source = _objective(loss, norm, norm_error), 0.0, "the dual vector 0"
    indefinite = norm < -norm_error
    try:
        if dual.any():
            adapted, square, error = adapt(problem, dual)
            indefinite |= square < -error
            bound = bound_of_best_multiple(problem, adapted, square, error)
            source = f"{np.count_nonzero(adapted):,} support vectors"
    except TimeLimitReachedError:
        pass
    if indefinite:
        return _no_bounds(primal)
    if not bound > 0.0:
        bound, source = 0.0, "the dual vector 0"
    return ExactCertificate(primal, bound, primal, "the landmark function", source)


def _objective(loss: float, norm: float, norm_error: float) -> float:
    """Return an upper bound on an objective, from those on the loss and on the squared norm."""
    return float(np.nextafter(loss + 0.5 * (norm + norm_error) * (1.0 + 2 * UNIT_ROUNDOFF), np.inf))


def no_bounds_in_time() -> ExactCertificate:
    """Return the certificate of a problem whose objective there was no time for."""
    return ExactCertificate(np.inf, 0.0, np.inf, "none: there was no time", "the dual vector 0")


def _no_bounds(model_primal: float) -> ExactCertificate:
    """Return the certificate of an indefinite kernel."""
    why = "none: the kernel is indefinite"
    return ExactCertificate(np.inf, -np.inf, model_primal, why, why)


class _Bounds:
    """The best bounds so far."""

    def __init__(self, problem: DualProblem) -> None:
        self.problem = problem
        assert isinstance(problem.matrix, KernelMatrix)
        self.matrix = problem.matrix
        self.dual, self.dual_from, self.indefinite = 0.0, "the dual vector 0", False
        self.vector = np.zeros(problem.size)
        nothing, zero = np.zeros(problem.size), DoubleDouble(np.zeros(problem.size), np.zeros(0))
        products = Products(zero, nothing, zero, nothing, 0.0, 0.0, 0.0, 0.0, weights=nothing[:0])
        self.primal, self.primal_from = certificate_of(problem, nothing, products).primal, "a constant function"
        self.model_primal = np.inf

    def certificate(self) -> ExactCertificate:
        if self.indefinite:  # no bound holds
            return _no_bounds(self.model_primal)
        return ExactCertificate(self.primal, self.dual, self.model_primal, self.primal_from, self.dual_from)

    def use_function(self, function: LandmarkFunction) -> None:
        """Compute the primal value of the landmark function."""
        check_deadline()
        loss, _ = loss_of_function(self.problem, function)
        norm, norm_error = _squared_norm(function.landmarks, function.coefficients)
        self.indefinite |= norm < -norm_error
        self.model_primal = _objective(loss, norm, norm_error)
        self._lower(self.model_primal, "the landmark function")

    def use_residuals(self, dual: Floats, landmarks: KernelMatrix) -> None:
        """Compute a dual bound without kernel values between samples, unless that takes most of the time left."""
        kernel, points, threads = self.matrix.kernel, self.matrix.points, self.matrix.threads
        with suppress(TimeLimitReachedError):
            norm = bound_quadratic_form(kernel, landmarks.points, points, dual, threads)
            bound = bound_of_best_multiple(self.problem, dual, norm)
            self._raise(bound, self._best_multiple(dual, norm), "residuals of the landmark features")

    def use_dual(self, adapted: AdaptedDual) -> None:
        """Compute the dual value of a vector; if it is affordable, the primal value of its function, too."""
        dual, norm, error = adapted
        self.indefinite |= norm < -error
        count, multiple = int(np.count_nonzero(dual)), self._best_multiple(dual, norm)
        self._raise(bound_of_best_multiple(self.problem, dual, norm, error), multiple, f"{count:,} support vectors")
        if count and self.problem.size * count * self.matrix.cost <= MAX_CERTIFICATE_WORK:
            check_deadline()
            self._use_certificate(certify(self.problem, multiple), multiple, count)

    def _use_certificate(self, certificate: Certificate, dual: Floats, count: int) -> None:
        self.indefinite |= certificate.indefinite
        self._raise(certificate.dual, dual, f"{count:,} support vectors")
        self._lower(certificate.primal, f"the expansion of {count:,} support vectors")

    def _best_multiple(self, dual: Floats, norm: float) -> Floats:
        factor = best_multiple(self.problem, dual, norm)
        multiple: Floats = np.clip(factor * dual, self.problem.lower, self.problem.upper)
        return multiple

    def _raise(self, dual: float, vector: Floats, source: str) -> None:
        if dual > self.dual:
            self.dual, self.vector, self.dual_from = dual, vector, source

    def _lower(self, primal: float, source: str) -> None:
        if primal < self.primal:
            self.primal, self.primal_from = primal, source


@np.errstate(over="ignore", invalid="ignore")  # what overflows makes the bounds infinite
def _squared_norm(matrix: KernelMatrix, coefficients: Floats) -> tuple[float, float]:
    """Return aᵀKa and a bound on its rounding error, in double-double arithmetic where that is needed."""
    product, errors = matrix.matvec(coefficients), matrix.product_error(coefficients)
    norm, error = norm_of_expansion(coefficients, product, errors.double)
    precise = error <= NEGLIGIBLE_ROUNDING * abs(norm)
    if precise or matrix.extended_work(int(np.count_nonzero(coefficients))) > MAX_EXTENDED_WORK:
        return norm, error
    terms = matrix.extended_product(DoubleDouble.of(coefficients)).scaled(coefficients)
    norm = exact_sum(terms)
    rounding = 2 * UNIT_ROUNDOFF * abs(norm) + UNIT_ROUNDOFF**1.5 * float(np.abs(terms.high).sum())
    return norm, inner(np.abs(coefficients), errors.extended) + rounding
