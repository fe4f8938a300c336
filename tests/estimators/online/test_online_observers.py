"""Callbacks, the progress line and a time limit that is not reached leave online models unchanged."""

import numpy as np
import pytest

from maxmargin import OnlineOneClassSVM, OnlineSVC
from maxmargin.datasets import chessboard
from maxmargin.solvers import Trace

OBSERVERS = [
    {"callback": Trace()},  # is called between any two slices of samples
    {"max_seconds": 1e6},
    {"callback": lambda progress: None, "verbose": True, "max_seconds": 1e6},
]

OPTIONS = [
    {},
    {"finishing": True},
    {"budget": 60},
    {"budget": 60, "budget_strategy": "merge"},
    {"forget": 150},
    {"epochs": 3},
]


def assert_unchanged(make, X, *y):
    """Compare fits and streams with and without observers."""

    def stream(model):
        for start in range(0, len(X), 130):
            part = slice(start, start + 130)
            model.partial_fit(X[part], *(labels[part] for labels in y))
        return model

    for train in (stream, lambda model: model.fit(X, *y)):
        if train is stream and make().epochs > 1:
            continue
        silent = train(make())
        for options in OBSERVERS:
            model = train(make(**options))
            assert model.n_iter_ == silent.n_iter_
            np.testing.assert_array_equal(model.support_, silent.support_)
            np.testing.assert_array_equal(model.dual_coef_, silent.dual_coef_)
            np.testing.assert_array_equal(model.intercept_, silent.intercept_)


@pytest.mark.parametrize("options", [*OPTIONS, {"multi_class": "ovo"}, {"multi_class": "ovo", "finishing": True}])
@pytest.mark.parametrize("classes", [2, 4])
def test_classification(options, classes):
    X, y = chessboard(400, noise=0.1)
    y = y if classes == 2 else y + 2 * (X[:, 0] > 2)
    assert_unchanged(lambda **more: OnlineSVC(C=10, gamma=2.0, random_state=0, **options, **more), X, y)


@pytest.mark.parametrize("options", OPTIONS)
def test_novelty_detection(options):
    X = np.random.default_rng(0).normal(size=(400, 2))
    assert_unchanged(lambda **more: OnlineOneClassSVM(nu=0.2, gamma=1.0, random_state=0, **options, **more), X)
