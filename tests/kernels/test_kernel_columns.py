"""How blocks of kernel values are divided into native calls."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import Gaussian, Points, kernel_columns
from maxmargin.kernels.kernel_columns import slices


@pytest.mark.parametrize(
    ("rows", "work", "least", "threads"), [(1000, 10**7, 64, 1), (1000, 10**9, 64, 4), (7, 1, 64, 2)]
)
def test_slices_have_whole_panels(rows, work, least, threads):
    parts = list(slices(rows, work, least, threads))
    assert parts[0].start == 0
    assert parts[-1].stop == rows
    assert all(part.stop == following.start for part, following in itertools.pairwise(parts))
    assert all((part.stop - part.start) % least == 0 for part in parts[:-1])


def test_slices_change_no_kernel_value_of_sparse_samples(monkeypatch):
    X = sparse.random_array((700, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    points, weights = Points(X), np.linspace(-1, 1, 40)
    columns = kernel_columns.pack_columns(Gaussian(0.5).formula, points.take(slice(0, 40)), np.float32, 2)

    def block_and_sums():
        block = np.empty((700, 40), dtype=np.float32)
        columns.fill(points, block, np.arange(700))
        return block, columns.combine(points, weights)

    whole = block_and_sums()
    monkeypatch.setattr(kernel_columns, "MULTIPLICATIONS_PER_CALL", 1)
    monkeypatch.setattr(kernel_columns, "MIN_SPARSE_ROWS", 50)
    for one, other in zip(whole, block_and_sums(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("features", [3, 900])  # packed rows take less memory than the values, and more
def test_slices_change_no_kernel_value_of_dense_samples_with_themselves(monkeypatch, features):
    points = Points(np.random.default_rng(0).normal(size=(700, features)))
    columns = kernel_columns.pack_columns(Gaussian(1 / features).formula, points, np.float32, 2)

    def square():
        block = np.full((700, 700), -1, dtype=np.float32)
        columns.fill(points, block, np.arange(700))
        return block

    whole = square()
    assert (whole == whole.T).all()
    assert (whole.diagonal() == 1).all()
    monkeypatch.setattr(kernel_columns, "MULTIPLICATIONS_PER_CALL", 1)
    np.testing.assert_array_equal(square(), whole)


@pytest.mark.parametrize("form", [np.float64, np.float32, "sparse"])
@pytest.mark.parametrize("count", [1, 2, 33, 200])
def test_a_square_in_one_call_has_the_values_of_packed_columns(monkeypatch, count, form):
    X = np.random.default_rng(0).normal(size=(210, 5))
    points = Points(sparse.csr_array(X) if form == "sparse" else X.astype(form))
    points = points.take(np.random.default_rng(1).permutation(210)[:count])
    formula, packed, square = Gaussian(0.3).formula, np.empty((count, count)), np.empty((count, count))
    kernel_columns.pack_columns(formula, points, np.float64, 1).fill(points, packed, np.arange(count))
    for threads in (1, 3):
        square.fill(np.nan)
        kernel_columns.kernel_square(formula, points, square, threads)
        np.testing.assert_array_equal(square, packed)
    monkeypatch.setattr(kernel_columns, "MULTIPLICATIONS_PER_CALL", 1)
    square.fill(np.nan)
    kernel_columns.kernel_square(formula, points, square, 2)
    np.testing.assert_array_equal(square, packed)
