"""`LSSVC` and `LSSVR`: compared with NumPy's linear equations and scikit-learn's kernel ridge."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LSSVC, LSSVR, SVC, SVR, Status
from maxmargin.kernels import Gaussian
from maxmargin.solvers import LinearSystemSolver, StoppingRule
from reference.data import diabetes, iris, waves, wine


@parametrize_with_checks([LSSVC(), LSSVR()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def solve(K, targets, costs):
    """The textbook's system (K + diag(1/C), 1; 1ᵀ, 0), by numpy: coefficients and offset."""
    n = len(targets)
    system = np.block([[K + np.diag(1.0 / costs), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(targets, 0.0))
    return solution[:n], solution[n]


class TestRegression:
    @pytest.mark.parametrize("cost", [1e-6, 0.3, 100.0, 1e6])
    def test_without_offset_it_is_kernel_ridge(self, cost):
        X, y = diabetes()
        model = LSSVR(C=cost, gamma=0.1, fit_intercept=False).fit(X, y)
        ridge = KernelRidge(alpha=1 / cost, kernel="rbf", gamma=0.1).fit(X, y)
        np.testing.assert_allclose(model.predict(X), ridge.predict(X), atol=1e-8)

    def test_weights_and_offset_are_those_of_the_equations(self):
        X, y = diabetes()
        weights = np.random.default_rng(0).uniform(0, 3, len(y)) * (np.arange(len(y)) % 5 > 0)
        used = weights > 0
        for given in (X, sparse.csr_matrix(X)):
            model = LSSVR(C=2.0, gamma=0.1).fit(given, y, sample_weight=weights)
            coefficients, offset = solve(rbf_kernel(X[used], gamma=0.1), y[used], 2.0 * weights[used])
            np.testing.assert_array_equal(model.support_, np.flatnonzero(used))
            found = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
            np.testing.assert_allclose(found[0], coefficients, atol=1e-10)
            assert model.intercept_[0] == pytest.approx(offset, abs=1e-10)
            np.testing.assert_allclose(model.geometry_.error, coefficients / (2.0 * weights[used]), atol=1e-9)

    def test_it_is_a_squared_tube_of_no_width(self):
        X, y = diabetes()
        tube = SVR(loss="squared_epsilon_insensitive", epsilon=0.0, C=1.5, gamma=0.1, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(LSSVR(C=3.0, gamma=0.1).fit(X, y).predict(X), tube.predict(X), atol=1e-6)

    def test_linear_coefficients(self):
        X, y = diabetes()
        model = LSSVR(kernel="linear", C=10.0).fit(X, y)
        np.testing.assert_allclose(X @ model.coef_[0] + model.intercept_[0], model.predict(X), atol=1e-9)

    @pytest.mark.parametrize("memory", ["auto", 0.5])
    def test_large(self, memory):
        X, y = waves(2600)
        model = LSSVR(C=5.0, cache_size=memory).fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.violation <= 1e-3
        exact = LSSVR(C=5.0, solver=LinearSystemSolver(stopping=StoppingRule(1e-10))).fit(X, y)
        assert exact.certificate_.relative_gap < 1e-14
        np.testing.assert_allclose(model.predict(X[:200]), exact.predict(X[:200]), atol=1e-2)
        assert model.n_iter_ > 1

    def test_unscaled_columns_end_honestly(self):
        X, y = diabetes()
        X = X * 10.0 ** np.arange(-4, 6) + 1e3
        model = LSSVR(kernel="linear", C=100.0)
        with pytest.warns(ConvergenceWarning, match="double precision"):
            model.fit(X, y)
        assert model.status_ is Status.PRECISION
        assert model.score(X, y) > 0.4  # as good as the digits allow
        assert 1e-3 < model.certificate_.violation < 0.1


class TestClassification:
    def test_two_classes_are_the_equations(self):
        X, y = wine()
        y = np.where(y == 1, "yes", "no")
        model = LSSVC(C=3.0, gamma=0.05).fit(X, y)
        coefficients, offset = solve(rbf_kernel(X, gamma=0.05), np.where(y == "yes", 1.0, -1.0), np.full(len(y), 3.0))
        decision = rbf_kernel(X, gamma=0.05) @ coefficients + offset
        np.testing.assert_allclose(model.decision_function(X), decision, atol=1e-10)
        np.testing.assert_allclose(model.geometry_.slack, 1 - np.where(y == "yes", 1, -1) * decision, atol=1e-10)
        assert model.score(X, y) > 0.97

    def test_each_pair_of_classes_is_a_machine_of_its_own(self):
        X, y = iris()
        weights = {0: 1.0, 1: 2.0, 2: 0.5}
        model = LSSVC(C=2.0, gamma=0.2, class_weight=weights, decision_function_shape="ovo").fit(X, y)
        for column, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
            rows = (y == a) | (y == b)
            pair = LSSVC(C=2.0, gamma=0.2, class_weight={a: weights[a], b: weights[b]}).fit(X[rows], y[rows])
            np.testing.assert_allclose(model.decision_function(X)[:, column], -pair.decision_function(X), atol=1e-10)
        assert all(certificate.relative_gap < 1e-10 for certificate in model.certificate_)
        assert LSSVC(n_jobs=2).fit(X, y).score(X, y) > 0.95

    def test_an_almost_empty_class(self):
        X, y = iris()
        labels = (np.arange(len(y)) == 7).astype(int)
        model = LSSVC(C=1e3, gamma=10.0, class_weight="balanced").fit(X, labels)
        np.testing.assert_array_equal(model.predict(X), labels)

    def test_two_samples(self):
        model = LSSVC(kernel="linear", C=1e6).fit([[0.0], [4.0]], [0, 1])
        np.testing.assert_allclose(model.decision_function([[0.0], [2.0], [4.0]]), [-1, 0, 1], atol=1e-5)


class TestWhatMachinesShare:
    @pytest.mark.parametrize("model", [LSSVR(C=5.0, gamma=0.1), LSSVC(C=5.0, gamma=0.1)])
    def test_other_solvers_and_kernels_agree(self, model):
        X, y = iris()
        decide = "decision_function" if hasattr(model, "decision_function") else "predict"
        expected = getattr(clone(model).fit(X, y), decide)(X)
        for solver in ("pairwise", "block", "linear_system", "platt", "gradient_projection", "active_set"):
            other = clone(model).set_params(solver=solver, tol=1e-7).fit(X, y)
            np.testing.assert_allclose(getattr(other, decide)(X), expected, atol=1e-5)
        K = Gaussian(0.1)(X)
        precomputed = clone(model).set_params(kernel="precomputed").fit(K, y)
        own = clone(model).set_params(kernel=lambda A, B: Gaussian(0.1)(A, B)).fit(X, y)
        np.testing.assert_allclose(getattr(precomputed, decide)(K), expected, atol=1e-9)
        np.testing.assert_allclose(getattr(own, decide)(X), expected, atol=1e-9)

    @pytest.mark.parametrize("model", [LSSVR(warm_start=True), LSSVC(warm_start=True)])
    def test_pickles_and_warm_starts(self, model):
        X, y = iris()
        y = np.minimum(y, 1)
        model.fit(X, y)
        _ = model.certificate_  # computed before it is stored
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.dual_coef_, model.dual_coef_)
        assert copy.certificate_.gap == model.certificate_.gap
        assert copy.geometry_.offset == model.geometry_.offset
        assert np.all(model.fit(X, y).n_iter_ == 0)

    def test_limits_warn_and_callbacks_stop(self):
        X, y = waves(2200)
        for limits, status in (
            ({"max_iter": 1}, Status.MAX_ITERATIONS),
            ({"max_seconds": 0.0}, Status.MAX_SECONDS),
            ({"callback": lambda progress: True}, Status.STOPPED),
        ):
            for model in (LSSVR(C=1e3, **limits), LSSVC(C=1e3, **limits)):
                with pytest.warns(ConvergenceWarning, match="stopped before the tolerance"):
                    model.fit(X, y if isinstance(model, LSSVR) else y > 0)
                assert model.status_ is status
                assert model.certificate_.gap > 0

    @pytest.mark.parametrize(
        ("model", "message"),
        [
            (LSSVR(C=0.0), "C must be a number above 0"),
            (LSSVC(C=np.inf), "C must be a number above 0"),
            (LSSVR(solver="smo"), "solver must be one of 'auto', 'linear_system', 'pairwise', 'block', .*not 'smo'"),
            (SVC(solver="linear_system"), "solver must be one of 'auto', 'pairwise', 'block'"),
            (SVC(solver=LinearSystemSolver()), "such as those of LSSVC and LSSVR"),
            (LSSVC(fit_intercept=1), "fit_intercept must be True or False"),
            (LSSVC(kernel="sigmoid", gamma=1.0, coef0=-1.0, C=1e3), "kernel is indefinite"),
            (LSSVC(C=1e-320), "use a larger C"),
            (LSSVR(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)), "not finite"),
        ],
    )
    def test_errors(self, model, message):
        X, y = iris()
        with pytest.raises(ValueError, match=message):
            model.fit(X[y > 0], y[y > 0], sample_weight=np.full(100, 1e-10) if model.C == 1e-320 else None)
