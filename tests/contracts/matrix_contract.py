"""Tests that every matrix must pass: inherit and provide `make`."""

from __future__ import annotations

import numpy as np
import pytest


class MatrixContract:
    """A test class for a new matrix: subclass it and define `make`, which returns the matrix and the dense array."""

    def make(self):
        raise NotImplementedError("a subclass provides the matrix and the dense array")

    @pytest.fixture
    def pair(self):
        return self.make()

    def test_size_and_diagonal(self, pair):
        matrix, dense = pair
        assert matrix.size == len(dense)
        assert matrix.rows_per_request >= 1
        np.testing.assert_array_equal(matrix.diagonal(), np.diag(dense))

    def test_rows(self, pair):
        matrix, dense = pair
        for picks in ([0], [3, 1, 3], range(len(dense))):
            picks = np.array(list(picks))
            np.testing.assert_array_equal(matrix.rows(picks), dense[picks])

    def test_blocks(self, pair):
        matrix, dense = pair
        rows, columns = np.array([2, 0, 5]), np.array([4, 4, 1])
        block = matrix.block(rows, columns)
        assert block.flags.c_contiguous
        np.testing.assert_array_equal(block, dense[np.ix_(rows, columns)])
        everything = np.arange(len(dense))
        np.testing.assert_array_equal(matrix.block(rows, everything), dense[rows])

    def test_products(self, pair):
        matrix, dense = pair
        vector = np.random.default_rng(0).normal(size=len(dense))
        vector[::3] = 0.0
        np.testing.assert_allclose(matrix.matvec(vector), dense @ vector, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(matrix.matvec(np.zeros(len(dense))), np.zeros(len(dense)))

    def test_partial_products(self, pair):
        matrix, dense = pair
        rows, columns, weights = np.array([2, 0, 5]), np.array([4, 1, 3, 4]), np.array([1.0, -2.0, 0.5, 3.0])
        product = matrix.partial_product(rows, columns, weights)
        np.testing.assert_allclose(product, dense[np.ix_(rows, columns)] @ weights, rtol=1e-12, atol=1e-12)
        none = np.array([], dtype=np.int64)
        np.testing.assert_array_equal(matrix.partial_product(rows, none, np.empty(0)), np.zeros(3))

    def test_in_memory_equals_the_matrix(self, pair):
        matrix, dense = pair
        values = matrix.in_memory()
        if values is not None:
            np.testing.assert_array_equal(values, dense)
            assert values.flags.c_contiguous

    def test_float32_columns(self, pair):
        matrix, dense = pair
        columns, rows, slots = np.array([4, 0, 5, 3]), np.array([2, 0, 5]), np.array([3, 0, 1])
        float32 = matrix.float32_columns(columns)
        assert float32.cost >= 1
        out = np.full((5, 6), np.nan, dtype=np.float32)
        float32.fill(rows, out, slots)
        np.testing.assert_allclose(out[slots, :4], dense[np.ix_(rows, columns)], rtol=1e-5, atol=1e-6)
        assert np.isnan(out[[2, 4]]).all()
        weights = np.array([1.0, -2.0, 0.5, 3.0])
        product, _ = float32.combine(rows, weights)
        np.testing.assert_allclose(product, dense[np.ix_(rows, columns)] @ weights, rtol=1e-5, atol=1e-5)

    def test_submatrix_and_uncached(self, pair):
        matrix, dense = pair
        picks = np.array([5, 0, 3])
        everything = np.arange(3)
        np.testing.assert_array_equal(matrix.take(picks).block(everything, everything), dense[np.ix_(picks, picks)])
        np.testing.assert_array_equal(matrix.uncached().diagonal(), np.diag(dense))
