"""The least C of a sparse linear classifier, compared with scikit-learn's function and with fits."""

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from maxmargin import LinearSVC, l1_min_c

#: Fractions of the classes.
WEIGHTS = {2: [0.7, 0.3], 3: [0.6, 0.3, 0.1]}


def samples(classes):
    return make_classification(80, 12, n_informative=6, n_classes=classes, weights=WEIGHTS[classes], random_state=1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "log"])
@pytest.mark.parametrize("intercept", [{}, {"fit_intercept": False}, {"intercept_scaling": 30.0}])
def test_equals_the_function_of_scikit_learn(classes, loss, intercept):
    X, y = samples(classes)
    expected = sklearn.svm.l1_min_c(X, y, loss=loss, **intercept)
    assert l1_min_c(X, y, loss=loss, **intercept) == pytest.approx(expected, rel=1e-12)
    names = np.array(["a", "b", "c"])[y].tolist()
    assert l1_min_c(sparse.csc_matrix(X), names, loss=loss, **intercept) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [{"intercept_scaling": None}, {"intercept_scaling": 2.0},
                                       {"fit_intercept": False}])  # fmt: skip
def test_weights_are_zero_below_and_not_above(classes, intercept):
    X, y = samples(classes)
    bound = l1_min_c(X + 1.0, y, **intercept)
    for C, expected in ((0.999 * bound, False), (1.02 * bound, True)):
        model = LinearSVC(penalty="l1", C=C, tol=1e-9, **intercept).fit(X + 1.0, y)
        assert (model.coef_.any() or (bool(intercept.get("intercept_scaling")) and model.intercept_.any())) == expected


def test_free_intercept_of_logistic_regression():
    X, y = samples(2)
    bound = l1_min_c(X, y, loss="log", intercept_scaling=None)
    for C, expected in ((0.99 * bound, False), (1.01 * bound, True)):
        model = LogisticRegression(l1_ratio=1, C=C, solver="saga", tol=1e-10, max_iter=100_000).fit(X, y)
        assert model.coef_.any() == expected


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        ([[0.0], [0.0]], [0, 1], {"fit_intercept": False}, "no C gives a weight"),
        ([[0.0], [1.0]], [1, 1], {}, "at least two classes, but all are"),
        ([[np.nan], [1.0]], [0, 1], {}, "NaN"),
        ([], [], {}, "array"),
        ([[0.0], [1.0]], [0, 1, 1], {}, "inconsistent"),
        ([[0.0], [1.0]], [0, 1], {"loss": "hinge"}, "loss must be"),
        ([[0.0], [1.0]], [0, 1], {"intercept_scaling": -1.0}, "intercept_scaling"),
        ([["a"], ["b"]], [0, 1], {}, "[Cc]onvert"),
    ],
)
def test_errors(X, y, options, message):
    with pytest.raises(ValueError, match=message):
        l1_min_c(X, y, **options)
