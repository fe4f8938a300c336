"""The equations of a Newton step: all ways to solve them agree."""

import numpy as np
import pytest

from maxmargin.solvers.ranking import newton_equations
from maxmargin.solvers.ranking.newton_equations import KernelEquations, gmres, pair_laplacian


@pytest.fixture
def random():
    return np.random.default_rng(0)


def gaussian(random, n, features, gamma):
    X = random.normal(size=(n, features))
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def pairs(random, n, count):
    first, second = random.integers(n, size=(2, count))
    keep = first != second
    return first[keep], second[keep], random.random(keep.sum())


@pytest.mark.parametrize("count", [100, 5000])
def test_dense_and_sparse_laplacians_are_equal(random, count):
    first, second, weights = pairs(random, 60, count)
    found = pair_laplacian(first, second, weights, 60, dense=True)
    assert isinstance(found, np.ndarray) == (count == 5000)
    expected = pair_laplacian(first, second, weights, 60).toarray()
    np.testing.assert_allclose(found if count == 5000 else found.toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("count", [300, 20000])
@pytest.mark.parametrize("way", ["iteration", "single precision", "double precision"])
def test_steps_solve_the_equations(random, monkeypatch, way, count):
    n = 200
    monkeypatch.setattr(newton_equations, "MIN_SINGLE_SIZE", 1000 if way == "double precision" else 50)
    equations = KernelEquations(gaussian(random, n, 2, 0.3 if way == "iteration" else 30.0))
    assert (equations._factor is not None) == (way == "iteration")
    laplacian = pair_laplacian(*pairs(random, n, count), n, dense=True)
    residual = random.normal(size=n)
    step, direction = equations.step(residual, equations.product(residual), laplacian)
    np.testing.assert_array_equal(direction, equations.values @ step)
    rest = step + laplacian @ direction + residual
    tolerance = {"iteration": 1.1 * newton_equations.ITERATED, "single precision": 0.1, "double precision": 1e-9}[way]
    assert np.linalg.norm(rest) <= tolerance * np.linalg.norm(residual)


def test_an_iteration_that_does_not_converge_has_no_result(random):
    matrix = random.normal(size=(300, 300)).astype(np.float32)
    assert gmres(lambda vector: matrix @ vector, lambda vector: vector, random.normal(size=300)) is None
    found = gmres(lambda vector: 2.0 * vector, lambda vector: vector, np.ones(300))
    np.testing.assert_allclose(found, 0.5, rtol=1e-5)


def test_large_kernels_are_not_factored():
    assert KernelEquations(1e20 * np.eye(5))._factor is None
    assert KernelEquations(np.zeros((5, 5)))._factor is None
