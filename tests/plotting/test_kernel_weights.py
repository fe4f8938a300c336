"""Bars of the weights of kernels."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from maxmargin import MKLSVC, SVC
from maxmargin.kernels import Gaussian, Linear, OnFeatures, Polynomial, UnitDiagonal
from maxmargin.plotting import KernelWeightsDisplay
from maxmargin.plotting.kernel_weights import name_of

X = np.random.default_rng(0).normal(size=(80, 4))
Y = X[:, 0] ** 2 + X[:, 2] > 1


def test_bars_are_the_weights_in_order():
    model = MKLSVC([Linear(), {"features": "each", "gamma": 1.0}], norm=2.0).fit(X, Y)
    display = KernelWeightsDisplay.from_estimator(model, max_kernels=3)
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, np.sort(model.kernel_weights_)[:-4:-1])
    best = int(np.argmax(model.kernel_weights_))
    assert display.ax_.get_yticklabels()[0].get_text() == display.names[best]
    assert display.ax_.get_title() == "all 5 kernels have a weight, of which 3 are shown"
    plt.close(display.figure_)


def test_matrices_and_names_of_the_user():
    model = MKLSVC("precomputed").fit([X @ X.T, Gaussian(0.5)(X)], Y)
    figure, ax = plt.subplots()
    display = KernelWeightsDisplay.from_estimator(model, ax=ax)
    assert display.names == ["matrix 0", "matrix 1"]
    assert display.figure_ is figure
    assert KernelWeightsDisplay.from_estimator(model, names=["text", "image"], ax=ax).names == ["text", "image"]
    with pytest.raises(ValueError, match="2 kernels, but 1 names"):
        KernelWeightsDisplay.from_estimator(model, names=["text"], ax=ax)
    plt.close(figure)


def test_other_estimators_are_refused():
    with pytest.raises(ValueError, match="those of a fitted MKLSVC"):
        KernelWeightsDisplay.from_estimator(SVC().fit(X, Y))


def test_names_of_kernels():
    table = pd.DataFrame(X, columns=["age", "height", "weight", "income"])
    model = MKLSVC([{"features": [["age", "income"]], "gamma": 0.25}], normalize="diagonal").fit(table, Y)
    display = KernelWeightsDisplay.from_estimator(model)
    assert display.names == ["Gaussian, γ = 0.25, age, income"]
    plt.close(display.figure_)
    assert name_of(OnFeatures(Linear(), range(5))) == "Linear, x0, x1, x2 and 2 more"
    assert name_of(UnitDiagonal(Polynomial(2, 1.0, 0.5))) == "Polynomial, degree = 2, γ = 1, coef0 = 0.5"
