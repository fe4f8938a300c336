"""`LinearSVC` against scikit-learn's, LIBLINEAR's objective and a generic solver, and on hard cases."""

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse

from maxmargin import LinearSVC
from maxmargin.formulations import c_classification, squared_hinge
from maxmargin.matrices import PrecomputedMatrix
from reference.data import iris, wine
from reference.quadratic_program import solve_quadratic_program

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
