"""The certificate encloses the optimum in exact arithmetic; tests/random_search compares thousands of them."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LSSVC, Status
from maxmargin.formulations import c_classification
from maxmargin.kernels import Linear, Points, Polynomial
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import DualProblem, certify
from maxmargin.problems.objective_bounds import feasibility_moves
from maxmargin.testing.named_problems import CONVEX

mpmath.mp.dps = 80


def unscaled():
    """A polynomial kernel with values of 1e11: a product with the matrix in float64 has five digits."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 5)) * 100
    noise = random.normal(size=60) * 0.3 * np.abs(X).max()
    return X, np.where(X[:, 0] + noise > np.median(X[:, 0]), 1.0, -1.0)


def exact_objectives(X, y, dual, offset, gamma, C):
    """Return primal and dual value of a least-squares classifier, kernel (γ x·z + 1)², in 80 digits."""
    X = [[mpmath.mpf(v) for v in row] for row in X]
    b, y = [mpmath.mpf(v) for v in dual], [mpmath.mpf(v) for v in y]
    K = [[(gamma * mpmath.fdot(x, z) + 1) ** 2 for z in X] for x in X]
    product = [mpmath.fdot(row, b) for row in K]
    norm = mpmath.fdot(b, product)
    loss = mpmath.fsum((t - p - offset) ** 2 for t, p in zip(y, product, strict=True)) * C / 2
    dual_value = mpmath.fdot(y, b) - norm / 2 - mpmath.fsum(v**2 for v in b) / (2 * C)
    return norm / 2 + loss, dual_value


def test_large_kernel_values_do_not_exclude_the_optimum():
    X, y = unscaled()
    model = LSSVC(C=1.0, kernel="poly", degree=2, coef0=1, gamma=10.0).fit(X, y)
    certificate, model_dual = model.certificate_, np.zeros(60)
    model_dual[model.support_] = model.dual_coef_[0]
    primal, dual = exact_objectives(X, y, model_dual, mpmath.mpf(float(model.intercept_[0])), 10, mpmath.mpf(1))
    assert primal <= certificate.primal
    assert 11.8506 < certificate.dual <= certificate.primal < 11.8507
    # The point itself violates Σ b = 0 by rounding, which the dual bound accounts for.
    assert dual >= certificate.dual - abs(mpmath.fsum(model_dual)) * 1e3
    assert certificate.rounding < 0.2 * certificate.gap
    assert model.status_ is Status.CONVERGED


def test_float64_alone_would_have_excluded_it():
    """The reason for double-double arithmetic: the bound of float64 is true, and too wide to be useful."""
    X, y = unscaled()
    problem = DualProblem(
        KernelMatrix(Polynomial(2, 10.0, 1.0), Points(X)), y, np.full(60, -np.inf), np.full(60, np.inf), np.ones(60)
    )
    model = LSSVC(C=1.0, kernel="poly", degree=2, coef0=1, gamma=10.0).fit(X, y)
    dual = np.zeros(60)
    dual[model.support_] = model.dual_coef_[0]
    rough, precise = certify(problem, dual, extended=False), certify(problem, dual, extended=True)
    assert rough.dual <= precise.dual <= precise.primal <= rough.primal
    assert rough.rounding > 100 * precise.gap
    assert certify(problem, dual).rounding == precise.rounding


@pytest.mark.parametrize("name", CONVEX)
def test_both_arithmetics_enclose_the_same_values(name):
    problem = CONVEX[name]()
    random = np.random.default_rng(0)
    from maxmargin.problems import feasible_start

    width = np.where(np.isfinite(problem.upper - problem.lower), problem.upper - problem.lower, 2.0)
    start = np.where(np.isfinite(problem.lower), problem.lower, -1.0) + random.random(problem.size) * width
    dual = feasible_start(problem, start)
    rough, precise = certify(problem, dual, extended=False), certify(problem, dual, extended=True)
    if not np.isfinite(rough.gap):
        return
    assert rough.dual <= precise.dual + precise.rounding
    assert rough.primal >= precise.primal - precise.rounding
    assert precise.rounding <= rough.rounding * 1.01 + 1e-300
    assert rough.violation >= precise.violation * (1 - 1e-12) - 1e-300


def test_sums_that_are_off_cost_dual_value():
    problem = c_classification.pose(KernelMatrix(Linear(), Points(np.eye(4))), np.array([1.0, -1, 1, -1]), np.ones(4))
    dual = np.array([0.5, -0.5, 0.25, -0.25])
    assert feasibility_moves(problem, dual, exact=True).sum() == 0.0
    wrong = dual + np.array([1e-3, 0.0, 0.0, 0.0])
    assert feasibility_moves(problem, wrong, exact=True).sum() == pytest.approx(1e-3)
    assert certify(problem, wrong).dual < certify(problem, dual).dual + 1e-3


def test_rounding_beyond_the_tolerance_is_not_convergence(monkeypatch):
    """Where float64 cannot verify the tolerance, and a second evaluation would take too long."""
    monkeypatch.setattr("maxmargin.problems.certificate.MAX_EXTENDED_WORK", 0)
    X, y = unscaled()
    model = LSSVC(C=1.0, kernel="poly", degree=2, coef0=1, gamma=10.0)
    with pytest.warns(ConvergenceWarning, match="double precision"):
        model.fit(X, y)
    assert model.status_ is Status.PRECISION
    assert model.certificate_.rounding > 0.5 * model.certificate_.gap
    assert model.certificate_.dual < 11.8506 < 11.8507 < model.certificate_.primal


def test_the_text_names_rounding_where_it_matters():
    X, y = unscaled()
    problem = DualProblem(KernelMatrix(Linear(), Points(X)), y, np.full(60, -1.0), np.ones(60))
    dual = 0.5 * y / (y == y[0]).sum()
    dual[y != y[0]] = -dual[y == y[0]].sum() / (y != y[0]).sum()
    assert "of which rounding" not in str(certify(problem, dual))
    assert "of which rounding" in str(replace(certify(problem, dual), gap=1.0, rounding=0.5))
