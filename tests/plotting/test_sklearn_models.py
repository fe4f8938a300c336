"""Displays of scikit-learn's own support vector machines, compared with those of ours on the same data."""

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import make_blobs, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin.plotting import (
    DecisionRegionsDisplay,
    FeatureRelevanceDisplay,
    KernelMatrixDisplay,
    SlackHistogramDisplay,
)

TWO = make_moons(100, noise=0.25, random_state=0)
THREE = make_blobs(90, centers=3, cluster_std=1.5, random_state=0)

CASES = {
    "SVC": ("SVC", {"gamma": 1.0}, TWO),
    "SVC of three classes": ("SVC", {"gamma": 1.0}, THREE),
    "SVC of three classes, one-vs-one values": ("SVC", {"gamma": 1.0, "decision_function_shape": "ovo"}, THREE),
    "SVC with broken ties": ("SVC", {"gamma": 1.0, "break_ties": True}, THREE),
    "NuSVC": ("NuSVC", {"gamma": 1.0, "nu": 0.3}, TWO),
    "LinearSVC of three classes": ("LinearSVC", {"intercept_scaling": 1.0}, THREE),
}


def fitted(case, **more):
    name, options, (X, y) = CASES[case]
    kinds = getattr(sklearn.svm, name), getattr(maxmargin, name)
    return *(kind(**options, tol=1e-6, **more).fit(X, y) for kind in kinds), X, y


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("display", [DecisionRegionsDisplay, SlackHistogramDisplay])
def test_positions_of_samples_are_those_of_our_estimator(display, case):
    theirs, ours, X, y = fitted(case)
    found, expected = (display.from_estimator(model, X, y).positions for model in (theirs, ours))
    assert np.mean(found == expected) > 0.97  # but for support vectors at their bound, close to the margin


def test_support_vectors_are_named():
    theirs, _, X, y = fitted("SVC")
    found = DecisionRegionsDisplay.from_estimator(theirs, X, y)
    assert found.is_training_data
    assert not DecisionRegionsDisplay.from_estimator(theirs, X[:50], y[:50]).is_training_data
    assert (found.positions > 0).sum() == len(theirs.support_)
    words = " ".join(text.get_text() for text in found.ax_.get_legend().get_texts())
    assert "support vectors on the margin" in words


def test_pipelines_and_novelty_detectors():
    X, y = TWO
    pipeline = make_pipeline(StandardScaler(), sklearn.svm.SVC(tol=1e-6)).fit(X, y)
    assert (DecisionRegionsDisplay.from_estimator(pipeline, X, y).positions > 0).sum() == len(pipeline[-1].support_)
    detectors = [kind(nu=0.2, gamma=1.0, tol=1e-8).fit(X) for kind in (sklearn.svm.OneClassSVM, maxmargin.OneClassSVM)]
    found, expected = (DecisionRegionsDisplay.from_estimator(detector, X).positions for detector in detectors)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("case", ["SVC", "SVC of three classes", "NuSVC"])
def test_kernel_matrices(case):
    theirs, ours, X, y = fitted(case)
    for sort_by in ("cluster", "input"):
        displays = [KernelMatrixDisplay.from_estimator(model, X, y, sort_by=sort_by) for model in (theirs, ours)]
        np.testing.assert_allclose(displays[0].matrix, displays[1].matrix, atol=1e-9)
    by_margin = KernelMatrixDisplay.from_estimator(theirs, X, y)  # equal margins may be in another order
    order = by_margin.order
    np.testing.assert_allclose(by_margin.matrix, ours._kernel_(X)[np.ix_(order, order)], atol=1e-9)
    np.testing.assert_array_equal(y[order], np.sort(y))


def test_errors_and_feature_relevance():
    theirs, ours, X, y = fitted("LinearSVC of three classes")
    with pytest.raises(ValueError, match="LinearSVC is not a kernel classifier"):
        KernelMatrixDisplay.from_estimator(theirs, X, y)
    with pytest.raises(ValueError, match="stores no support vectors"):
        KernelMatrixDisplay.from_estimator(sklearn.svm.SVC(kernel=lambda a, b: a @ b.T).fit(X, y), X, y)
    with pytest.raises(ValueError, match="neither"):
        DecisionRegionsDisplay.from_estimator(sklearn.svm.SVR().fit(X, y), X, y)
    theirs, ours, X, y = fitted("SVC")
    found, expected = (FeatureRelevanceDisplay.from_estimator(model, X) for model in (theirs, ours))
    for one, other in zip(found.ax_.patches, expected.ax_.patches, strict=True):
        assert one.get_width() == other.get_width()
