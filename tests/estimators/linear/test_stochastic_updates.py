"""Learning from batches, and proofs about any data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LinearSVC, LinearSVR, save
from reference.data import iris


def clouds(n: int, seed: int = 0):
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    return random.normal(size=(n, 4)) + 1.5 * y[:, None], y


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scaling", [None, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_stream_comes_near_the_optimum(loss, scaling, form):
    X, y = clouds(4000)
    model = LinearSVC(loss=loss, intercept_scaling=scaling, C=0.1)
    for start in range(0, 4000, 500):
        model.partial_fit(form(X[start : start + 500]), y[start : start + 500], classes=[0, 1])
    whole = LinearSVC(loss=loss, intercept_scaling=scaling, C=0.1 / 8).fit(X, y)  # C is meant for 500 samples
    proof = model.set_params(C=0.1 / 8).certify(X, y)
    assert proof.primal >= whole.certificate_.dual
    assert proof.primal <= 1.05 * whole.certificate_.dual
    assert proof.dual <= whole.certificate_.primal
    assert model.score(X, y) >= whole.score(X, y) - 0.02


def test_several_classes_and_the_same_bits_after_a_break():
    X, y = iris()
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    one, other = LinearSVC(), LinearSVC()
    for start in range(0, 150, 30):
        batch = X[start : start + 30], y[start : start + 30]
        one.partial_fit(*batch, classes=np.unique(y))
        other = pickle.loads(pickle.dumps(other.partial_fit(*batch, classes=np.unique(y))))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    assert one.coef_.shape == (3, 4)
    assert len(one.certify(X, y)) == 3


def test_a_batch_that_is_refused_changes_nothing():
    X, y = clouds(100)
    model = LinearSVC()
    with pytest.raises(ValueError, match="first call of partial_fit needs classes"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=[0, 1])
    before = model.coef_.copy(), model._streams_[0].steps
    for arguments, sentence in (
        ((X, y + 1), "not in classes"),
        ((np.where(X[3, 0] == X, np.nan, X), y), "NaN"),
        ((X[:, :2], y), "features"),
        ((X, y, [0, 1, 2]), "classes must stay"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.partial_fit(*arguments)
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model._streams_[0].steps == before[1]


def test_what_does_not_go_together():
    X, y = clouds(50)
    for model in (LinearSVC(multi_class="crammer_singer"), LinearSVC(probability=True), LinearSVC(penalty="l1")):
        assert not hasattr(model, "partial_fit")
    with pytest.raises(ValueError, match="needs all labels"):
        LinearSVC(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="at least two labels"):
        LinearSVC().partial_fit(X, y, classes=[1])


def test_fit_ends_the_stream_and_the_stream_the_proof_of_fit():
    X, y = clouds(200)
    model = LinearSVC().fit(X, y)
    proof = model.certify(X, y)
    assert proof.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert proof.dual <= model.certificate_.primal * (1 + 1e-12)
    model.partial_fit(X, y)  # fit has seen the classes
    with pytest.raises(AttributeError, match="certificate_"):
        _ = model.certificate_
    assert not hasattr(model.fit(X, y), "_streams_")


def test_a_model_file_does_not_hold_a_stream_and_says_what_does(tmp_path):
    X, y = clouds(200)
    with pytest.raises(ValueError, match="pickle"):
        save(LinearSVC().partial_fit(X, y, classes=[0, 1]), tmp_path / "stream.maxmargin")


def line(n: int, seed: int = 0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return X, X @ [1.0, -2.0, 0.5, 0.0] + 30.0 + 0.3 * random.normal(size=n)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("scaling", [None, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_stream_of_targets_comes_near_the_optimum(loss, scaling, form):
    X, y = line(6000)
    y = y if scaling is None else y - 30.0
    model = LinearSVR(loss=loss, intercept_scaling=scaling, C=0.5, epsilon=0.1)
    for start in range(0, 6000, 500):
        model.partial_fit(form(X[start : start + 500]), y[start : start + 500])
    whole = LinearSVR(loss=loss, intercept_scaling=scaling, C=0.5 / 12, epsilon=0.1).fit(X, y)
    proof = model.set_params(C=0.5 / 12).certify(X, y)
    assert whole.certificate_.dual <= proof.primal <= 1.05 * whole.certificate_.dual
    assert proof.dual <= whole.certificate_.primal
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=0.1)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=0.1)


def test_several_targets_and_the_same_bits_after_a_break():
    X, y = line(300)
    Y = np.c_[y, -y + 100.0]
    one, other = LinearSVR(), LinearSVR()
    for start in range(0, 300, 50):
        batch = X[start : start + 50], Y[start : start + 50]
        one.partial_fit(*batch)
        other = pickle.loads(pickle.dumps(other.partial_fit(*batch)))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    assert one.coef_.shape == (2, 4)
    assert one.predict(X).shape == (300, 2)
    assert len(one.certify(X, Y)) == 2
    for bad in (lambda: one.partial_fit(X, y), lambda: one.certify(X, y)):
        with pytest.raises(ValueError, match="as many columns"):
            bad()


def test_the_proof_of_a_fitted_regression_is_that_of_any_weights():
    X, y = line(200)
    model = LinearSVR(C=0.1).fit(X, y)
    proof = model.certify(X, y)
    assert proof.primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert proof.dual <= model.certificate_.primal * (1 + 1e-12)
    model.intercept_ = model.intercept_ + 1.0
    assert model.certify(X, y).primal == pytest.approx(
        0.5 * np.sum(model.coef_**2) + 0.1 * np.abs(y - model.predict(X)).sum()
    )
    model.partial_fit(X, y)
    with pytest.raises(AttributeError, match="certificate_"):
        _ = model.certificate_
    assert not hasattr(model.fit(X, y), "_streams_")
    assert not hasattr(LinearSVR(noise=True), "partial_fit")
    weights = np.arange(200) % 2
    halves = LinearSVR().partial_fit(X, y, sample_weight=weights), LinearSVR().partial_fit(X[1::2], y[1::2])
    np.testing.assert_array_equal(halves[0].coef_, halves[1].coef_)
