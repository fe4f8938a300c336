"""LinearSVC(penalty="l1"): the estimator around weights that are mostly 0."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC, linear_path
from maxmargin.problems import Status
from maxmargin.solvers import CoordinateDescentSolver, LinearSolver, StoppingRule
from reference.data import iris, wine
from reference.sparse_program import solve_sparse_program


@parametrize_with_checks([LinearSVC(penalty="l1"), LinearSVC(penalty="l1", intercept_scaling=1)])
def test_sklearn_checks(estimator, check):
    check(estimator)


def objective(model, X, y, C=1.0, sample_weight=None):
    """The primal by the textbook, of two classes."""
    slack = np.maximum(0.0, 1.0 - np.where(y == model.classes_[1], 1.0, -1.0) * model.decision_function(X))
    bias = 0.0 if model.intercept_scaling is None else abs(model.intercept_[0]) / model.intercept_scaling
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    return np.abs(model.coef_).sum() + bias + C * weights @ slack**2


@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("scaling", [1.0, 5.0])
def test_as_good_as_scikit_learn(C, scaling):
    X, y = wine()
    y = y == 1
    model = LinearSVC(penalty="l1", C=C, intercept_scaling=scaling, tol=1e-8).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sklearn.svm.LinearSVC(
            penalty="l1", dual=False, C=C, intercept_scaling=scaling, tol=1e-10, max_iter=100_000, random_state=0
        ).fit(X, y)
    assert model.certificate_.primal == pytest.approx(objective(model, X, y, C), rel=1e-9)
    assert model.certificate_.primal <= objective(theirs, X, y, C) * (1 + 1e-8)
    assert objective(theirs, X, y, C) <= model.certificate_.dual * (1 + 1e-3)
    if C <= 1:
        np.testing.assert_array_equal(model.coef_ == 0, theirs.coef_ == 0)


def test_weights_are_exactly_zero_and_select_features():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 50))
    y = X[:, 3] - X[:, 7] > 0.2 * random.normal(size=200)
    model = LinearSVC(penalty="l1", C=0.05).fit(X, y)
    assert set(np.flatnonzero(model.coef_)) >= {3, 7}
    assert np.count_nonzero(model.coef_) < 25
    assert SelectFromModel(model, prefit=True).transform(X).shape[1] == np.count_nonzero(model.coef_)
    expected = model.decision_function(X)
    assert model.sparsify().coef_.nnz < 25
    np.testing.assert_allclose(model.decision_function(X), expected)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
def test_classes_against_the_rest(form):
    X, y = iris()
    factors, weights = {0: 2.0, 1: 1.0, 2: 0.5}, np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    weights[::10] = 0.0
    model = LinearSVC(penalty="l1", class_weight=factors, tol=1e-7).fit(form(X), y, sample_weight=weights)
    assert model.coef_.shape == (3, 4)
    kept = weights > 0
    for number, certificate in enumerate(model.certificate_):
        signs = np.where(y == number, 1.0, -1.0)
        costs = weights * np.where(y == number, factors[number], 1.0)
        value = solve_sparse_program(X[kept], signs[kept], costs[kept])
        assert certificate.primal == pytest.approx(value, rel=1e-5)
        assert certificate.relative_gap <= 1e-7
        assert "violation" in str(certificate)
    assert [proof.primal for proof in model.certify(form(X), y, sample_weight=weights)] == pytest.approx(
        [certificate.primal for certificate in model.certificate_]
    )


def test_the_proof_of_a_model_is_about_its_intercept():
    X, y = wine()
    y = y == 1
    model = LinearSVC(penalty="l1", tol=1e-8).fit(X, y)
    proof = model.certify(X, y)
    assert proof.relative_gap <= 1e-3
    model.intercept_ = model.intercept_ + 1.0
    assert model.certify(X, y).primal == pytest.approx(objective(model, X, y))
    assert model.certify(X, y).dual <= proof.primal


def test_a_path_starts_each_model_from_the_one_before():
    X, y = wine()
    costs = [1e-3, 1e-2, 0.1, 1.0, 10.0]
    path = linear_path(X, y == 1, costs, estimator=LinearSVC(penalty="l1", tol=1e-6))
    used = [np.count_nonzero(coef) for coef in path.coefs]
    assert used[0] == 0
    assert used[0] < used[-1]
    for C, certificate in zip(costs, path.certificates, strict=True):
        assert certificate.relative_gap <= 1e-6
        alone = LinearSVC(penalty="l1", tol=1e-6, C=C).fit(X, y == 1).certificate_
        assert certificate.primal == pytest.approx(alone.primal, rel=2e-6)


def test_warm_start():
    X, y = wine()
    for scaling in (None, 2.0):
        model = LinearSVC(penalty="l1", warm_start=True, intercept_scaling=scaling).fit(X, y)
        assert model.n_iter_ > 0
        assert model.fit(X, y).n_iter_ == 0
    assert model.fit(X[:, :5], y).coef_.shape == (3, 5)  # weights of other features are no start
    assert max(proof.relative_gap for proof in model.set_params(penalty="l2").fit(X[:, :5], y).certificate_) <= 1e-4
    assert max(proof.relative_gap for proof in model.set_params(penalty="l1").fit(X[:, :5], y).certificate_) <= 1e-4


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities(classes):
    X, y = iris()
    y = np.minimum(y, classes - 1)
    model = LinearSVC(penalty="l1", probability=True).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))
    assert model.score(X, y) > 0.9


def test_limits_callbacks_and_threads():
    X, y = wine()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = LinearSVC(penalty="l1", C=1e3, max_iter=2).fit(X, y)
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="raise max_seconds"):
        model = LinearSVC(penalty="l1", C=1e3, max_seconds=0).fit(X, y)
    assert model.predict(X).shape == y.shape
    seen = []
    with pytest.warns(ConvergenceWarning, match="callback asked to stop"):
        LinearSVC(penalty="l1", C=1e3, callback=lambda progress: seen.append(progress) or True).fit(X, y)
    assert seen[0].primal >= seen[0].dual
    one, two = (LinearSVC(penalty="l1", n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6, atol=1e-9)


def test_an_interrupted_fit_leaves_a_model():
    def interrupt(progress):
        raise KeyboardInterrupt

    X, y = wine()
    model = LinearSVC(penalty="l1", C=1e3, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="usable"):
        model.fit(X, y)
    assert model.predict(X).shape == y.shape
    assert all(proof.gap > 0 for proof in model.certificate_)


@pytest.mark.parametrize("C", [1e-10, 1.0, 100.0, 1e6])
@pytest.mark.parametrize("change", ["none", "shift 1e3", "scale 1e6", "scale 1e-6", "zeros", "few distinct rows"])
def test_hard_cases(C, change):
    random = np.random.default_rng(1)
    X = random.normal(size=(300, 6))
    y = X[:, 1] + random.normal(size=300) > 0
    if change == "shift 1e3":
        X = X + 1e3
    elif change.startswith("scale"):
        X[:, 0] *= float(change.split()[1])
    elif change == "zeros":
        X[:, 2] = 0.0
    elif change == "few distinct rows":
        X = np.repeat(X[:10], 30, axis=0)
    # Products with responses of 10⁶ times features of 10⁶ must cancel to 1, and double precision has 16 digits.
    tol = 1e-3 if change == "scale 1e6" and C == 1e6 else 1e-4
    model = LinearSVC(penalty="l1", C=C, tol=tol).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.relative_gap <= tol
    assert model.certificate_.primal == pytest.approx(objective(model, X, y, C), rel=1e-6)
    if C == 1e-10 and change != "scale 1e6":
        assert not model.coef_.any()


def test_a_solver_object_brings_its_own_rule():
    X, y = wine()
    model = LinearSVC(penalty="l1", solver=CoordinateDescentSolver(StoppingRule(violation=1e-9)), tol=1.0)
    assert max(proof.violation for proof in model.fit(X, y).certificate_) <= 1e-9
    named = clone(model).set_params(solver="coordinate_descent", tol=1e-4).fit(X, y)
    assert named.score(X, y) == model.score(X, y)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (LinearSVC(penalty="l1", loss="hinge"), "penalty='l1' needs loss='squared_hinge'"),
        (LinearSVC(penalty="l1", multi_class="crammer_singer"), "multi_class='ovr'"),
        (LinearSVC(penalty="l1", dual=True), "dual='auto' or False"),
        (LinearSVC(penalty="l1", solver="semismooth_newton"), "solver must be one of 'auto', 'coordinate_descent'"),
        (LinearSVC(penalty="l1", solver=LinearSolver()), "LinearSolver is for penalty='l2', not 'l1'"),
        (LinearSVC(solver=CoordinateDescentSolver()), "CoordinateDescentSolver is for penalty='l1', not 'l2'"),
    ],
)
def test_what_does_not_go_together(model, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(*iris())
