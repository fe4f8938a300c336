"""Derivatives by the hyperparameters against differences of fits."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LSSVC, LSSVR, SVC, SVR, NuSVC
from maxmargin.kernels import Gaussian, Linear
from maxmargin.search import hyperparameter_gradient

TRAINING, FEATURES, STEP = 60, 3, 1e-6

MODELS = {
    "hinge": SVC(C=3.0),
    "squared hinge": SVC(C=3.0, loss="squared_hinge"),
    "without offset": SVC(C=0.7, fit_intercept=False, class_weight={"a": 1, "b": 3}),
    "no free variables": SVC(C=1e-3),
    "least squares": LSSVC(C=2.0),
    "tube": SVR(C=2.0, epsilon=0.15),
    "no tube": SVR(C=2.0, epsilon=0.0),
    "squared tube": SVR(C=2.0, epsilon=0.15, loss="squared_epsilon_insensitive"),
    "regression without free variables": SVR(C=1e-3, epsilon=0.3),
    "least squares regression": LSSVR(C=2.0),
}


def data(name, seed=0, form="dense"):
    random = np.random.default_rng(seed)
    X = np.abs(random.normal(size=(TRAINING + 40, FEATURES)))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * random.normal(size=len(X))
    if isinstance(MODELS[name], SVC | LSSVC):
        y = np.where(y > np.median(y), "b", "a")
    weights, derivative = random.uniform(0.5, 2.0, TRAINING), random.normal(size=40)
    return sparse.csr_array(X * (X > 0.5)) if form == "sparse" else X, y, weights, derivative


def held_out_sum(name, data, kernel, **parameters):
    """Return Σ derivative · value on the held-out samples, and the fitted model."""
    X, y, weights, derivative = data
    model = type(MODELS[name])(**{**MODELS[name].get_params(), "kernel": kernel, "tol": 1e-11, **parameters})
    model.fit(X[:TRAINING], y[:TRAINING], sample_weight=weights)
    values = model.decision_function(X[TRAINING:]) if hasattr(model, "classes_") else model.predict(X[TRAINING:])
    return float(derivative @ values), model


def differences(name, data, kernel, parameters):
    """Return derivatives by each parameter from two fits."""
    found = []
    for parameter, value in parameters.items():
        for k in range(np.size(value)):
            step = np.zeros(np.shape(value))
            step[(k,) * np.ndim(value)] = STEP * np.ravel(value)[k]
            ends = [
                held_out_sum(name, data, kernel, **{**parameters, parameter: value + sign * step})[0]
                for sign in (1, -1)
            ]
            found.append((ends[0] - ends[1]) / (2 * step.sum()))
    return np.array(found)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi_squared"])
@pytest.mark.parametrize("name", MODELS)
def test_derivatives_are_differences_of_fits(name, kernel, form):
    samples = data(name, form=form)
    parameters = {"C": MODELS[name].C, "gamma": np.array([0.3, 0.8, 0.5])}
    if getattr(MODELS[name], "epsilon", 0):
        parameters["epsilon"] = MODELS[name].epsilon
    X, y, weights, derivative = samples
    model = held_out_sum(name, samples, kernel, **parameters)[1]
    found = hyperparameter_gradient(model, X[:TRAINING], y[:TRAINING], X[TRAINING:], derivative, weights)
    values = [found.C, *found.gamma, *([found.epsilon] if "epsilon" in parameters else [])]
    expected = differences(name, samples, kernel, parameters)
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=2e-5 * np.abs(expected).max())
    assert np.abs(expected).max() > 1e-3


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["hinge", "tube"])
def test_random_problems(name, seed):
    random = np.random.default_rng(100 + seed)
    samples = data(name, seed)
    parameters = {"C": 10 ** random.uniform(-1, 2), "gamma": random.uniform(0.05, 2.0, FEATURES)}
    if name == "tube":
        parameters["epsilon"] = random.uniform(0.02, 0.3)
    X, y, weights, derivative = samples
    model = held_out_sum(name, samples, "rbf", **parameters)[1]
    found = hyperparameter_gradient(model, X[:TRAINING], y[:TRAINING], X[TRAINING:], derivative, weights)
    values = [found.C, *found.gamma, *([found.epsilon] if name == "tube" else [])]
    expected = differences(name, samples, "rbf", parameters)
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_one_gamma_is_the_sum_over_the_features():
    samples = data("hinge")
    X, y, weights, derivative = samples
    model = held_out_sum("hinge", samples, "rbf", gamma=0.4)[1]
    found = hyperparameter_gradient(model, X[:TRAINING], y[:TRAINING], X[TRAINING:], derivative, weights)
    expected = differences("hinge", samples, "rbf", {"gamma": 0.4})
    np.testing.assert_allclose(found.gamma.sum(), expected[0], rtol=1e-6)


def test_repeated_samples_have_singular_equations():
    X, y, _, derivative = data("hinge")
    rows = np.repeat(np.arange(TRAINING), 3)
    once = SVC(C=3.0, gamma=0.5, tol=1e-10).fit(X[:TRAINING], y[:TRAINING])
    thrice = SVC(C=1.0, gamma=0.5, tol=1e-10).fit(X[rows], y[rows])
    expected = hyperparameter_gradient(once, X[:TRAINING], y[:TRAINING], X[TRAINING:], derivative)
    found = hyperparameter_gradient(thrice, X[rows], y[rows], X[TRAINING:], derivative)
    np.testing.assert_allclose(found.gamma, expected.gamma, rtol=1e-5)
    np.testing.assert_allclose(found.C, 3 * expected.C, rtol=1e-5)


def test_kernel_objects_are_differentiated():
    X, y, _, derivative = data("hinge")
    by_name = SVC(gamma=0.5, tol=1e-8).fit(X[:TRAINING], y[:TRAINING])
    by_object = SVC(kernel=Gaussian(0.5), tol=1e-8).fit(X[:TRAINING], y[:TRAINING])
    arguments = (X[:TRAINING], y[:TRAINING], X[TRAINING:], derivative)
    expected, found = (hyperparameter_gradient(model, *arguments) for model in (by_name, by_object))
    np.testing.assert_array_equal(found.gamma, expected.gamma)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NuSVC(), "use SVC, LSSVC, SVR or LSSVR"),
        (SVC(kernel="poly"), "rbf, laplacian and chi_squared"),
        (SVC(kernel=Gaussian(1.0) + Linear()), "rbf, laplacian and chi_squared"),
        (SVC(C=np.inf, gamma=100.0), "hard margin"),
    ],
)
def test_other_models_raise(model, message):
    X, y, _, derivative = data("hinge")
    model.fit(X[:TRAINING], y[:TRAINING])
    with pytest.raises(ValueError, match=message):
        hyperparameter_gradient(model, X[:TRAINING], y[:TRAINING], X[TRAINING:], derivative)


def test_three_classes_raise():
    X = np.random.default_rng(0).random((30, 2))
    model = SVC().fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="3 classes"):
        hyperparameter_gradient(model, X, np.arange(30) % 3, X, np.ones(30))
