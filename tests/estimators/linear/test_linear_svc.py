"""`LinearSVC` against scikit-learn's, LIBLINEAR's objective and a generic solver, and on hard cases."""

import numpy as np
import pytest
import sklearn.svm
from liblinear import liblinearutil
from scipy import sparse
from sklearn.exceptions import NotFittedError

from maxmargin import LinearSVC
from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.machines.calibration.cross_validation import linear_held_out_values, stratified_folds
from maxmargin.matrices import KernelMatrix, PrecomputedMatrix
from maxmargin.solvers import StoppingRule
from maxmargin.solvers.linear.semismooth_newton import SemismoothNewtonSolver
from maxmargin.testing.quadratic_program import solve_quadratic_program
from maxmargin.training import Session
from maxmargin.training.linear_verification import LinearVerifier
from maxmargin.training.pipeline import solve_and_verify
from reference.data import iris, wine

POSE = {"hinge": c_classification.pose, "squared_hinge": squared_hinge.pose}


def certificates(model):
    return model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("data", [iris, wine])
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("scaling", [1.0, 3.0])
    @pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0, 2: 0.5}])
    def test_weights_with_a_regularised_intercept(self, data, loss, scaling, class_weight):
        X, y = data()
        common = {"loss": loss, "C": 0.3, "intercept_scaling": scaling, "class_weight": class_weight}
        ours = LinearSVC(tol=1e-11, **common).fit(X, y)
        theirs = sklearn.svm.LinearSVC(tol=1e-9, max_iter=10**6, dual=True, random_state=0, **common).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
        np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))

    @pytest.mark.parametrize("classes", [2, 3])
    @pytest.mark.parametrize("scaling", [1.0, 3.0])
    def test_crammer_singer(self, classes, scaling):
        X, y = wine()
        X, y = X[y < classes], y[y < classes]
        common = {"multi_class": "crammer_singer", "C": 0.1, "intercept_scaling": scaling}
        ours = LinearSVC(tol=1e-9, **common).fit(X, y)
        theirs = sklearn.svm.LinearSVC(tol=1e-8, max_iter=10**6, **common).fit(X, y)
        assert ours.coef_.shape == theirs.coef_.shape
        assert ours.intercept_.shape == theirs.intercept_.shape
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", [{}, {"intercept_scaling": 2.0}, {"fit_intercept": False}])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_objective_is_that_of_a_generic_solver(loss, intercept, form):
    for seed in range(6):
        random = np.random.default_rng(seed)
        n, d = random.integers(6, 40), random.integers(1, 8)
        y = np.arange(n) % 2
        X = random.normal(size=(n, d)) + 0.5 * y[:, None]
        cost, weights = 10.0 ** random.uniform(-1, 2), random.uniform(0.1, 3, n)
        model = LinearSVC(loss=loss, C=cost, class_weight={0: 1.0, 1: 2.5}, tol=1e-9, **intercept)
        model.fit(form(X), y, sample_weight=weights)
        constant = intercept.get("intercept_scaling", 0.0)
        exact = not intercept
        problem = POSE[loss](
            PrecomputedMatrix(X @ X.T + constant**2), 2.0 * y - 1, problem_costs(cost, weights, y), exact
        )
        value, _ = solve_quadratic_program(problem)
        assert model.certificate_.dual == pytest.approx(value, rel=1e-6)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)

        # The same from what a user sees.
        slack = np.maximum(0, 1 - (2 * y - 1) * model.decision_function(X))
        loss_of = slack if loss == "hinge" else slack**2
        bias = (model.intercept_[0] / constant) ** 2 if constant else 0.0
        norm = 0.5 * (model.coef_**2).sum() + 0.5 * bias
        assert norm + problem_costs(cost, weights, y) @ loss_of == pytest.approx(value, rel=1e-6)


def problem_costs(cost, weights, y):
    return cost * weights * np.where(y, 2.5, 1.0)


@pytest.mark.parametrize(("solver", "loss"), [(1, "squared_hinge"), (2, "squared_hinge"), (3, "hinge")])
@pytest.mark.parametrize("cost", [0.01, 1.0])
def test_objective_is_not_above_that_of_liblinear(solver, loss, cost):
    X, y = wine()
    signs = np.where(y == 1, 1.0, -1.0)
    options = f"-s {solver} -c {cost} -e 1e-8 -B 1 -q"
    theirs = np.array(liblinearutil.train(signs, sparse.csr_matrix(X), options).get_decfun()[0])
    bias = liblinearutil.train(signs, sparse.csr_matrix(X), options).get_decfun()[1]
    model = LinearSVC(loss=loss, C=cost, intercept_scaling=1, tol=1e-7).fit(X, y == 1)

    def objective(weights, intercept):
        slack = np.maximum(0, 1 - signs * (X @ weights + intercept))
        return 0.5 * (weights @ weights + intercept**2) + cost * (slack if loss == "hinge" else slack**2).sum()

    best = objective(theirs, bias)
    assert objective(model.coef_[0], model.intercept_[0]) <= (1 + 1e-6) * best
    assert model.certificate_.dual <= (1 + 1e-9) * best


class TestProbabilities:
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    @pytest.mark.parametrize("classes", [2, 3])
    def test_they_are_calibrated_and_agree_with_predict(self, loss, classes):
        random = np.random.default_rng(0)
        X = random.normal(size=(600, 4))
        noisy = X[:, :classes] * 2 + random.gumbel(size=(600, classes))
        y = np.array(["a", "b", "c"])[noisy.argmax(axis=1)]
        model = LinearSVC(loss=loss, C=0.1, probability=True).fit(X[:400], y[:400])
        probabilities = model.predict_proba(X[400:])
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert model.classes_[probabilities.argmax(axis=1)].tolist() == model.predict(X[400:]).tolist()
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X[400:])), probabilities)
        true = np.exp(2 * X[400:, :classes])
        true /= true.sum(axis=1, keepdims=True)
        assert np.abs(probabilities - true).mean() < 0.06
        count = 1 if classes == 2 else classes
        assert model.probA_.shape == model.probB_.shape == (count,)
        assert (model.probA_ < 0).all()

    def test_values_are_those_of_models_that_have_not_seen_the_samples(self):
        X, y = wine()
        rows, folds = np.arange(len(y)), stratified_folds([np.flatnonzero(y != 1), np.flatnonzero(y == 1)], len(y), 0)
        signs, tight = np.where(y == 1, 1.0, -1.0), StoppingRule(violation=1e-12, relative_gap=1e-10)
        solver, session = SemismoothNewtonSolver(tight), Session()
        problem = squared_hinge.pose(KernelMatrix(Linear(), Points(X)), signs, np.full(len(y), 0.1))
        verifier = LinearVerifier(problem, rows, squared_hinge, tight)
        model = solve_and_verify(problem, solver, verifier, None, session)
        values, status = linear_held_out_values(problem, model, squared_hinge, folds, solver, session)
        assert status.converged
        for fold in range(5):
            seen = folds != fold
            alone = LinearSVC(C=0.1, tol=1e-10).fit(X[seen], signs[seen])
            np.testing.assert_allclose(alone.decision_function(X[~seen]), values[~seen], atol=1e-3)

    def test_only_if_they_are_asked_for(self):
        X, y = wine()
        model = LinearSVC().fit(X, y)
        assert not hasattr(model, "predict_proba")
        assert model.probA_.shape == model.probB_.shape == (0,)
        with pytest.raises(NotFittedError, match="probability=False"):
            model.set_params(probability=True).predict_proba(X)
        assert model.predict(X).shape == y.shape

    def test_which_samples_are_held_out_together(self):
        X, y = wine()
        one, same, other = (LinearSVC(probability=True, random_state=seed).fit(X, y) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one.probA_, same.probA_)
        assert not np.array_equal(one.probA_, other.probA_)
        np.testing.assert_array_equal(one.coef_, other.coef_)
