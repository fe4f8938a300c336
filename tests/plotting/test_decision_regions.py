"""Decision regions: the grid says what the estimator says, marks say what the dual variables say."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    LSSVC,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    NuSVC,
    OneClassSVM,
)
from maxmargin.plotting import DecisionRegionsDisplay
from maxmargin.plotting.sides import Side, class_numbers, is_training_data, margins_of, sides_of


def moons(size=120):
    return make_moons(size, noise=0.25, random_state=0)


def drawn(estimator, X, y=None, **options):
    return DecisionRegionsDisplay.from_estimator(estimator, X, y, resolution=25, **options)


def on_grid(display):
    return np.column_stack([axis.ravel() for axis in np.meshgrid(display.horizontal, display.vertical)])


def texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("model", [SVC(C=2.0, gamma=1.0), NuSVC(nu=0.3, gamma=1.0)], ids=["C", "nu"])
def test_two_classes_by_their_dual_variables(model):
    X, y = moons()
    geometry = model.fit(X, y).geometry_
    display = drawn(model, X, y)
    np.testing.assert_allclose(display.decision.ravel(), model.decision_function(on_grid(display)))
    np.testing.assert_array_equal(display.regions.ravel(), model.predict(on_grid(display)))
    np.testing.assert_array_equal(np.flatnonzero(display.sides == Side.ON), np.sort(geometry.free))
    inside, wrong = np.flatnonzero(display.sides == Side.INSIDE), np.flatnonzero(display.sides == Side.WRONG)
    np.testing.assert_array_equal(np.sort(np.concatenate([inside, wrong])), np.sort(geometry.bounded))
    np.testing.assert_array_equal(wrong, np.flatnonzero(model.predict(X) != y))
    assert len(inside)
    assert len(wrong)
    assert display.support
    assert f"support vectors on the margin ({len(geometry.free)})" in texts(display)
    assert f"support vectors inside the margin ({len(inside)})" in texts(display)
    assert f"support vectors on the wrong side ({len(wrong)})" in texts(display)


def test_squared_slack_has_no_sample_on_the_edge_but_inside():
    X, y = moons()
    model = SVC(loss="squared_hinge", gamma=1.0, tol=1e-6).fit(X, y)
    display = drawn(model, X, y)
    slack = np.zeros(len(y))
    slack[model.geometry_.samples] = model.geometry_.slack
    np.testing.assert_array_equal(display.sides == Side.WRONG, slack > 1)
    np.testing.assert_array_equal(display.sides == Side.INSIDE, (slack > 1e-3) & (slack <= 1))


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer", "weston_watkins"])
def test_three_classes(scheme):
    X, y = load_iris(return_X_y=True)
    X = X[:, 2:] + np.random.default_rng(0).normal(scale=0.02, size=(150, 2))
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SVC(gamma=1.0, multi_class=scheme).fit(X, names)
    display = drawn(model, X, names)
    assert display.decision is None
    assert display.classes == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(model.classes_[display.regions.ravel()], model.predict(on_grid(display)))
    geometries = model.geometry_ if isinstance(model.geometry_, list) else [model.geometry_]
    support = np.unique(np.concatenate([np.concatenate([g.free, g.bounded]) for g in geometries]))
    np.testing.assert_array_equal(np.flatnonzero(display.sides != Side.BEYOND), support)
    np.testing.assert_array_equal(np.sort(model.support_), support)
    assert "class virginica (50)" in texts(display)
    if scheme == "ovo":  # in the worst of its machines: bounded in one is not on the edge
        bounded = np.unique(np.concatenate([g.bounded for g in geometries]))
        np.testing.assert_array_equal(np.flatnonzero(display.sides >= Side.INSIDE), bounded)


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer", "weston_watkins"])
def test_the_smallest_margin_is_the_largest_slack_of_any_machine(scheme):
    X, y = load_iris(return_X_y=True)
    model = SVC(gamma=0.5, multi_class=scheme).fit(X, y)
    largest = np.zeros(len(y))
    for geometry in model.geometry_ if isinstance(model.geometry_, list) else [model.geometry_]:
        slack = geometry.slack.reshape(len(geometry.samples), -1).max(axis=1)
        largest[geometry.samples] = np.maximum(largest[geometry.samples], slack)
    assert largest.any()
    np.testing.assert_allclose(np.maximum(0.0, 1.0 - margins_of(model, X, y)), largest, atol=1e-6)


def test_linear_machines_have_no_support_vectors_to_name():
    X, y = moons()
    model = LinearSVC(loss="hinge").fit(X, y)
    display = drawn(model, X, y)
    margins = (2 * y - 1) * model.decision_function(X)
    np.testing.assert_array_equal(display.sides == Side.WRONG, margins < 0)
    np.testing.assert_array_equal(display.sides == Side.INSIDE, (margins >= 0) & (margins < 0.99))
    assert not display.support
    assert not any("support" in text for text in texts(display))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(multi_class="crammer_singer"),
        LSSVC(gamma=1.0),
        KernelApproximationSVC(gamma=1.0),
        NuSVC(nu=0.2),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("classes", [2, 4])
def test_all_classifiers(model, classes):
    X, y = make_blobs(80, centers=classes, cluster_std=1.5, random_state=3)
    display = drawn(model.fit(X, y), X, y)
    wrong = np.flatnonzero(model.predict(X) != y)
    assert set(wrong) <= set(np.flatnonzero(display.sides == Side.WRONG))  # of several machines any may be wrong


@pytest.mark.parametrize("model", [OneClassSVM(nu=0.2, gamma=0.5), SVDD(nu=0.2)], ids=["one-class", "ball"])
def test_novelty_detectors(model):
    X, _ = make_blobs(100, centers=2, random_state=1)
    display = drawn(model.fit(X), X)
    np.testing.assert_array_equal(np.flatnonzero(display.sides == Side.WRONG), np.sort(model.geometry_.outside))
    np.testing.assert_array_equal(np.flatnonzero(display.sides == Side.ON), np.sort(model.geometry_.edge))
    np.testing.assert_array_equal(np.where(display.regions.ravel(), 1, -1), model.predict(on_grid(display)))
    assert f"support vectors outside ({len(model.geometry_.outside)})" in texts(display)


def test_linear_novelty_detector():
    X = make_blobs(100, centers=1, random_state=1)[0]
    display = drawn(LinearOneClassSVM(nu=0.2).fit(X), X)
    assert not display.support
    assert (display.sides == Side.WRONG).any()


def test_pipelines_are_seen_from_outside():
    X, y = moons()
    X = X * [1.0, 1000.0]
    model = make_pipeline(StandardScaler(), SVC(gamma=1.0)).fit(X, y)
    display = drawn(model, X, y)
    np.testing.assert_array_equal(display.regions.ravel(), model.predict(on_grid(display)))
    np.testing.assert_array_equal(np.flatnonzero(display.sides == Side.ON), np.sort(model[-1].geometry_.free))
    assert display.vertical[-1] > 1000


def test_names_of_a_data_frame():
    X, y = moons()
    X = pd.DataFrame(X, columns=["width", "height"])
    display = drawn(SVC(gamma=1.0).fit(X, y), X, y)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")
    assert display.support


def test_other_samples_are_not_taken_for_support_vectors():
    X, y = moons()
    model = SVC(gamma=1.0).fit(X, y)
    others, labels = make_moons(120, noise=0.25, random_state=9)
    display = drawn(model, others, labels)
    assert not display.support
    np.testing.assert_array_equal(
        np.flatnonzero(display.sides == Side.WRONG), np.flatnonzero(model.predict(others) != labels)
    )
    assert is_training_data(model, X)
    assert is_training_data(SVC(gamma=1.0).fit(sparse.csr_matrix(X), y), sparse.csr_matrix(X))
    assert not is_training_data(model, X[::-1])


def test_precomputed_kernels_have_sides():
    X, y = moons()
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    model = SVC(kernel="precomputed").fit(K, y)
    numbers = class_numbers(model, y)
    sides = sides_of(model, K, margins_of(model, K, numbers))
    np.testing.assert_array_equal(np.flatnonzero(sides == Side.ON), np.sort(model.geometry_.free))


def test_the_given_axes_are_used_and_no_figure_is_made():
    X, y = moons()
    model = SVC(gamma=1.0).fit(X, y)
    figure, (left, right) = plt.subplots(1, 2)
    display = drawn(model, X, y, ax=right)
    assert (display.ax_, display.figure_) == (right, figure)
    assert not left.has_data()
    assert display.plot(ax=left) is display
    assert display.ax_ is left
    assert plt.get_fignums() == [figure.number]


def test_one_clear_sentence():
    X, y = moons()
    wide, target = load_iris(return_X_y=True)
    model = SVC(gamma=1.0).fit(X, y)
    with pytest.raises(
        ValueError, match=r"exactly two features, but X has shape \(150, 4\); fit on two columns, or on PCA"
    ):
        drawn(SVC().fit(wide, target), wide, target)
    with pytest.raises(ValueError, match="y is missing"):
        drawn(model, X)
    with pytest.raises(ValueError, match=r"not fitted on: \[7\]"):
        drawn(model, X, np.full(len(y), 7))
    with pytest.raises(ValueError, match="SVR is neither"):
        drawn(SVR().fit(X, y), X, y)
    with pytest.raises(ValueError, match="not fitted"):
        drawn(SVC(), X, y)
    assert plt.get_fignums() == []


def test_few_samples_and_a_column_without_width():
    X = np.array([[0.0, 1.0], [1.0, 1.0]])
    display = drawn(SVC(kernel="linear", C=10).fit(X, [0, 1]), X, [0, 1])
    np.testing.assert_array_equal(display.sides, [Side.ON, Side.ON])
