"""Feature rows: products for all data formats, and the matrices that have features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from maxmargin import _native
from maxmargin.kernels import Gaussian, Linear, Points
from maxmargin.matrices import (
    BiasAugmentedMatrix,
    CachedMatrix,
    KernelMatrix,
    PrecomputedMatrix,
    RepeatedMatrix,
    SharedCacheMatrix,
)
from maxmargin.matrices.features import Features


def data(form: str, n: int = 70, d: int = 37):
    random = np.random.default_rng(n + d)
    X = np.where(random.random((n, d)) < 0.4, random.normal(size=(n, d)), 0.0)
    X = X.astype(np.float32) if "single" in form else X
    if "dense" in form:
        return X, X.astype(np.float64)
    rows = sparse.csr_array(X)
    if "long" in form:
        rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows, X.astype(np.float64)


FORMS = ["dense", "dense single", "sparse", "sparse single", "sparse long", "sparse long single"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("constant", [0.0, 2.5])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [(1, 1), (70, 37), (3000, 5)])
def test_products_with_weights_and_dual(form, constant, threads, size):
    held, plain = data(form, *size)
    rows = Features(Points(held), constant, threads)
    full = np.column_stack([plain, np.full(len(plain), constant)])
    random = np.random.default_rng(0)
    weights, dual = random.normal(size=full.shape[1]), random.normal(size=len(full))
    dual[::3] = 0.0
    np.testing.assert_allclose(rows.decisions(weights), full @ weights, atol=1e-11)
    np.testing.assert_allclose(rows.weights(dual), full.T @ dual, atol=1e-10)
    np.testing.assert_allclose(rows.squared_norms(), (plain**2).sum(axis=1), rtol=1e-12)
    assert rows.stored == (plain.size if "dense" in form else np.count_nonzero(plain))


@pytest.mark.parametrize("form", FORMS)
def test_moments(form):
    held, plain = data(form, 900, 20)
    factors = np.random.default_rng(1).uniform(size=900)
    for origin in [None, plain.mean(axis=0)] if "dense" in form else [None]:
        total, sums, squares = Features(Points(held), 0.0, 2).moments(factors, origin)
        counted = plain if origin is None else plain - origin
        assert total == pytest.approx(factors.sum())
        np.testing.assert_allclose(sums, factors @ counted, atol=1e-10)
        np.testing.assert_allclose(np.tril(squares), np.tril(counted.T @ (factors[:, None] * counted)), atol=1e-10)
    if "dense" not in form:
        with pytest.raises(ValueError, match="about zero"):
            Features(Points(held)).moments(factors, plain.mean(axis=0))


@pytest.mark.parametrize("form", FORMS)
def test_subset_of_rows_in_any_order(form):
    held, plain = data(form)
    picks = np.array([5, 5, 2, 69, 0])
    rows = Features(Points(held).take(picks))
    weights = np.arange(38.0)
    np.testing.assert_allclose(rows.decisions(weights), plain[picks] @ weights[:-1], atol=1e-11)
    np.testing.assert_allclose(rows.weights(np.arange(5.0))[:-1], plain[picks].T @ np.arange(5.0), atol=1e-11)
    assert rows.take(np.array([3])).decisions(weights) == pytest.approx(plain[69] @ weights[:-1])


@pytest.mark.parametrize("form", FORMS)
def test_data_are_not_copied(form):
    held, _ = data(form)
    values, starts, features = Features(Points(held))._arrays
    if "dense" in form:
        assert np.shares_memory(values, held)
    else:
        assert np.shares_memory(values, held.data)
        assert np.shares_memory(features, held.indices)
        assert np.shares_memory(starts, held.indptr)


def test_which_matrices_have_features():
    X = np.random.default_rng(0).normal(size=(6, 2))
    linear = KernelMatrix(Linear(), Points(X))
    for matrix in (
        linear,
        BiasAugmentedMatrix(linear, 4.0),
        RepeatedMatrix(linear, np.array([0, 0, 3, 5, 1, 2])),
        RepeatedMatrix(BiasAugmentedMatrix(linear, 4.0), np.array([5, 4, 3, 3])),
        CachedMatrix(linear, 10**6),
        SharedCacheMatrix(linear, 10**6, 1),
        linear.take(np.array([4, 1])),
    ):
        rows = matrix.features()
        everything = np.arange(matrix.size)
        products = np.array([rows.decisions(rows.weights(unit)) for unit in np.eye(matrix.size)])
        np.testing.assert_allclose(products, matrix.block(everything, everything), atol=1e-12)
    assert KernelMatrix(Gaussian(1.0), Points(X)).features() is None
    assert PrecomputedMatrix(np.eye(3)).features() is None
    assert BiasAugmentedMatrix(BiasAugmentedMatrix(linear, 1.0), 1.0).features() is None


def test_matvec_of_a_linear_kernel_matrix():
    X = np.random.default_rng(0).normal(size=(500, 3))
    matrix = KernelMatrix(Linear(), Points(X))
    vector = np.random.default_rng(1).normal(size=500)
    np.testing.assert_allclose(matrix.matvec(vector), X @ (X.T @ vector), atol=1e-10)


def test_malformed_rows_are_rejected():
    weights, out = np.ones(2), np.empty(2)
    values, features = np.ones(2), np.zeros(2, dtype=np.int64)
    bad = [
        {"values": np.ones((2, 3))},  # another width
        {"values": np.ones((2, 2), dtype=np.int64)},  # not floating
        {"values": np.ones((2, 2, 2))},
        {"values": values},  # neither a table nor compressed
        {"values": values, "starts": np.array([0, 2, 1]), "features": features},  # starts that fall
        {"values": values, "starts": np.array([0, 1, 3]), "features": features},  # beyond the end
        {"values": values, "starts": np.array([0, 1, 2]), "features": features.astype(np.int32)},  # two index types
        {"values": values, "starts": np.array([0, 1, 2]), "features": features[:1]},  # too few features
        {"values": values, "starts": np.array([-1, 1, 2]), "features": features},
    ]
    for arrays in bad:
        with pytest.raises(ValueError, match=r"rows|float|malformed|width"):
            _native.row_decisions(_native.DataRows(**arrays, width=2), weights, out, 1)
    table = np.ones((2, 2))
    with pytest.raises(ValueError, match="out of range"):
        _native.row_decisions(_native.DataRows(values=table, width=2, indices=np.array([2, 0])), weights, out, 1)
    with pytest.raises(ValueError, match="wrong length"):
        _native.row_decisions(_native.DataRows(values=table, width=2), weights, np.empty(3), 1)
