"""The Cholesky factorisation of Newton steps."""

import numpy as np
import pytest

from maxmargin.solvers.linear.cholesky import factorise, solve


def positive_definite(size):
    table = np.random.default_rng(size).normal(size=(size + 3, size))
    return table.T @ table


@pytest.mark.parametrize("size", [1, 5, 60])
def test_factor_of_the_lower_triangle_solves_equations(size):
    square = positive_definite(size)
    factor = factorise(np.tril(square))
    np.testing.assert_allclose(np.triu(factor).T, np.linalg.cholesky(square), atol=1e-10)
    right = np.arange(size, dtype=float)
    np.testing.assert_allclose(square @ solve(factor, right), right, atol=1e-6)


def test_the_diagonal_grows_while_the_matrix_is_indefinite():
    row = np.ones((1, 4))
    singular = row.T @ row
    singular[0, 0] -= 1e-14
    factor = np.triu(factorise(singular.copy()))
    np.testing.assert_allclose(factor.T @ factor, singular, atol=1e-10)


def test_values_that_are_not_finite_are_an_error():
    with pytest.raises(ValueError, match="finite"):
        factorise(np.full((3, 3), -np.inf))
