"""The certificate of many samples in one native call is that of `certify`."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LinearSVR
from maxmargin.formulations import c_classification, epsilon_regression, one_class, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix
from maxmargin.problems import Status, certify
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.training import linear_certificate
from maxmargin.training.linear_certificate import certify_many


def pose(kind, form="dense", constant=0.0):
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 4)) + 1
    X = {"dense": X, "single": X.astype(np.float32), "csr": sparse.csr_array(np.where(X > 0, X, 0.0))}[form]
    matrix = KernelMatrix(Linear(), Points(X), 2)
    matrix = BiasAugmentedMatrix(matrix, constant**2) if constant else matrix
    signs, costs = np.where(random.normal(size=300) > 0, 1.0, -1.0), random.uniform(1, 2, 300)
    if kind == "tube":
        problem = epsilon_regression.pose(matrix, random.normal(size=300), costs, 0.1, not constant)
        return SplitProblem.of(problem).problem
    return {"hinge": c_classification, "squared hinge": squared_hinge}[kind].pose(matrix, signs, costs, not constant)


def point(problem):
    """A feasible dual vector and other weights than its own."""
    random = np.random.default_rng(1)
    dual = np.clip(random.normal(size=problem.size), problem.lower, problem.upper)
    dual[random.random(problem.size) < 0.3] = 0.0
    positive, negative = dual[dual > 0].sum(), -dual[dual < 0].sum()
    dual *= np.where(dual > 0, min(1.0, negative / positive), min(1.0, positive / negative))
    own = problem.matrix.features().weights(dual)
    return dual, own + 0.1 * random.normal(size=len(own)) * (np.abs(own) > 0), own


@pytest.mark.parametrize("min_for_threads", [1, 1000])
@pytest.mark.parametrize("own_weights", [False, True])
@pytest.mark.parametrize("constant", [0.0, 2.0])
@pytest.mark.parametrize("form", ["dense", "single", "csr"])
@pytest.mark.parametrize("kind", ["hinge", "squared hinge", "tube"])
def test_same_as_certify(kind, form, constant, own_weights, min_for_threads, monkeypatch):
    monkeypatch.setattr(linear_certificate, "MIN_VARIABLES", 1)
    monkeypatch.setattr(linear_certificate, "MIN_VARIABLES_FOR_THREADS", min_for_threads)
    problem = pose(kind, form, constant)
    dual, weights, own = point(problem)
    weights = own if own_weights else weights
    found = certify_many(problem, problem.matrix.features(), dual, weights, own)
    expected = certify(problem, dual, weights, own, extended=False)
    for name in ("primal", "dual", "gap", "violation", "squared_norm"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-10)
    # The error of Fᵀ b is no error of weights that are the same numbers: `certify` counts it there, too.
    assert found.rounding <= 1.02 * expected.rounding
    assert own_weights or found.rounding >= 0.98 * expected.rounding
    np.testing.assert_allclose(found.residual, expected.residual, atol=1e-8 * expected.primal)
    np.testing.assert_allclose(found.slack, expected.slack, atol=1e-8)
    np.testing.assert_allclose(found.offset_interval, expected.offset_interval)
    np.testing.assert_allclose(found.offset, expected.offset, atol=1e-8)


def test_few_samples_and_other_problems_are_left_to_certify(monkeypatch):
    problem = pose("hinge")
    dual, weights, own = point(problem)
    assert certify_many(problem, problem.matrix.features(), dual, weights, own) is None
    monkeypatch.setattr(linear_certificate, "MIN_VARIABLES", 1)
    assert certify_many(problem, problem.matrix.features(), 10 * dual, weights, own) is None
    kinked = epsilon_regression.pose(problem.matrix, np.ones(problem.size), np.full(problem.size, 9.0), 0.1, True)
    assert certify_many(kinked, problem.matrix.features(), np.zeros(problem.size), own, own) is None
    other = one_class.pose(problem.matrix, np.ones(problem.size), 0.5)
    assert certify_many(other, problem.matrix.features(), np.zeros(problem.size), own, own) is None


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("target", [3.7, 1e8])
def test_flat_targets_of_many_samples_converge(target, epsilon):
    """With an optimum of 0, the offset decides about everything."""
    X = np.random.default_rng(0).normal(size=(25_000, 5))
    model = LinearSVR(epsilon=epsilon).fit(X, np.full(len(X), target))
    assert model.status_ is Status.CONVERGED
    assert model.intercept_ == pytest.approx(target, abs=epsilon + 1e-12 * target)
