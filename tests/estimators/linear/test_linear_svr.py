"""`LinearSVR` and `LinearOneClassSVM` against scikit-learn's, our own with a kernel, and a generic solver."""

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.exceptions import NotFittedError

from maxmargin import SVR, LinearOneClassSVM, LinearSVR, OneClassSVM
from maxmargin.formulations import epsilon_regression, one_class, squared_epsilon_regression
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.testing.quadratic_program import solve_quadratic_program
from reference.data import diabetes, wine

POSE = {
    "epsilon_insensitive": epsilon_regression.pose,
    "squared_epsilon_insensitive": squared_epsilon_regression.pose,
}


class TestRegression:
    @pytest.mark.parametrize("loss", POSE)
    @pytest.mark.parametrize("epsilon", [0.0, 0.3])
    @pytest.mark.parametrize("scaling", [1.0, 3.0])
    def test_scikit_learn_with_a_regularised_intercept(self, loss, epsilon, scaling):
        X, y = diabetes()
        common = {"loss": loss, "epsilon": epsilon, "C": 0.1, "intercept_scaling": scaling}
        ours = LinearSVR(tol=1e-10, **common).fit(X, y)
        theirs = sklearn.svm.LinearSVR(tol=1e-9, max_iter=10**6, dual=True, random_state=0, **common).fit(X, y)
        assert ours.coef_.shape == theirs.coef_.shape
        assert ours.intercept_.shape == theirs.intercept_.shape
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4)

    @pytest.mark.parametrize("loss", POSE)
    @pytest.mark.parametrize("intercept", [{}, {"intercept_scaling": 2.0}, {"fit_intercept": False}])
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_objective_is_that_of_a_generic_solver(self, loss, intercept, form):
        for seed in range(4):
            random = np.random.default_rng(seed)
            n, d = random.integers(6, 30), random.integers(1, 8)
            X = random.normal(size=(n, d))
            y = X[:, 0] + random.normal(size=n) + 1.0
            cost, weights = 10.0 ** random.uniform(-1, 2), random.uniform(0.1, 3, n)
            model = LinearSVR(loss=loss, C=cost, epsilon=0.2, tol=1e-9, **intercept)
            model.fit(form(X), y, sample_weight=weights)
            constant = intercept.get("intercept_scaling", 0.0)
            matrix = PrecomputedMatrix(X @ X.T + constant**2)
            value, _ = solve_quadratic_program(POSE[loss](matrix, y, cost * weights, 0.2, not intercept))
            assert model.certificate_.dual == pytest.approx(value, rel=1e-6)
            assert model.certificate_.primal == pytest.approx(value, rel=1e-6)

            # The same from what a user sees.
            slack = np.maximum(0, np.abs(y - model.predict(X)) - 0.2)
            bias = (model.intercept_[0] / constant) ** 2 if constant else 0.0
            norm = 0.5 * (model.coef_ @ model.coef_) + 0.5 * bias
            seen = norm + cost * weights @ (slack if loss == "epsilon_insensitive" else slack**2)
            assert seen == pytest.approx(value, rel=1e-6)

    def test_the_offset_of_the_proof_is_the_intercept(self):
        X, y = diabetes()
        model = LinearSVR(C=0.1).fit(X, y + 100.0)
        np.testing.assert_array_equal(model.certificate_.offset, model.intercept_)

    def test_several_outputs(self):
        X, y = diabetes()
        table = np.stack([y, -3 * y + 5, X[:, 0]], axis=1)
        model = LinearSVR(epsilon=0.1, tol=1e-8).fit(X, table)
        assert model.coef_.shape == (3, X.shape[1])
        assert len(model.certificate_) == len(model.status_) == 3
        for column in range(3):
            alone = LinearSVR(epsilon=0.1, tol=1e-8).fit(X, table[:, column])
            np.testing.assert_allclose(model.predict(X)[:, column], alone.predict(X), atol=1e-3)

    def test_intervals(self):
        X, y = diabetes()
        model = LinearSVR(C=0.1, noise=True).fit(X, y)
        kernel = SVR(kernel="linear", C=0.1, epsilon=0.0, noise=True).fit(X, y)
        assert model.noise_scale_ == pytest.approx(kernel.noise_scale_, rel=0.02)
        low, high = model.predict_interval(X, 0.8).T
        assert 0.7 < np.mean((low < y) & (y < high)) < 0.9
        assert not hasattr(LinearSVR().fit(X, y), "predict_interval")
        with pytest.raises(NotFittedError, match="noise=False"):
            LinearSVR().fit(X, y).set_params(noise=True).predict_interval(X)


class TestOneClass:
    @pytest.mark.parametrize("nu", [0.01, 0.3, 0.9])
    def test_the_kernel_machine(self, nu):
        X = wine()[0] + 3.0
        linear = LinearOneClassSVM(nu=nu, tol=1e-10).fit(X)
        kernel = OneClassSVM(nu=nu, kernel="linear", tol=1e-8).fit(X)
        scale = np.abs(kernel.offset_[0])
        np.testing.assert_allclose(linear.coef_, kernel.coef_, atol=1e-4 * np.abs(kernel.coef_).max())
        np.testing.assert_allclose(linear.offset_, kernel.offset_, rtol=1e-4)
        np.testing.assert_allclose(linear.score_samples(X), kernel.score_samples(X), atol=1e-4 * scale)
        clear = np.abs(kernel.decision_function(X)) > 1e-4 * scale
        np.testing.assert_array_equal(linear.predict(X)[clear], kernel.predict(X)[clear])
        assert np.mean(linear.decision_function(X) < -1e-4 * scale) <= nu

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_objective_is_that_of_a_generic_solver(self, form):
        X = wine()[0][:60] + 2.0
        weights = np.random.default_rng(0).uniform(0.1, 3, len(X))
        model = LinearOneClassSVM(nu=0.2, tol=1e-9).fit(form(X), sample_weight=weights)
        value, _ = solve_quadratic_program(one_class.pose(PrecomputedMatrix(X @ X.T), weights, 0.2))
        assert model.certificate_.dual == pytest.approx(value, rel=1e-6)
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)

    def test_data_around_the_origin_have_no_half_space(self):
        X = wine()[0]
        model = LinearOneClassSVM(nu=0.5).fit(X)
        assert model.status_.converged
        assert np.abs(model.coef_).max() < 1e-3

    def test_probabilities_agree_with_predict(self):
        X = wine()[0] + 3.0
        model = LinearOneClassSVM(nu=0.3, probability=True).fit(X)
        inside = model.predict_proba(X)[:, 0]
        np.testing.assert_array_equal(inside >= 0.5, model.predict(X) == 1)
        assert not hasattr(LinearOneClassSVM(), "predict_proba")
