"""Machines that scikit-learn does not have: squared losses, quantiles, data description, ν without intercept.

They are compared with equivalent models.
"""

import numpy as np
import pytest
from sklearn import svm
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import QuantileRegressor

from maxmargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR
from reference.data import diabetes, iris, waves


class TestNuWithoutIntercept:
    @pytest.mark.parametrize("solver", ["pairwise", "block"])
    def test_classification_is_that_of_the_cost_that_comes_out(self, solver):
        X, y = iris()
        for labels in (y > 0, y):
            model = NuSVC(nu=0.4, gamma=0.5, fit_intercept=False, solver=solver, tol=1e-7).fit(X, labels)
            assert not model.intercept_.any()
            machines = model.geometry_ if isinstance(model.geometry_, list) else [model.geometry_]
            for machine in machines:
                rows = machine.samples
                twin = SVC(C=machine.cost, gamma=0.5, fit_intercept=False, tol=1e-8).fit(X[rows], labels[rows])
                assert twin.geometry_.margin == pytest.approx(machine.margin, rel=1e-5)
                np.testing.assert_allclose(np.sort(twin.geometry_.slack), np.sort(machine.slack), atol=1e-4)
        unequal = np.arange(len(y)) < 5  # too unequal for nu=0.4 with an intercept
        assert NuSVC(nu=0.4, fit_intercept=False).fit(X, unequal).certificate_.violation <= 1e-3

    @pytest.mark.parametrize("solver", ["pairwise", "block"])
    def test_regression_is_that_of_the_tube_that_comes_out(self, solver):
        X, y = diabetes()
        model = NuSVR(nu=0.3, gamma=0.1, fit_intercept=False, solver=solver, tol=1e-6).fit(X, y)
        assert not model.intercept_.any()
        assert model.certificate_.violation <= 1e-6
        twin = SVR(epsilon=model.geometry_.epsilon, gamma=0.1, fit_intercept=False, tol=1e-8).fit(X, y)
        np.testing.assert_allclose(model.predict(X), twin.predict(X), atol=1e-4)
        outside = np.abs(y - model.predict(X)) > model.geometry_.epsilon + 1e-5
        assert outside.mean() <= 0.3
        assert len(model.support_) >= 0.3 * len(y)


class TestSquaredLosses:
    def test_ridge_regression_is_a_tube_of_no_width(self):
        X, y = diabetes()
        model = SVR(loss="squared_epsilon_insensitive", epsilon=0.0, C=3.0, gamma=0.1, fit_intercept=False, tol=1e-8)
        ridge = KernelRidge(alpha=1 / 6.0, kernel="rbf", gamma=0.1).fit(X, y)
        np.testing.assert_allclose(model.fit(X, y).predict(X), ridge.predict(X), atol=1e-6)

    def test_linear_models_are_liblinears(self):
        X, y = diabetes()
        for ours, theirs, target in (
            (SVC(kernel="linear", loss="squared_hinge", fit_intercept=False, tol=1e-8, C=0.1),
             svm.LinearSVC(loss="squared_hinge", fit_intercept=False, tol=1e-10, C=0.1, max_iter=10**6), y > 0),
            (SVR(kernel="linear", loss="squared_epsilon_insensitive", fit_intercept=False, tol=1e-8, C=0.1),
             svm.LinearSVR(loss="squared_epsilon_insensitive", fit_intercept=False, tol=1e-10, C=0.1, epsilon=0.1,
                           dual=True, max_iter=10**6), y),
        ):  # fmt: skip
            np.testing.assert_allclose(
                ours.fit(X, target).coef_.ravel(), theirs.fit(X, target).coef_.ravel(), atol=1e-5
            )

    def test_slack_of_support_vectors(self):
        X, y = iris()
        X, y = X[y > 0], y[y > 0]
        model = SVC(loss="squared_hinge", C=2.0).fit(X, y)
        assert len(model.geometry_.bounded) == 0
        slack = np.abs(model.dual_coef_[0]) / 4.0
        by_sample = np.zeros(len(y))
        by_sample[model.support_] = slack
        np.testing.assert_allclose(model.geometry_.slack, by_sample, atol=1e-6)

    @pytest.mark.parametrize("solver", ["block", "pairwise"])
    def test_large(self, solver):
        X, y = waves(2200)
        model = SVR(loss="squared_epsilon_insensitive", solver=solver).fit(X, y)
        assert model.certificate_.violation <= 1e-3
        model = SVC(loss="squared_hinge", solver=solver).fit(X, y > 0.3)
        assert model.certificate_.violation <= 1e-3

    def test_unknown_losses(self):
        X, y = iris()
        with pytest.raises(ValueError, match="loss must be one of 'hinge', 'squared_hinge', not 'log'"):
            SVC(loss="log").fit(X, y)
        with pytest.raises(ValueError, match="loss must be one of 'epsilon_insensitive'"):
            SVR(loss="hinge").fit(X, y)


class TestQuantiles:
    def test_a_part_of_the_targets_lies_below(self):
        X, y = diabetes()
        last = None
        for quantile in (0.1, 0.5, 0.9):
            model = QuantileSVR(quantile=quantile, C=3.0, gamma=0.01).fit(X, y)
            errors = y - model.predict(X)
            assert np.mean(errors < -1e-9) <= quantile <= np.mean(errors < 1e-9)
            assert last is None or np.mean(model.predict(X) > last) > 0.95
            last = model.predict(X)

    def test_the_median_is_a_tube_of_no_width(self):
        X, y = diabetes()
        median = QuantileSVR(C=2.0, gamma=0.1, tol=1e-6).fit(X, y)
        tube = SVR(C=1.0, epsilon=0.0, gamma=0.1, tol=1e-6).fit(X, y)
        np.testing.assert_allclose(median.predict(X), tube.predict(X), atol=1e-4)

    def test_linear_quantiles_are_scikit_learns_without_penalty(self):
        X, y = diabetes()
        ours = QuantileSVR(quantile=0.7, kernel="linear", C=1e4).fit(X[:, :3], y)
        theirs = QuantileRegressor(quantile=0.7, alpha=0.0).fit(X[:, :3], y)
        np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-3)

    def test_parameters(self):
        with pytest.raises(ValueError, match="quantile must be a number above 0 and below 1"):
            QuantileSVR(quantile=1.0).fit([[0.0], [1.0]], [0.0, 1.0])


class TestDataDescription:
    def test_it_is_the_one_class_machine_of_a_gaussian(self):
        X, _ = diabetes()
        ball, plane = SVDD(nu=0.2, gamma=0.1).fit(X), OneClassSVM(nu=0.2, gamma=0.1).fit(X)
        np.testing.assert_array_equal(ball.predict(X), plane.predict(X))
        np.testing.assert_allclose(ball.dual_coef_, 2 * plane.dual_coef_ / plane.dual_coef_.sum(), atol=1e-8)

    def test_the_smallest_ball_of_a_few_points(self):
        model = SVDD(nu=0.25, kernel="linear").fit([[0.0, 0.0], [2.0, 0.0], [1.0, 1.0], [1.0, 0.5]])
        assert model.geometry_.radius == pytest.approx(1.0)
        np.testing.assert_allclose(model.decision_function([[1.0, 0.0], [3.0, 0.0]]), [1.0, -3.0], atol=1e-9)

    def test_a_precomputed_kernel_does_not_tell_enough(self):
        with pytest.raises(ValueError, match=r"k\(x, x\) of new samples.*use OneClassSVM"):
            SVDD(kernel="precomputed").fit(np.eye(3))
