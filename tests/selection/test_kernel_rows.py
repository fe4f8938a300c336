"""Rows of a matrix in memory: their values, and how much memory they take."""

import numpy as np
import pytest

from maxmargin.formulations import c_classification
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.selection.kernel_rows import KernelRows

SIZE = 60


@pytest.fixture
def problem():
    random = np.random.default_rng(0)
    matrix = KernelMatrix(Gaussian(0.5), Points.wrap(random.normal(size=(SIZE, 2))))
    return c_classification.pose(matrix, np.where(np.arange(SIZE) % 2, 1.0, -1.0), np.ones(SIZE))


@pytest.mark.parametrize("most", [0, 20, SIZE, 10 * SIZE])
def test_rows_are_those_of_the_matrix_however_they_are_added(problem, most):
    rows, order = KernelRows(problem, 8 * SIZE * most, 1), np.random.default_rng(1).permutation(SIZE)
    whole = problem.matrix.rows(np.arange(SIZE))
    weights = np.random.default_rng(2).normal(size=(2, SIZE))
    for count in (1, 3, 8, 20, 41, SIZE):
        some = order[:count]
        assert rows.add(some) == (count <= most)
        np.testing.assert_array_equal(rows.block(some, order), whole[np.ix_(some, order)])
        np.testing.assert_allclose(rows.product(weights[:, some], some), weights[:, some] @ whole[some], atol=1e-12)


def test_memory_is_that_of_the_rows_not_of_the_budget(problem):
    rows = KernelRows(problem, 8 * SIZE * SIZE, 1)
    allocated = []
    for count in range(SIZE + 1):
        rows.add(np.arange(count))
        allocated.append(len(rows._values))
    assert allocated[0] == 0
    assert all(count <= room <= max(2 * count, 1) for count, room in enumerate(allocated))
    assert allocated[-1] == SIZE
    assert len(set(allocated)) < 10  # not copied for each row
