"""Bounds are bounds, and the span estimate is exact where it should be."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from tests.selection.brute_force import refit_without_each

from maxmargin import LSSVC, LSSVR, SVC, SVR, NuSVC, NuSVR, OneClassSVM, error_estimates, leave_one_out
from maxmargin.formulations import c_classification
from maxmargin.kernels import FunctionKernel, Gaussian, Linear, Points, Polynomial, Sigmoid
from maxmargin.matrices import KernelMatrix
from maxmargin.selection.error_estimates import _distance_bound, span_values


def overlapping(seed, count=60, separation=0.6):
    return make_classification(count, 4, n_informative=3, n_redundant=0, flip_y=0.15, class_sep=separation,
                               random_state=seed)  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_xi_alpha_and_support_vectors_bound_leave_one_out(seed):
    random = np.random.default_rng(seed)
    X, y = overlapping(seed, int(random.integers(20, 100)), random.uniform(0.3, 2.0))
    model = SVC(
        C=10 ** random.uniform(0, 3),
        gamma=10 ** random.uniform(-2, 0.5),
        fit_intercept=bool(seed % 3),
        loss=("hinge", "squared_hinge")[seed % 2],
    ).fit(X, y)
    estimates = error_estimates(model, loo=True)
    assert estimates.xi_alpha >= estimates.leave_one_out
    assert estimates.support_vectors >= estimates.xi_alpha
    positive, predicted = y == 1, model.loo_predictions_ == 1
    assert estimates.xi_alpha_recall <= np.mean(predicted[positive])
    if predicted.any():
        assert estimates.xi_alpha_precision <= np.mean(positive[predicted]) + 1e-12
    assert estimates.training == np.mean(model.predict(X) != y)


def sets_of(model, cost):
    size = np.zeros(model.shape_fit_[0])
    size[model.support_] = np.abs(model.dual_coef_.ravel())
    return np.where(size == 0, 0, np.where(size < cost, 1, 2))


@pytest.mark.parametrize("seed", range(4))
def test_span_is_exact_where_no_set_changes(seed):
    X, y = overlapping(20 + seed)
    model = SVC(C=2.0, tol=1e-8).fit(X, y)
    before, predicted, same = sets_of(model, 2.0), span_values(model)[0], []
    values = refit_without_each(model, X, y)
    for i in model.support_:
        others = np.arange(len(y)) != i
        after = sets_of(SVC(C=2.0, gamma=model._gamma, tol=1e-8).fit(X[others], y[others]), 2.0)
        if np.array_equal(after, before[others]):
            same.append(i)
    assert same
    np.testing.assert_allclose(predicted[same], values[same], atol=1e-6)


def test_span_of_regression_is_exact_where_no_set_changes():
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 2))
    y = np.sin(X[:, 0]) + 0.2 * random.normal(size=50)
    model = SVR(C=1e4, epsilon=0.05, gamma=0.1, tol=1e-8).fit(X, y)
    predicted, values = span_values(model)[0], refit_without_each(model, X, y, method="predict")
    unused = np.setdiff1d(np.arange(50), model.support_)
    np.testing.assert_allclose(predicted[unused], values[unused], atol=1e-4)
    assert np.sum(np.abs(predicted - values) < 1e-4) > len(unused)  # some support vectors, too


@pytest.mark.parametrize("model", [LSSVC(C=3.0), LSSVR(C=3.0)], ids=str)
def test_span_of_least_squares_is_leave_one_out(model):
    X, y = overlapping(30)
    estimates = error_estimates(model.fit(X, y), loo=True)
    assert estimates.span == estimates.leave_one_out
    assert estimates.xi_alpha is None


def test_nu_classification_has_the_xi_alpha_of_the_same_solution():
    X, y = overlapping(31)
    by_nu = NuSVC(nu=0.5, tol=1e-8).fit(X, y)
    by_cost = SVC(C=by_nu.geometry_.cost, tol=1e-8).fit(X, y)
    first, second = error_estimates(by_nu), error_estimates(by_cost)
    assert first.xi_alpha == second.xi_alpha
    assert first.xi_alpha_recall == second.xi_alpha_recall
    assert first.span is None


def test_several_classes_are_bounded_by_any_of_their_pairs():
    random = np.random.default_rng(2)
    y = np.arange(90) % 3
    X = random.normal(size=(90, 3)) + 1.5 * np.eye(3)[y]
    for strategy in ("ovo", "ovr"):
        estimates = error_estimates(SVC(C=3.0, multi_class=strategy).fit(X, y), loo=True)
        assert estimates.training <= estimates.leave_one_out <= estimates.xi_alpha <= estimates.support_vectors
        assert estimates.xi_alpha_recall is None


def test_one_class_and_regression_have_those_that_are_defined():
    X, y = overlapping(32)
    estimates = error_estimates(OneClassSVM(nu=0.3).fit(X), loo=True)
    assert estimates.leave_one_out <= estimates.support_vectors
    assert estimates.span is None
    of_regression = error_estimates(SVR().fit(X, y))
    assert of_regression.measure == "mean squared error"
    assert of_regression.span >= of_regression.training
    assert of_regression.leave_one_out is None


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_nu_regression_has_training_and_leave_one_out(fit_intercept):
    X, y = overlapping(35)
    model = NuSVR(nu=0.4, fit_intercept=fit_intercept).fit(X, y)
    estimates = error_estimates(model, loo=True)
    assert estimates.training == pytest.approx(np.mean((y - model.predict(X)) ** 2), rel=1e-2)
    assert estimates.leave_one_out == model.loo_error_ > estimates.training
    assert estimates.span is None


def test_leave_one_out_is_there_if_it_was_computed():
    X, y = overlapping(33)
    model = SVC().fit(X, y)
    assert error_estimates(model).leave_one_out is None
    assert error_estimates(model, loo=False).as_dict().keys() >= {"training", "span"}
    known = model.loo_error_
    estimates = error_estimates(model)
    assert estimates.leave_one_out == known
    assert "leave-one-out" in str(estimates)
    model.fit(X[::-1], y)
    assert error_estimates(model).leave_one_out is None


def test_without_free_support_vectors():
    X, y = np.ones((10, 2)), np.tile([0, 1], 5)
    estimates = error_estimates(SVC().fit(X, y), loo=True)
    assert estimates.xi_alpha == estimates.span == estimates.leave_one_out == 1.0


def test_a_hard_margin_has_no_xi_alpha():
    X, y = overlapping(34)
    estimates = error_estimates(SVC(C=np.inf, gamma=5.0).fit(X, y))
    assert estimates.xi_alpha is None
    assert estimates.training == 0.0


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "kernel",
    [Sigmoid(0.5, -1.0), Sigmoid(0.01, -1.0), Polynomial(3, 1.0, -2.0), lambda X, Z: np.tanh(X @ Z.T - 2.0)],
    ids=["sigmoid", "negative diagonal", "polynomial", "function"],
)
def test_xi_alpha_of_an_indefinite_kernel_takes_its_own_distances(kernel, seed):
    X, y = overlapping(seed, 40)
    model = SVC(kernel=kernel, C=0.05 * (1 + seed)).fit(X, y)
    K = kernel(X, X)
    used = model.support_
    signs = np.where(y == 1, 1.0, -1.0)
    slack = 1.0 - signs * model.decision_function(X)
    distance = max(0.0, np.max(np.diag(K)[used, None] + np.diag(K) - 2.0 * K[used]))
    free = np.abs(model.dual_coef_[0]) < model.C
    reach = slack[used] + np.abs(model.dual_coef_[0]) * distance
    assert np.diag(K).min() < 0  # no square root
    found = error_estimates(model).xi_alpha
    if free.any() and np.abs(reach - 1.0).min() > 1e-2:
        assert found == np.mean(np.isin(np.arange(40), used[reach >= 1.0]))


@pytest.mark.parametrize(
    ("kernel", "known"),
    [
        (Gaussian(1.0), True),
        (Polynomial(3, 1.0, 0.5), True),
        (Linear() + 2.0 * Gaussian(1.0), True),
        (Polynomial(3, 1.0, -0.5), False),
        (Sigmoid(1.0, 0.0), False),
        (Linear() * Sigmoid(1.0, 0.0), False),
        (FunctionKernel(lambda X, Z: X @ Z.T), False),
    ],
    ids=str,
)
def test_distances_are_bounded_only_where_the_kernel_is_known_to_be_semidefinite(kernel, known):
    assert kernel.positive_semidefinite is known
    X = np.random.default_rng(0).normal(size=(30, 3))
    problem = c_classification.pose(KernelMatrix(kernel, Points.wrap(X)), np.sign(X[:, 0]), np.ones(30))
    bound = _distance_bound(problem, np.arange(0, 30, 3))
    assert (bound is not None) is known
    if known:
        K = kernel(X)
        assert bound >= (np.diag(K)[::3, None] + np.diag(K) - 2.0 * K[::3]).max()


def test_errors_name_the_function():
    with pytest.raises(ValueError, match="error_estimates takes a fitted"):
        error_estimates(3)


@pytest.mark.parametrize(
    "kind", ["two", "unbalanced", "three", "ovr", "nu", "one_class", "regression", "least_squares"]
)
def test_estimates_beside_leave_one_out_are_those_alone(kind):
    random = np.random.default_rng(5)
    X = random.normal(size=(90, 3))
    labels = (X[:, 0] * X[:, 1] + 0.5 * random.normal(size=90) > (0.8 if kind == "unbalanced" else 0)).astype(int)
    labels += (X[:, 2] > 0.7) * (kind in ("three", "ovr"))
    model = {
        "nu": NuSVC(nu=0.4),
        "one_class": OneClassSVM(nu=0.3),
        "regression": SVR(C=5),
        "least_squares": LSSVC(),
        "ovr": SVC(C=3, multi_class="ovr"),
    }.get(kind, SVC(C=3))
    targets = {"one_class": None, "regression": np.sin(X[:, 0])}.get(kind, labels)
    model.fit(X, targets)
    alone, beside = error_estimates(model), error_estimates(model, loo=True)
    assert beside.leave_one_out == leave_one_out(model).error
    for name, value in alone.as_dict().items():
        assert beside.as_dict()[name] == pytest.approx(value, rel=1e-6), name


def rounded(seed, count=30):
    """Return samples on a grid, many of which occur several times, and two classes."""
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(count, 2)))
    return X, (X[:, 0] + 0.5 * random.normal(size=count) > 0).astype(int)


def check_same_estimates(model):
    """Check that estimates alone are those beside leave-one-out."""
    alone, beside = error_estimates(model).as_dict(), error_estimates(model, loo=True).as_dict()
    error = beside.pop("leave-one-out")
    assert alone == pytest.approx(beside, rel=1e-9)
    return error


@pytest.mark.parametrize("seed", range(20))
def test_estimates_of_singular_equations_are_those_beside_leave_one_out(seed):
    X, y = rounded(seed, 40)  # more free support vectors than features
    check_same_estimates(SVC(C=17.4, kernel="linear", tol=1e-6).fit(X, y))


def test_estimates_of_three_classes_with_singular_equations():
    random = np.random.default_rng(415025)
    X = np.round(random.normal(size=(40, 2)))
    y = (X[:, 0] + 0.5 * random.normal(size=40) > 0).astype(int) + (X[:, -1] > 0.6)
    check_same_estimates(SVC(C=17.383610621316315, kernel="linear", tol=1e-6).fit(X, y))


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("seed", [3, 9, 17, 36])
def test_equations_that_have_no_inverse_of_nu_classification(kernel, seed):
    X, y = rounded(seed)  # the solution is 0: the reduced hulls of the classes intersect
    model = NuSVC(nu=0.2, kernel=kernel, gamma=1.0, tol=1e-6).fit(X, y)
    estimates, found = error_estimates(model, loo=True), leave_one_out(model)
    assert estimates.span is None
    assert found.known.all()
    assert estimates.leave_one_out == found.error == np.mean(found.predictions != y)
    assert 0.0 <= estimates.training <= 1.0  # not NaN, although decision values are 0


@pytest.mark.parametrize("seed", [1, 21, 71, 81])
def test_equations_that_have_no_inverse_of_novelty_detection(seed):
    X, _ = rounded(seed)  # the solution is 0: the origin is in the reduced hull
    model = OneClassSVM(nu=0.3, kernel="linear", gamma=1.0, tol=1e-6).fit(X)
    estimates = error_estimates(model)
    assert estimates.span is None
    assert estimates.support_vectors >= 0.3
    found = leave_one_out(model, values=True).decision_function
    np.testing.assert_allclose(found, refit_without_each(model, X), atol=1e-8)
