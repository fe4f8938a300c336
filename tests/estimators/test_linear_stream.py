"""Learning from batches, and proofs about any data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LinearSVC, save
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
    for model in (LinearSVC(multi_class="crammer_singer"), LinearSVC(probability=True)):
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
    assert proof.dual <= model.certificate_.primal
    model.partial_fit(X, y)  # fit has seen the classes
    with pytest.raises(AttributeError, match="certificate_"):
        _ = model.certificate_
    assert not hasattr(model.fit(X, y), "_streams_")


def test_a_model_file_does_not_hold_a_stream_and_says_what_does(tmp_path):
    X, y = clouds(200)
    with pytest.raises(ValueError, match="pickle"):
        save(LinearSVC().partial_fit(X, y, classes=[0, 1]), tmp_path / "stream.maxmargin")
