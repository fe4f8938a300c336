"""Bars of the relevance of features."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from maxmargin import SVC, SVR, gradient_search
from maxmargin.plotting import FeatureRelevanceDisplay

X = np.random.default_rng(0).normal(size=(80, 4)) * [1.0, 2.0, 1.0, 1.0]
Y = X[:, 0] * X[:, 2] > 0


def test_bars_are_shares_of_the_mean_distance_in_order():
    model = SVC(gamma=[1.0, 1.0, 0.0, 0.5]).fit(X, Y)
    display = FeatureRelevanceDisplay.from_estimator(model, X)
    expected = np.array([1.0, 1.0, 0.0, 0.5]) * X.var(axis=0)
    np.testing.assert_allclose(display.relevance, expected / expected.sum())
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, sorted(display.relevance, reverse=True)[:3])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["x1", "x0", "x3"]
    assert display.ax_.get_title() == "3 of 4 features have γ > 0"
    plt.close(display.figure_)


def test_names_and_one_gamma_for_all():
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    display = FeatureRelevanceDisplay.from_estimator(SVR(gamma=0.5).fit(table, X[:, 0]), table, max_features=2)
    assert display.names == ["a", "b", "c", "d"]
    assert display.ax_.get_title() == "all 4 features have γ > 0, of which 2 are shown"
    plt.close(display.figure_)


def test_a_search_is_drawn():
    result = gradient_search(X, Y, max_iter=2, starts=1)
    figure, ax = plt.subplots()
    display = FeatureRelevanceDisplay.from_search(result, ax=ax)
    np.testing.assert_array_equal(display.relevance, result.relevance)
    assert display.figure_ is figure
    plt.close(figure)


def test_other_kernels_raise():
    with pytest.raises(ValueError, match="rbf"):
        FeatureRelevanceDisplay.from_estimator(SVC(kernel="linear").fit(X, Y), X)
