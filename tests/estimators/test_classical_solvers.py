"""Machines trained by the methods of the literature: by name, with the same certificate as any other."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification, make_regression

from maxmargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR, RankSVC
from maxmargin.machines.kernel.kernel_estimator import CLASSICAL_SOLVERS
from maxmargin.problems import Status
from maxmargin.solvers import SOLVERS, StoppingRule

pytestmark = pytest.mark.parametrize("solver", CLASSICAL_SOLVERS)


def two_classes(n=150):
    X, y = make_classification(n, 5, n_informative=3, flip_y=0.1, random_state=0)
    return X, y


def regression(n=80):
    X, y = make_regression(n, 3, noise=5.0, random_state=0)
    return X, y / 50.0


def agree(model, X, y, solver, **options):
    """Fit as usual and by a solver; both are certified and have the same value."""
    usual = clone(model).set_params(tol=1e-4, **options).fit(X, y)
    other = clone(model).set_params(tol=1e-4, solver=solver, **options).fit(X, y)
    pairs = zip(np.atleast_1d(usual.certificate_), np.atleast_1d(other.certificate_), strict=True)
    for expected, found in pairs:
        assert found.violation <= 1e-4
        assert found.dual == pytest.approx(expected.dual, rel=1e-4, abs=1e-6)
        assert found.primal == pytest.approx(expected.primal, rel=1e-3, abs=1e-4)
    return usual, other


class TestSVC:
    @pytest.mark.parametrize("cost", [1e-6, 1.0, 20.0])
    def test_same_certificate(self, solver, cost):
        X, y = two_classes()
        usual, other = agree(SVC(C=cost, gamma=0.3), X, y, solver)
        np.testing.assert_allclose(other.decision_function(X), usual.decision_function(X), atol=1e-3)
        assert other.status_ is Status.CONVERGED

    def test_several_classes(self, solver):
        X, y = load_iris(return_X_y=True)
        usual, other = agree(SVC(C=2.0, gamma=0.5), X, y, solver)
        np.testing.assert_array_equal(other.predict(X), usual.predict(X))

    def test_squared_hinge_weights_and_no_offset(self, solver):
        X, y = two_classes(80)
        agree(SVC(loss="squared_hinge", gamma=0.3), X, y, solver)
        agree(SVC(gamma=0.3, fit_intercept=False), X, y, solver)
        agree(SVC(gamma=0.3, class_weight="balanced"), X, y, solver)

    def test_duplicates_and_a_singular_kernel(self, solver):
        X, y = two_classes(40)
        agree(SVC(kernel="linear", C=0.5), np.vstack([X, X, X]), np.concatenate([y, y, 1 - y]), solver)

    def test_an_almost_empty_class(self, solver):
        X, _ = two_classes(80)
        agree(SVC(C=10.0, gamma=0.5), X, (np.arange(80) == 7).astype(int), solver)

    def test_unscaled_columns(self, solver):
        X, y = two_classes(80)
        agree(SVC(kernel="linear", C=1e-4), X * [1.0, 100.0, 1.0, 0.01, 1.0], y, solver)

    def test_hard_margin(self, solver):
        X, y = load_iris(return_X_y=True)
        agree(SVC(kernel="linear", C=np.inf), X[y < 2], y[y < 2], solver)

    def test_two_samples(self, solver):
        model = SVC(kernel="linear", C=10.0, solver=solver).fit([[0.0], [1.0]], [0, 1])
        np.testing.assert_allclose(model.decision_function([[0.0], [0.5], [1.0]]), [-1, 0, 1], atol=1e-6)

    def test_probabilities(self, solver):
        X, y = two_classes(60)
        model = SVC(gamma=0.3, probability=True, solver=solver).fit(X, y)
        usual = SVC(gamma=0.3, probability=True).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), usual.predict_proba(X), atol=0.01)

    def test_limits_are_warnings(self, solver):
        X, y = two_classes()
        with pytest.warns(UserWarning, match="limit on iterations"):
            model = SVC(gamma=0.3, C=100.0, tol=1e-8, max_iter=3, solver=solver).fit(X, y)
        assert model.status_ is Status.MAX_ITERATIONS
        assert model.certificate_.gap > 0

    def test_ctrl_c(self, solver):
        def interrupt(progress):
            raise KeyboardInterrupt

        X, y = two_classes()
        model = SVC(gamma=0.3, C=100.0, solver=solver, callback=interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert model.certificate_.infeasibility < 1e-9

    def test_objects_bring_their_options(self, solver):
        X, y = two_classes()
        model = SVC(gamma=0.3, solver=SOLVERS[solver](stopping=StoppingRule(violation=1e-6))).fit(X, y)
        assert model.certificate_.violation <= 1e-6

    def test_kernels_that_are_not_finite(self, solver):
        X, y = two_classes(20)
        with pytest.raises(ValueError, match="not finite"):
            SVC(kernel=lambda A, B: np.full((len(A), len(B)), np.nan), solver=solver).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [SVR(C=2.0), NuSVR(C=2.0), QuantileSVR(C=2.0), SVR(loss="squared_epsilon_insensitive")],
    ids=lambda model: f"{type(model).__name__}{getattr(model, 'loss', '')}",
)
def test_regression(solver, model):
    agree(model, *regression(), solver)


@pytest.mark.parametrize("model", [OneClassSVM(nu=0.3, gamma=0.3), SVDD(gamma=0.3)], ids=lambda m: type(m).__name__)
def test_one_class(solver, model):
    agree(model, two_classes()[0], None, solver)


def test_nu_classification(solver):
    agree(NuSVC(nu=0.4, gamma=0.3), *two_classes(), solver)


def test_ranking(solver):
    X, y = regression(12)
    agree(RankSVC(C=0.5), X, np.round(y), solver)
