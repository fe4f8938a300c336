"""Tests that every kernel must pass: inherit and provide the fixture `kernel`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import Kernel, Points, kernel_columns


class KernelContract:
    """A test class for a new kernel: subclass it and define a fixture `kernel`."""

    positive_semidefinite = True
    sparse_input = True
    computes_in_float64 = True  # for samples of any precision; a user's function need not

    @pytest.fixture
    def kernel(self) -> Kernel:
        raise NotImplementedError("a subclass provides the kernel")

    def expected(self, x: np.ndarray, z: np.ndarray) -> float:
        """Return the textbook formula for one pair of samples."""
        raise NotImplementedError("a subclass provides the formula")

    @pytest.fixture(params=[3, 17, 70])
    def X(self, request) -> np.ndarray:
        return np.random.default_rng(request.param).random((19, request.param))

    def test_equals_the_formula(self, kernel, X):
        Z = X[4:9] * 0.7 + 0.1
        expected = [[self.expected(x, z) for z in Z] for x in X]
        np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12)

    def test_is_symmetric(self, kernel, X):
        np.testing.assert_array_equal(kernel(X), kernel(X).T)

    def test_diagonal_equals_that_of_the_block(self, kernel, X):
        np.testing.assert_array_equal(kernel.diagonal(X), np.diag(kernel(X)))

    def test_diagonal_is_computed_once_for_all_views(self, kernel, X):
        points, expected = Points(X), np.diag(kernel(X))
        for rows in ([4], [3, 4, 5, 3], range(19), [18, 0]):
            np.testing.assert_array_equal(kernel.diagonal(points.take(list(rows))), expected[list(rows)])

    def test_a_value_does_not_depend_on_its_block(self, kernel, X):
        full = kernel(X)
        points = Points(X)
        for rows, columns in [([3], [5]), ([1, 2, 3], range(19)), (range(19), [18]), ([7], range(0, 19, 3))]:
            block = kernel(points.take(list(rows)), points.take(list(columns)))
            np.testing.assert_array_equal(block, full[np.ix_(list(rows), list(columns))])

    def test_equal_rows_have_equal_values(self, kernel, X):
        X = np.vstack([X, X])
        K = kernel(X)
        np.testing.assert_array_equal(K[:19, :19], K[19:, 19:])
        np.testing.assert_array_equal(np.diag(K[:19, 19:]), np.diag(K)[:19])

    def test_is_positive_semidefinite(self, kernel, X):
        least = np.linalg.eigvalsh(kernel(X)).min()
        if self.positive_semidefinite:
            assert least > -1e-9
        else:
            assert np.isfinite(least)

    def test_sparse_samples_give_equal_values(self, kernel, X):
        if not self.sparse_input:
            return
        X = np.where(X > 0.6, X, 0.0)
        for index_type in (np.int32, np.int64):
            S = sparse.csr_array(X)
            S.indices, S.indptr = S.indices.astype(index_type), S.indptr.astype(index_type)
            np.testing.assert_allclose(kernel(S), kernel(X), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(kernel(S, X[:4]), kernel(X, X[:4]), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(kernel.diagonal(S), kernel.diagonal(X), rtol=1e-12)
            np.testing.assert_array_equal(kernel(S), kernel(S).T)
            np.testing.assert_array_equal(kernel.diagonal(S), np.diag(kernel(S)))

    def test_float32_samples_give_identical_values(self, kernel, X):
        if not self.computes_in_float64:
            return
        single = X.astype(np.float32)
        same = single.astype(np.float64)
        expected = kernel(same, same[:7])
        np.testing.assert_array_equal(kernel(single, single[:7]), expected)
        np.testing.assert_array_equal(kernel(single, same[:7]), expected)
        np.testing.assert_array_equal(kernel.diagonal(single), kernel.diagonal(same))
        if self.sparse_input:
            S = sparse.csr_array(single)
            np.testing.assert_array_equal(kernel(S), kernel(S.astype(np.float64)))
            np.testing.assert_array_equal(kernel(S, same[:7]), kernel(S.astype(np.float64), single[:7]))

    def test_batches_give_identical_values(self, kernel, X, monkeypatch):
        full, from_sparse = kernel(X), kernel(sparse.csr_array(X)) if self.sparse_input else None
        monkeypatch.setattr(kernel_columns, "PACKED_BYTES", 8 * 6 * X.shape[1])
        np.testing.assert_array_equal(kernel(X), full)
        if self.computes_in_float64:
            single = X.astype(np.float32)
            np.testing.assert_array_equal(kernel(single), kernel(single.astype(np.float64)))
        if self.sparse_input:
            np.testing.assert_array_equal(kernel(sparse.csr_array(X)), from_sparse)

    def test_adds_multiplies_and_scales(self, kernel, X):
        K = kernel(X)
        np.testing.assert_array_equal((kernel + kernel)(X), K + K)
        np.testing.assert_array_equal((kernel * kernel)(X), K * K)
        np.testing.assert_array_equal((0.5 * kernel)(X), 0.5 * K)
        np.testing.assert_array_equal((2.0 * kernel + kernel * kernel).diagonal(X), np.diag(2.0 * K + K * K))

    def test_different_numbers_of_features_raise(self, kernel, X):
        with pytest.raises(ValueError, match="features"):
            kernel(X, X[:, :2])
