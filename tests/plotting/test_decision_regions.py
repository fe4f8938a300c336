"""Decision regions agree with the predictions, marked samples with the dual variables."""

import io

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
    load,
    save,
)
from maxmargin.interchange import read_libsvm_model, write_libsvm_model
from maxmargin.plotting import DecisionRegionsDisplay
from maxmargin.plotting.margin_positions import (
    MarginPosition,
    class_indices,
    is_training_data,
    margin_positions,
    sample_margins,
)


def moons(size=120):
    return make_moons(size, noise=0.25, random_state=0)


def display_of(estimator, X, y=None, **options):
    return DecisionRegionsDisplay.from_estimator(estimator, X, y, resolution=25, **options)


def grid_points(display):
    return np.column_stack([axis.ravel() for axis in np.meshgrid(display.horizontal, display.vertical)])


def texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("model", [SVC(C=2.0, gamma=1.0), NuSVC(nu=0.3, gamma=1.0)], ids=["C", "nu"])
def test_two_classes_agree_with_the_dual_variables(model):
    X, y = moons()
    geometry = model.fit(X, y).geometry_
    display = display_of(model, X, y)
    np.testing.assert_allclose(display.decision.ravel(), model.decision_function(grid_points(display)))
    np.testing.assert_array_equal(display.regions.ravel(), model.predict(grid_points(display)))
    np.testing.assert_array_equal(np.flatnonzero(display.positions == MarginPosition.ON), np.sort(geometry.free))
    inside, wrong = (
        np.flatnonzero(display.positions == MarginPosition.INSIDE),
        np.flatnonzero(display.positions == MarginPosition.WRONG_SIDE),
    )
    np.testing.assert_array_equal(np.sort(np.concatenate([inside, wrong])), np.sort(geometry.bounded))
    np.testing.assert_array_equal(wrong, np.flatnonzero(model.predict(X) != y))
    assert len(inside)
    assert len(wrong)
    assert display.is_training_data
    assert f"support vectors on the margin ({len(geometry.free)})" in texts(display)
    assert f"support vectors inside the margin ({len(inside)})" in texts(display)
    assert f"support vectors on the wrong side ({len(wrong)})" in texts(display)


def test_squared_hinge_positions_agree_with_the_slack():
    X, y = moons()
    model = SVC(loss="squared_hinge", gamma=1.0, tol=1e-6).fit(X, y)
    display = display_of(model, X, y)
    slack = np.zeros(len(y))
    slack[model.geometry_.samples] = model.geometry_.slack
    np.testing.assert_array_equal(display.positions == MarginPosition.WRONG_SIDE, slack > 1)
    np.testing.assert_array_equal(display.positions == MarginPosition.INSIDE, (slack > 1e-3) & (slack <= 1))


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer", "weston_watkins"])
def test_three_classes(scheme):
    X, y = load_iris(return_X_y=True)
    X = X[:, 2:] + np.random.default_rng(0).normal(scale=0.02, size=(150, 2))
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = SVC(gamma=1.0, multi_class=scheme).fit(X, names)
    display = display_of(model, X, names)
    assert display.decision is None
    assert display.classes == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(model.classes_[display.regions.ravel()], model.predict(grid_points(display)))
    geometries = model.geometry_ if isinstance(model.geometry_, list) else [model.geometry_]
    support = np.unique(np.concatenate([np.concatenate([g.free, g.bounded]) for g in geometries]))
    np.testing.assert_array_equal(np.flatnonzero(display.positions != MarginPosition.BEYOND), support)
    np.testing.assert_array_equal(np.sort(model.support_), support)
    assert "class virginica (50)" in texts(display)
    if scheme == "ovo":  # the smallest margin counts: bounded in one subproblem is not on the margin
        bounded = np.unique(np.concatenate([g.bounded for g in geometries]))
        np.testing.assert_array_equal(np.flatnonzero(display.positions >= MarginPosition.INSIDE), bounded)


@pytest.mark.parametrize("scheme", ["ovo", "ovr", "crammer_singer", "weston_watkins"])
def test_smallest_margin_gives_the_largest_slack_of_all_subproblems(scheme):
    X, y = load_iris(return_X_y=True)
    model = SVC(gamma=0.5, multi_class=scheme).fit(X, y)
    largest = np.zeros(len(y))
    for geometry in model.geometry_ if isinstance(model.geometry_, list) else [model.geometry_]:
        slack = geometry.slack.reshape(len(geometry.samples), -1).max(axis=1)
        largest[geometry.samples] = np.maximum(largest[geometry.samples], slack)
    assert largest.any()
    np.testing.assert_allclose(np.maximum(0.0, 1.0 - sample_margins(model, X, y)), largest, atol=1e-6)


def test_linear_models_have_no_support_vectors():
    X, y = moons()
    model = LinearSVC(loss="hinge").fit(X, y)
    display = display_of(model, X, y)
    margins = (2 * y - 1) * model.decision_function(X)
    np.testing.assert_array_equal(display.positions == MarginPosition.WRONG_SIDE, margins < 0)
    np.testing.assert_array_equal(display.positions == MarginPosition.INSIDE, (margins >= 0) & (margins < 0.99))
    assert not display.is_training_data
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
    display = display_of(model.fit(X, y), X, y)
    wrong = np.flatnonzero(model.predict(X) != y)
    assert set(wrong) <= set(
        np.flatnonzero(display.positions == MarginPosition.WRONG_SIDE)
    )  # any of several subproblems may be wrong


@pytest.mark.parametrize("model", [OneClassSVM(nu=0.2, gamma=0.5), SVDD(nu=0.2)], ids=["one-class", "ball"])
def test_novelty_detectors(model):
    X, _ = make_blobs(100, centers=2, random_state=1)
    display = display_of(model.fit(X), X)
    np.testing.assert_array_equal(
        np.flatnonzero(display.positions == MarginPosition.WRONG_SIDE), np.sort(model.geometry_.outside)
    )
    np.testing.assert_array_equal(np.flatnonzero(display.positions == MarginPosition.ON), np.sort(model.geometry_.edge))
    np.testing.assert_array_equal(np.where(display.regions.ravel(), 1, -1), model.predict(grid_points(display)))
    assert f"support vectors outside ({len(model.geometry_.outside)})" in texts(display)


def test_linear_novelty_detector():
    X = make_blobs(100, centers=1, random_state=1)[0]
    display = display_of(LinearOneClassSVM(nu=0.2).fit(X), X)
    assert not display.is_training_data
    assert (display.positions == MarginPosition.WRONG_SIDE).any()


def test_pipelines():
    X, y = moons()
    X = X * [1.0, 1000.0]
    model = make_pipeline(StandardScaler(), SVC(gamma=1.0)).fit(X, y)
    display = display_of(model, X, y)
    np.testing.assert_array_equal(display.regions.ravel(), model.predict(grid_points(display)))
    np.testing.assert_array_equal(
        np.flatnonzero(display.positions == MarginPosition.ON), np.sort(model[-1].geometry_.free)
    )
    assert display.vertical[-1] > 1000


def test_feature_names_of_a_data_frame():
    X, y = moons()
    X = pd.DataFrame(X, columns=["width", "height"])
    display = display_of(SVC(gamma=1.0).fit(X, y), X, y)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")
    assert display.is_training_data


def test_new_samples_are_not_called_support_vectors():
    X, y = moons()
    model = SVC(gamma=1.0).fit(X, y)
    others, labels = make_moons(120, noise=0.25, random_state=9)
    display = display_of(model, others, labels)
    assert not display.is_training_data
    np.testing.assert_array_equal(
        np.flatnonzero(display.positions == MarginPosition.WRONG_SIDE), np.flatnonzero(model.predict(others) != labels)
    )
    assert is_training_data(model, X)
    assert is_training_data(SVC(gamma=1.0).fit(sparse.csr_matrix(X), y), sparse.csr_matrix(X))
    assert not is_training_data(model, X[::-1])


def test_loaded_model_without_certificate_uses_margins():
    X, y = moons()
    file = io.BytesIO()
    save(SVC(gamma=1.0).fit(X, y), file)
    model = load(io.BytesIO(file.getvalue()))
    display = display_of(model, X, y)
    assert not display.is_training_data
    np.testing.assert_array_equal(
        np.flatnonzero(display.positions == MarginPosition.WRONG_SIDE), np.flatnonzero(model.predict(X) != y)
    )
    write_libsvm_model(SVC(gamma=1.0).fit(X, y), file := io.BytesIO())
    assert not display_of(read_libsvm_model(io.BytesIO(file.getvalue())), X, y).is_training_data


def test_precomputed_kernel():
    X, y = moons()
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    model = SVC(kernel="precomputed").fit(K, y)
    indices = class_indices(model, y)
    positions = margin_positions(model, K, sample_margins(model, K, indices))
    np.testing.assert_array_equal(np.flatnonzero(positions == MarginPosition.ON), np.sort(model.geometry_.free))


def test_given_axes_are_used():
    X, y = moons()
    model = SVC(gamma=1.0).fit(X, y)
    figure, (left, right) = plt.subplots(1, 2)
    display = display_of(model, X, y, ax=right)
    assert (display.ax_, display.figure_) == (right, figure)
    assert not left.has_data()
    assert display.plot(ax=left) is display
    assert display.ax_ is left
    assert plt.get_fignums() == [figure.number]


def test_errors():
    X, y = moons()
    wide, target = load_iris(return_X_y=True)
    model = SVC(gamma=1.0).fit(X, y)
    with pytest.raises(
        ValueError, match=r"exactly two features, but X has shape \(150, 4\); fit on two columns, or on PCA"
    ):
        display_of(SVC().fit(wide, target), wide, target)
    with pytest.raises(ValueError, match="y is missing"):
        display_of(model, X)
    with pytest.raises(ValueError, match=r"not fitted on: \[7\]"):
        display_of(model, X, np.full(len(y), 7))
    with pytest.raises(ValueError, match="SVR is neither"):
        display_of(SVR().fit(X, y), X, y)
    with pytest.raises(ValueError, match="not fitted"):
        display_of(SVC(), X, y)
    assert plt.get_fignums() == []


def test_two_samples_and_a_constant_column():
    X = np.array([[0.0, 1.0], [1.0, 1.0]])
    display = display_of(SVC(kernel="linear", C=10).fit(X, [0, 1]), X, [0, 1])
    np.testing.assert_array_equal(display.positions, [MarginPosition.ON, MarginPosition.ON])
