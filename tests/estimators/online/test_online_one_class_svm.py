"""`OnlineOneClassSVM`: novelty detection in a stream."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_outlier_detector
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import OneClassSVM, OnlineOneClassSVM


@parametrize_with_checks(
    [OnlineOneClassSVM(), OnlineOneClassSVM(nu=0.2, budget=30, epochs=2)],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": "one pass depends on the order and number of the samples",
        "check_sample_weight_equivalence_on_sparse_data": "one pass depends on the order and number of the samples",
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def cloud(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def in_batches(model, X, size):
    for start in range(0, X.shape[0], size):
        model.partial_fit(X[start : start + size])
    return model


@pytest.mark.parametrize("selection", ["second_order", "most_violating_pair"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_one_pass_is_close_to_the_batch_model(selection, form):
    X = cloud(2000)
    batch = OneClassSVM(nu=0.1, gamma=0.5).fit(X)
    model = OnlineOneClassSVM(nu=0.1, gamma=0.5, selection=selection, random_state=0).fit(form(X))
    assert is_outlier_detector(model)
    assert np.corrcoef(model.score_samples(X), batch.score_samples(X))[0, 1] > 0.98
    assert (model.predict(X) == batch.predict(X)).mean() > 0.8
    assert model.dual_coef_.sum() == pytest.approx(200.0)
    assert model.predict([[0.0, 0.0], [7.0, 7.0]]).tolist() == [1, -1]


def test_finishing_reaches_the_batch_optimum():
    X = cloud(1000)
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0], 1000)
    batch = OneClassSVM(nu=0.1, gamma=0.5).fit(X, sample_weight=weights)
    model = OnlineOneClassSVM(nu=0.1, gamma=0.5, epochs=10, finishing=True, random_state=0)
    model.fit(X, sample_weight=weights)
    np.testing.assert_allclose(model.decision_function(X), batch.decision_function(X), atol=0.02)
    assert model.certificate_.violation <= 2e-3
    assert model.certificate_.dual == pytest.approx(batch.certificate_.dual, rel=1e-5)
    assert weights[model.support_].all()


def test_batch_boundaries_and_pickling_do_not_matter():
    X = cloud(400)
    whole = OnlineOneClassSVM(nu=0.2, gamma=0.5).partial_fit(X)
    stored = OnlineOneClassSVM(nu=0.2, gamma=0.5)
    for start in range(0, 400, 40):
        stored = pickle.loads(pickle.dumps(stored.partial_fit(X[start : start + 40])))
    one = in_batches(OnlineOneClassSVM(nu=0.2, gamma=0.5), X, 1)
    for cut in (one, stored):
        np.testing.assert_array_equal(cut.decision_function(X), whole.decision_function(X))


@pytest.mark.parametrize("strategy", ["remove", "project", "merge"])
def test_budget_keeps_the_order_of_scores(strategy):
    X = cloud(1500)
    batch = OneClassSVM(nu=0.2, gamma=0.5).fit(X)
    model = OnlineOneClassSVM(nu=0.2, gamma=0.5, budget=60, budget_strategy=strategy)
    in_batches(model, X, 100)
    assert len(model.support_) <= 60
    assert np.corrcoef(model.score_samples(X), batch.score_samples(X))[0, 1] > 0.8
    assert model.certificate_.infeasibility <= 1e-8


def test_forgetting_adapts_to_drift():
    X = np.concatenate([cloud(1000), cloud(1000, 1) + 8.0])
    model = in_batches(OnlineOneClassSVM(nu=0.1, gamma=0.2, forget=300), X, 50)
    assert (model.predict(X[:1000]) == -1).all()
    assert (model.predict(X[-300:]) == -1).mean() < 0.2
    assert (model.support_ >= 1700).all()
    assert model.dual_coef_.sum() == pytest.approx(30.0)
    finished = in_batches(OnlineOneClassSVM(nu=0.1, gamma=0.2, forget=300, finishing=True), X, 50)
    window = OneClassSVM(nu=0.1, gamma=0.2).fit(X[-300:])  # the memory is the last 300 samples
    np.testing.assert_allclose(finished.decision_function(X), window.decision_function(X), atol=5e-3)


def test_constant_stream():
    model = in_batches(OnlineOneClassSVM(nu=0.3, gamma=1.0), np.ones((300, 2)), 9)
    assert model.predict([[1.0, 1.0], [3.0, 3.0]]).tolist() == [1, -1]
    assert model.certificate_.gap <= 1e-6


def test_rejected_batch_leaves_the_model_unchanged():
    X = cloud(100)
    model = OnlineOneClassSVM(gamma=0.5).partial_fit(X)
    before = pickle.dumps(model)
    broken = X.copy()
    broken[3, 1] = np.inf
    for bad in (broken, X[:, :1]):
        with pytest.raises(ValueError, match=r"infinity|features"):
            model.partial_fit(bad)
    assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="nu must be"):
        OnlineOneClassSVM(nu=0.0).fit(X)
    with pytest.raises(ValueError, match="precomputed"):
        OnlineOneClassSVM(kernel="precomputed").fit(X)


def test_limits():
    X = cloud(3000)
    with pytest.warns(ConvergenceWarning, match="of 3,000 rows of the batch were processed"):
        model = OnlineOneClassSVM(gamma=0.5, max_seconds=0.0).partial_fit(X)
    assert 0 < model.n_samples_seen_ < 3000
    assert model.certificate_.infeasibility <= 1e-9
