"""Bounds on rounding errors of kernel values against evaluations with 60 digits."""

import mpmath
import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.kernels.rounding import takes_norms
from maxmargin.kernels.split_sums import FeatureSums

mpmath.mp.dps = 60

GAMMAS = np.array([0.3, 0.0, 1e-6, 7.0, 0.1, 1.1, 0.7])

KERNELS = {
    "linear": Linear(),
    "polynomial": Polynomial(3, 0.7, 1.3),
    "negative coef0": Polynomial(2, 10.0, -1e3),
    "sigmoid": Sigmoid(0.01, -0.5),
    "gaussian": Gaussian(0.3),
    "narrow gaussian": Gaussian(40.0),
    "laplacian": Laplacian(0.2),
    "chi-squared": ChiSquared(0.4),
    "gaussian by feature": Gaussian(GAMMAS),
    "narrow by feature": Gaussian(300 * GAMMAS),
    "laplacian by feature": Laplacian(GAMMAS),
    "chi-squared by feature": ChiSquared(GAMMAS),
    "sum by feature": Laplacian(GAMMAS) * Polynomial(2, 1.0, 1.0) + Gaussian(0.1 * GAMMAS),
    "sum": 0.3 * Gaussian(0.1) + Linear(),
    "product": Polynomial(2, 1.0, 1.0) * Laplacian(0.1),
}


def exact_value(kernel, x, z):
    """Return k(x, z) by the formula of the documentation."""
    name = type(kernel).__name__
    if name == "Sum":
        return exact_value(kernel.first, x, z) + exact_value(kernel.second, x, z)
    if name == "Product":
        return exact_value(kernel.first, x, z) * exact_value(kernel.second, x, z)
    if name == "Scaled":
        return mpmath.mpf(kernel.factor) * exact_value(kernel.kernel, x, z)
    pairs = [(mpmath.mpf(float(a)), mpmath.mpf(float(b))) for a, b in zip(x, z, strict=True)]
    product = mpmath.fsum(a * b for a, b in pairs)
    if name == "Linear":
        return product
    gammas = [mpmath.mpf(float(gamma)) for gamma in np.broadcast_to(kernel.gamma, len(pairs))]
    gamma = gammas[0]
    if name == "Polynomial":
        return (gamma * product + mpmath.mpf(kernel.coef0)) ** kernel.degree
    if name == "Sigmoid":
        return mpmath.tanh(gamma * product + mpmath.mpf(kernel.coef0))
    distance = {
        "Gaussian": lambda a, b: (a - b) ** 2,
        "Laplacian": lambda a, b: abs(a - b),
        "ChiSquared": lambda a, b: (a - b) ** 2 / (a + b) if a + b else mpmath.mpf(0),
    }[name]
    terms = (gamma * distance(a, b) for gamma, (a, b) in zip(gammas, pairs, strict=True))
    return mpmath.exp(-mpmath.fsum(terms))


def samples(scale: float, form: str):
    random = np.random.default_rng(0)
    X = np.abs(random.normal(size=(25, 7))) * scale + (1e3 if form == "shifted" else 0.0)
    X[random.random(X.shape) < 0.3] = 0.0
    X[3] = X[5]
    return sparse.csr_array(X) if form == "sparse" else X.astype(np.float32) if form == "float32" else X


@pytest.mark.parametrize("form", ["dense", "sparse", "float32", "shifted"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2])
@pytest.mark.parametrize("name", KERNELS)
def test_values_are_within_their_bounds(name, scale, form):
    kernel, X = KERNELS[name], samples(scale, form)
    dense = X.toarray() if sparse.issparse(X) else X
    points = Points(X)
    rows, columns = points.take(np.arange(25)), points.take(np.arange(9))
    computed, extended = kernel.evaluate(rows, columns), kernel.evaluate_extended(rows, columns)
    size = np.outer(kernel.magnitudes(rows), kernel.magnitudes(columns))
    for j in range(9):
        one = np.zeros(9)
        one[j] = 1.0
        bound = kernel.error_bound(rows, columns, one)
        for i in range(25):
            value = exact_value(kernel, dense[i], dense[j])
            assert abs(value) <= size[i, j] * (1 + 1e-12)
            assert abs(mpmath.mpf(computed[i, j]) - value) <= bound[i]
            precise = mpmath.mpf(extended.high[i, j]) + mpmath.mpf(extended.low[i, j])
            assert abs(precise - value) <= bound[i] * 2.0**-28 + 1e-300
        assert abs(mpmath.mpf(kernel.diagonal(rows)[j]) - exact_value(kernel, dense[j], dense[j])) <= max(
            kernel.diagonal_error(rows)[j], 0.0
        )


@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0])
@pytest.mark.parametrize("gamma", [0.3, GAMMAS], ids=["gaussian", "by feature"])
def test_distances_from_norms_are_within_the_bounds_of_a_gpu(gamma, scale, form):
    """As on a GPU: squared distances by norms and inner products, whose digits cancel between near samples."""
    kernel, X = Gaussian(gamma), samples(scale, form)
    dense = (X.toarray() if sparse.issparse(X) else X).astype(float)
    dense[7] = dense[3] * (1 + 1e-9)
    X = sparse.csr_array(dense) if form == "sparse" else dense.astype(X.dtype)
    dense = X.toarray() if sparse.issparse(X) else X.astype(float)
    points = Points(X)
    assert takes_norms(kernel.formula, points)
    scaled = dense * kernel.formula.factors_of(7) if kernel.formula.gammas is not None else dense
    norms = np.einsum("ij,ij->i", scaled, scaled)
    distances = np.maximum(np.add.outer(norms, norms) - 2 * (scaled @ scaled.T), 0.0)
    computed = np.exp(-kernel.formula.gamma * distances)
    for j in range(25):
        bound = kernel.error_bound(points, points, np.eye(25)[j], FeatureSums.PRODUCTS)
        assert (bound >= kernel.error_bound(points, points, np.eye(25)[j])).all()
        for i in range(25):
            assert abs(mpmath.mpf(computed[i, j]) - exact_value(kernel, dense[i], dense[j])) <= bound[i]


def test_samples_far_from_the_origin_take_differences():
    points, formula = Points(samples(1.0, "shifted")), Gaussian(0.3).formula
    assert not takes_norms(formula, points)
    assert not takes_norms(formula, points.take([3, 5]))
    weights = np.ones(25)
    np.testing.assert_array_equal(
        Gaussian(0.3).error_bound(points, points, weights, FeatureSums.PRODUCTS),
        Gaussian(0.3).error_bound(points, points, weights),
    )
    assert not takes_norms(Laplacian(0.3).formula, Points(samples(1.0, "dense")))


def test_bounds_are_not_too_wide():
    """A hundred times the errors that occur at most: a certificate of width 1e-10 needs no second evaluation."""
    X = np.random.default_rng(0).normal(size=(200, 20))
    weights = np.ones(200)
    for kernel in (
        Gaussian(0.05),
        Gaussian(np.full(20, 0.05)),
        Laplacian(0.05),
        Polynomial(2, 0.05, 1.0),
        Sigmoid(0.05, 0.1),
    ):
        points = Points(X)
        bound = kernel.error_bound(points, points, weights)
        assert (bound <= 200 * 1e-13).all()


def test_a_kernel_of_a_user_is_exact_by_definition():
    from maxmargin.kernels import FunctionKernel

    kernel, points = FunctionKernel(lambda A, B: A @ B.T), Points(np.eye(3))
    assert not kernel.error_bound(points, points, np.ones(3)).any()
    assert not kernel.evaluate_extended(points, points).low.any()


@pytest.mark.parametrize("form", ["dense", "sparse", "float32", "shifted"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_largest_error_bounds_every_value(name, form):
    kernel, X = KERNELS[name], samples(1.0, form)
    points = Points(X)
    for j in range(25):
        error = kernel.error_bound(points, points, np.eye(25)[j]).max()
        assert error <= kernel.largest_error(X) * (1 + 1e-12)
