"""Validation of samples: numbers in any format without hidden copies, objects of any kind for user kernels."""

import tracemalloc
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from maxmargin import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR, Status
from maxmargin.kernels import Gaussian
from maxmargin.machines.validation.training_data import weighted_variance
from reference.data import iris, waves, wine

MACHINES = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), QuantileSVR(), OneClassSVM(), SVDD()]
WORDS = ["lamp", "camp", "damp", "stamp", "romp", "tree", "three", "free", "flee", "trees", "green"]
KINDS = [0] * 5 + [1] * 6


def decide(model, X):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(X)


def letters_in_common(A, B):
    """A kernel of words: how many letters, with repetitions, they share."""
    return np.array([[sum((Counter(a) & Counter(b)).values()) for b in B] for a in A], dtype=float)


def peak_of(work):
    """The most memory that was in use beyond what was there before, in bytes; NumPy tells tracemalloc about arrays."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class TestSinglePrecision:
    @pytest.mark.parametrize("model", MACHINES, ids=lambda model: type(model).__name__)
    @pytest.mark.parametrize("form", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix])
    def test_answers_are_those_of_the_same_numbers_in_double(self, model, form):
        X, y = wine()
        X = np.where(np.abs(X) < 0.5, 0.0, X).astype(np.float32)
        single, double = form(X), form(X.astype(np.float64))
        model, same = clone(model).fit(single, y), clone(model).fit(double, y)
        assert model.support_vectors_.dtype == np.float32
        np.testing.assert_array_equal(model.support_, same.support_)
        np.testing.assert_array_equal(decide(model, single), decide(same, double))
        np.testing.assert_array_equal(decide(model, double), decide(same, single))
        assert decide(model, single).dtype == np.float64

    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
    def test_large_fits_too(self, form):
        X, y = waves(2500)
        X = np.where(np.abs(X) < 0.3, 0.0, X).astype(np.float32)
        model, same = (SVR(C=10.0).fit(form(data), y) for data in (X, X.astype(np.float64)))
        np.testing.assert_array_equal(model.dual_coef_.data, same.dual_coef_.data)
        assert model.certificate_.gap == same.certificate_.gap
        assert model.certificate_.violation <= 1e-3

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_few_rows_with_many_features_are_not_copied(self, kernel):
        X, y = np.random.default_rng(0).normal(size=(600, 16_000)).astype(np.float32), np.arange(600) % 2
        X[:, 0] += 1e3 * y  # few support vectors
        self.check_memory(SVC(kernel=kernel, gamma=1e-6, C=1e3, n_jobs=1), X, y, X.nbytes)

    def test_sparse_rows_are_not_copied(self):
        random, stored = np.random.default_rng(0), 4000
        features = np.concatenate([np.arange(0, 100_000, 25) + random.integers(0, 25) for _ in range(800)])
        values = random.random(features.size, dtype=np.float32)
        values[::stored] += 1e3 * (np.arange(800) % 2)
        X = sparse.csr_array(
            (values, features % 100_000, np.arange(0, features.size + 1, stored)), shape=(800, 100_000)
        )
        self.check_memory(SVC(n_jobs=1, gamma=1e-6, C=1e3), X, np.arange(800) % 2, X.data.nbytes + X.indices.nbytes)

    def check_memory(self, model, X, y, size):
        assert peak_of(lambda: model.fit(X, y)) < size
        assert len(model.support_) < 200
        assert model.score(X, y) == 1.0
        assert peak_of(lambda: model.predict(X)) < size
        assert peak_of(lambda: model.certificate_) < size

    def test_many_rows_are_packed_once(self, tmp_path):
        X, y = np.random.default_rng(0).normal(size=(10_000, 1500)).astype(np.float32), np.arange(10_000) % 2
        X[:, :5] += 4 * y[:, None]
        np.save(tmp_path / "x.npy", X)
        mapped, size = np.load(tmp_path / "x.npy", mmap_mode="r"), X.nbytes
        del X
        model = SVC(gamma=1e-4, n_jobs=1, cache_size=10)  # megabytes
        peak = peak_of(lambda: model.fit(mapped, y))
        assert model.status_ is Status.CONVERGED
        assert peak < 2.5 * size  # the packed form, the cache, and room for a block; a double copy would be 2 more


class TestForms:
    def test_sparse_matrices_with_long_indices(self):
        X, y = wine()
        X = np.where(np.abs(X) < 0.5, 0.0, X)
        expected = SVC().fit(sparse.csr_array(X), y)
        for kind in (sparse.csr_array, sparse.csc_array):
            S = kind(X)
            S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
            for solver in ("pairwise", "block"):
                model = SVC(solver=solver).fit(S, y)
                np.testing.assert_allclose(decide(model, S), decide(expected, X), atol=2e-3)

    def test_more_features_than_the_native_loops_can_index(self):
        S = sparse.csr_array((np.ones(4), np.array([0, 5, 2**31, 7]), np.arange(5)), shape=(4, 2**31 + 1))
        model = SVC(gamma=1.0).fit(S, [0, 0, 1, 1])
        np.testing.assert_array_equal(model.predict(S), [0, 0, 1, 1])

    @pytest.mark.parametrize("model", MACHINES, ids=lambda model: type(model).__name__)
    def test_sparse_and_dense_meet(self, model):
        X, y = wine()
        X = np.where(np.abs(X) < 0.5, 0.0, X)
        S = sparse.csr_array(X)
        on_dense, on_sparse = clone(model).fit(X, y), clone(model).fit(S, y)
        np.testing.assert_allclose(decide(on_dense, S), decide(on_dense, X), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(decide(on_sparse, X), decide(on_sparse, S), rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_a_precomputed_matrix_may_be_a_memory_map(self, tmp_path, dtype):
        X, y = np.random.default_rng(0).normal(size=(3000, 3)), np.arange(3000) % 2
        X[:, 0] += 6 * y
        K = Gaussian(0.1)(X).astype(dtype)
        np.save(tmp_path / "k.npy", K)
        mapped = np.load(tmp_path / "k.npy", mmap_mode="r")
        model = SVC(kernel="precomputed", solver="pairwise", cache_size=5, n_jobs=1)
        assert peak_of(lambda: model.fit(mapped, y)) < 0.8 * K.nbytes
        assert peak_of(lambda: model.predict(mapped)) < 0.8 * K.nbytes
        same = SVC(gamma=0.1, tol=1e-5).fit(X, y)
        np.testing.assert_allclose(model.decision_function(mapped), same.decision_function(X), atol=5e-3)

    def test_prediction_reads_the_support_columns_only(self):
        X, y = wine()
        K = Gaussian(0.1)(X)
        model = SVC(kernel="precomputed").fit(K, y)
        others = np.setdiff1d(np.arange(len(y)), model.support_)
        partial = K.copy()
        partial[:, others] = 0.0
        np.testing.assert_array_equal(decide(model, partial), decide(model, K))


class TestOwnKernels:
    @pytest.mark.parametrize("model", MACHINES, ids=lambda model: type(model).__name__)
    def test_of_words(self, model):
        model = clone(model).set_params(kernel=letters_in_common)
        K = letters_in_common(WORDS, WORDS)
        fitted = clone(model).fit(WORDS, KINDS)
        assert not hasattr(fitted, "n_features_in_")
        assert fitted.shape_fit_ == (len(WORDS),)
        for words in (tuple(WORDS), np.array(WORDS), np.array(WORDS, dtype=object), pd.Series(WORDS), pl.Series(WORDS)):
            np.testing.assert_array_equal(decide(clone(model).fit(words, KINDS), words), decide(fitted, WORDS))
        if not isinstance(model, SVDD):
            given = clone(model).set_params(kernel="precomputed").fit(K, KINDS)
            np.testing.assert_allclose(decide(fitted, WORDS), decide(given, K), atol=1e-8)
        if hasattr(fitted, "classes_"):
            np.testing.assert_array_equal(fitted.predict(["clamp", "tee"]), [0, 1])
        assert fitted.certificate_.violation <= 1e-3

    def test_of_objects_and_sequences_of_unequal_length(self):
        random = np.random.default_rng(0)
        series = [random.normal(size=random.integers(3, 9)) + 3 * (k % 2) for k in range(30)]
        y = np.arange(30) % 2

        def kernel(A, B):
            return np.array([[np.exp(-((a.mean() - b.mean()) ** 2)) for b in B] for a in A])

        model = SVC(kernel=kernel).fit(series, y)
        assert model.score(series, y) == 1.0
        assert isinstance(model.support_vectors_[0], np.ndarray)
        graphs = [{"edges": k % 5, "kind": k % 2} for k in range(30)]
        model = SVC(kernel=lambda A, B: np.array([[float(a["kind"] == b["kind"]) for b in B] for a in A]))
        assert model.fit(graphs, y).score(graphs, y) == 1.0
        graphs[0]["kind"] = 7
        with pytest.raises(RuntimeError, match="training data were changed"):
            _ = model.certificate_

    @pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
    def test_of_frames(self, make):
        X, y = iris()
        frame = make({"size": X[:, 2], "colour": np.where(X[:, 0] > 0, "red", "blue"), "width": X[:, 3]})
        seen = set()

        def kernel(A, B):
            seen.update({type(A), type(B)})
            numbers = Gaussian(0.5)(np.asarray(A[["size", "width"]]), np.asarray(B[["size", "width"]]))
            return numbers + (np.asarray(A["colour"])[:, None] == np.asarray(B["colour"]))

        model = SVC(kernel=kernel).fit(frame, y)
        assert seen == {make}
        assert model.feature_names_in_.tolist() == ["size", "colour", "width"]
        assert model.score(frame, y) > 0.9
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(frame[["width", "colour", "size"]])

    def test_of_numbers_see_arrays(self):
        X, y = iris()
        seen = []

        def kernel(A, B):
            seen.append((type(A), A.dtype, A.ndim))
            return A @ B.T

        SVC(kernel=kernel).fit(X.astype(np.float32), y)
        assert set(seen) == {(np.ndarray, np.dtype(np.float32), 2)}
        seen.clear()
        expected = SVC(kernel=kernel).fit((10 * X).astype(int).tolist(), y)
        assert set(seen) == {(np.ndarray, np.dtype(np.float64), 2)}
        assert expected.n_features_in_ == 4
        as_sparse = SVC(kernel=lambda A, B: A @ B.T).fit(sparse.csr_array((10 * X).astype(int)), y)  # a sparse block
        np.testing.assert_allclose(as_sparse.dual_coef_.toarray(), expected.dual_coef_, atol=1e-8)

    def test_rows_are_computed_when_needed_and_once(self):
        X, y = np.random.default_rng(0).normal(size=(500, 2)), np.arange(500) % 2
        X[:, 0] += 5 * y
        numbered = np.column_stack([np.arange(500), X])
        times = np.zeros((500, 500), dtype=int)

        def kernel(A, B):
            times[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))] += 1
            return Gaussian(0.5)(A[:, 1:], B[:, 1:])

        model = SVC(kernel=kernel).fit(numbered, y)
        used = len(model.support_)
        assert used < 100
        squares = np.zeros_like(times)  # the diagonal comes from small squares along it
        for start in range(0, 500, 32):
            squares[start : start + 32, start : start + 32] = 1
        solved = times - squares
        solved[:, model.support_] -= 1  # verification evaluates the support vectors again
        assert solved.max() <= 1
        assert (solved.max(axis=1) > 0).sum() < 250  # most rows were never asked for

    def test_nothing_is_forced_where_it_makes_no_sense(self):
        with pytest.raises(ValueError, match="could not convert string"):
            SVC().fit(WORDS, KINDS)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            SVC(kernel=letters_in_common).fit(WORDS[:-1], KINDS)
        with pytest.raises(ValueError, match="at least one sample"):
            SVC(kernel=letters_in_common).fit([], [])
        numbers = SVC(kernel=lambda A, B: A @ B.T).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
        with pytest.raises(ValueError, match="expecting 2 features"):
            numbers.predict(["word"])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weights", [np.ones(30), np.arange(30.0)], ids=["equal", "unequal"])
def test_the_variance_counts_rows_by_their_weight(dtype, weights):
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(30, 4)).astype(dtype)
    repeated = np.repeat(X.astype(np.float64), weights.astype(int), axis=0)
    assert weighted_variance(X, weights) == pytest.approx(repeated.var(), rel=1e-12)
    assert weighted_variance(sparse.csr_matrix(X), weights) == pytest.approx(repeated.var(), rel=1e-9)


class Named(np.ndarray):
    """An array of another class."""


@pytest.mark.parametrize(
    "X",
    [
        np.ones((3, 2), dtype=int), np.ones((3, 2), order="F")[::-1], [[1.0, 2.0]], np.ones(3), np.ones((0, 2)),
        np.ones((3, 0)), np.full((3, 2), np.nan), np.full((3, 2), -np.inf), np.full((400, 2), 1e306),
        np.ones((3, 2), ">f8"), np.ones((3, 2)).view(Named), np.ones((3, 2), dtype=object), np.ones((3, 2, 1)),
        sparse.csr_matrix(np.ones((3, 2))), sparse.csr_array(np.ones((3, 2))), sparse.csc_matrix(np.ones((3, 2))),
        sparse.csr_array(np.ones(3)), sparse.csr_matrix((0, 2)), sparse.csr_matrix(np.full((3, 2), np.nan)),
        sparse.csr_matrix(np.ones((3, 2), dtype=int)), sparse.csr_matrix((3, 2)),
    ],
    ids=repr,
)  # fmt: skip
def test_only_arrays_that_scikit_learn_returns_as_they_are_skip_its_validation(X):
    model = OneClassSVM()
    if model._accepts(X, reset=True):
        checked = validate_data(model, X, dtype=(np.float64, np.float32), order="C", accept_sparse="csr")
        assert X is checked or (sparse.issparse(X) and X.data is checked.data)
    assert model._accepts(np.ones((3, 2), dtype=np.float32), reset=True)
    assert model.n_features_in_ == 2
    assert not model._accepts(np.ones((3, 1)), reset=False)
    model.feature_names_in_ = np.array(["a", "b"])
    assert not model._accepts(np.ones((3, 2)), reset=False)  # with scikit-learn's warning
    assert model._accepts(np.ones((3, 2)), reset=True)
    assert not hasattr(model, "feature_names_in_")
