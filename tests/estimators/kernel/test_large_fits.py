"""Data large enough for the block solver: the same answers, proved on request."""

import copy
import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification

from maxmargin import SVC, Status
from maxmargin.datasets import chessboard
from maxmargin.kernels import Kernel
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certificate
from maxmargin.solvers import PairwiseSolver, StoppingRule


def noisy(n=3000, classes=2):
    return make_classification(n, 12, n_informative=8, n_redundant=0, n_classes=classes, flip_y=0.1, random_state=1)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_agrees_with_scikit_learn(kernel):
    X, y = noisy()
    ours = SVC(kernel=kernel, tol=1e-4).fit(X, y)
    assert ours.status_ is Status.CONVERGED
    assert ours.certificate_.violation <= 1e-4
    if kernel != "laplacian":
        theirs = svm.SVC(kernel=kernel, tol=1e-4).fit(X, y)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=2e-2)


def test_many_classes_on_shared_rows():
    X, y = noisy(3000, classes=4)
    ours, theirs = SVC(C=5).fit(X, y), svm.SVC(C=5).fit(X, y)
    assert max(c.violation for c in ours.certificate_) <= 1e-3
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.998
    one = SVC(C=5, n_jobs=1).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, ours.dual_coef_)


def test_sparse_and_dense_agree():
    X, y = noisy()
    X = np.where(X > 0.8, X, 0.0)
    dense, compressed = SVC(gamma=0.1).fit(X, y), SVC(gamma=0.1).fit(sparse.csr_array(X), y)
    assert compressed.certificate_.violation <= 1e-3
    np.testing.assert_allclose(dense.decision_function(X), compressed.decision_function(sparse.csr_array(X)), atol=1e-2)


def test_weights_count_as_repetitions():
    X, y = noisy(2500)
    weights = 1.0 + (np.arange(2500) % 3 == 0)
    repeated = np.repeat(np.arange(2500), weights.astype(int))
    weighted = SVC(gamma=0.1, tol=1e-4).fit(X, y, sample_weight=weights)
    plain = SVC(gamma=0.1, tol=1e-4).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), atol=5e-3)


def test_large_costs_hold_in_double_precision():
    X, y = chessboard(3000)
    model = SVC(C=1e5, gamma=0.5).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.violation <= 1e-3


def test_little_cache_gives_the_same_machine():
    X, y = noisy(4000)
    large, small = SVC(C=3).fit(X, y), SVC(C=3, cache_size=2).fit(X, y)
    assert small.certificate_.violation <= 1e-3
    assert small.certificate_.dual == pytest.approx(large.certificate_.dual, rel=1e-4)


class TestProofOnRequest:
    @pytest.fixture
    def fitted(self, monkeypatch):
        monkeypatch.setattr("maxmargin.training.pipeline.MAX_VERIFICATION_WORK", 10)
        X, y = noisy()
        calls = []
        original = certificate.certify
        monkeypatch.setattr(
            "maxmargin.training.trained_model.certify",
            lambda *args, **options: calls.append(1) or original(*args, **options),
        )
        return SVC().fit(X, y), X, calls

    def test_it_is_computed_when_asked_for(self, fitted):
        model, _, calls = fitted
        assert not calls
        assert model.certificate_.violation <= 1e-3
        assert model.geometry_.offset == pytest.approx(model.intercept_[0], abs=1e-4)
        assert len(calls) == 1

    def test_pickling_and_copying_never_compute_it(self, fitted):
        model, X, calls = fitted
        stored = pickle.loads(pickle.dumps(model))
        copied = copy.deepcopy(model)
        clone(model)
        assert not calls
        np.testing.assert_array_equal(stored.decision_function(X), model.decision_function(X))
        with pytest.raises(AttributeError, match="not computed before the model was pickled or saved"):
            _ = stored.certificate_
        assert copied.certificate_.violation <= 1e-3  # a copy in memory still has the training data

    def test_a_stored_model_has_it_if_it_was_computed(self, fitted):
        model, _, calls = fitted
        _ = model.certificate_
        stored = pickle.loads(pickle.dumps(model))
        assert stored.certificate_.violation <= 1e-3
        assert stored.certificate_.gap == model.certificate_.gap
        assert len(calls) == 1

    def test_changed_data_are_noticed(self, fitted):
        model, X, _ = fitted
        X += 1.0
        with pytest.raises(RuntimeError, match="changed after fit"):
            _ = model.certificate_


def test_a_fitted_model_does_not_keep_kernel_values():
    X, y = noisy(400)
    machine = SVC().fit(X, y)._models_[0]
    assert isinstance(machine._posed().matrix, KernelMatrix)


def test_a_kernel_that_cannot_be_hashed():
    @dataclass
    class Mine(Kernel):
        def evaluate(self, left, right):
            return left.values() @ right.values().T

        def diagonal(self, points):
            return np.square(points.values()).sum(axis=1)

    X, y = noisy(2100)
    assert SVC(kernel=Mine()).fit(X, y).certificate_.violation <= 1e-3


def test_a_solver_of_ones_own():
    @dataclass(frozen=True)
    class Mine:
        stopping: StoppingRule = field(default_factory=StoppingRule)

        def solve(self, problem, start=None, callback=None):
            return PairwiseSolver(stopping=self.stopping).solve(problem, start, callback)

    X, y = noisy(300)
    assert SVC(solver=Mine()).fit(X, y).certificate_.violation <= 1e-3


def test_decision_values_agree_with_scikit_learn_on_many_support_vectors():
    X, y = noisy(4000)
    theirs = svm.SVC().fit(X, y)
    ours = SVC(tol=1e-4).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-2)
