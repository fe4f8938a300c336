"""Fused products and blocks on the GPU against kernel values in float64 on the host."""

import numpy as np
import pytest

from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid

pytestmark = pytest.mark.gpu

KERNELS = {
    "gaussian": Gaussian(0.05),
    "linear": Linear(),
    "polynomial": Polynomial(gamma=0.1, coef0=1.0, degree=3),
    "sigmoid": Sigmoid(gamma=0.02, coef0=-0.1),
    "laplacian": Laplacian(0.05),
    "chi squared": ChiSquared(0.1),
}


def normal(random):
    return random.normal(size=(700, 37))


def wide(random):
    return random.normal(size=(300, 203)) * 0.3


def single_precision(random):
    return random.normal(size=(400, 16)).astype(np.float32)


def images(random):
    return np.where(random.random((500, 784)) < 0.2, random.integers(0, 256, (500, 784)), 0) / 255.0


def rare_flags(random):
    X = np.column_stack([random.normal(size=(2000, 6)), random.random((2000, 30)) < 0.003]).astype(float)
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)


def one_feature(random):
    return random.normal(size=(291, 1))


DATA = [normal, wide, single_precision, images, rare_flags, one_feature]


def on_device(kernel, X):
    from maxmargin.cuda.samples import DeviceSamples

    return DeviceSamples.of(kernel.formula, Points(X), 0)


@pytest.fixture(params=DATA, ids=lambda data: data.__name__)
def data(request):
    return request.param


@pytest.mark.parametrize("name", KERNELS)
def test_products_and_blocks(name, data):
    import cupy

    from maxmargin.cuda import products

    random = np.random.default_rng(0)
    kernel, X = KERNELS[name], data(random)
    X = np.abs(X) if name == "chi squared" else X
    rows, columns = random.permutation(len(X))[:150], random.permutation(len(X))[:131]
    weights = random.normal(size=131)
    exact = kernel.evaluate(Points(X[rows].astype(float)), Points(X[columns].astype(float)))
    samples = on_device(kernel, X)
    at, to = (cupy.asarray(index.astype(np.int32)) for index in (rows, columns))
    # The error of a value: seven digits of a sum whose terms cancel.
    scale = np.sqrt(np.outer(*(np.einsum("ij,ij->i", X[k], X[k]).astype(float) for k in (rows, columns)))).max()
    error = 4e-6 * max(1.0, np.abs(exact).max(), kernel.formula.gamma * scale)
    single = products.square(samples, at, to).get()
    assert single.dtype == np.float32
    assert np.abs(single - exact).max() <= error
    product = products.product_parts(samples, at, to, cupy.asarray(weights)).sum(axis=0).get()
    assert np.abs(product - exact @ weights).max() <= error * np.abs(weights).sum()
    again = products.product_parts(samples, at, to, cupy.asarray(weights)).sum(axis=0).get()
    np.testing.assert_array_equal(product, again)
    tiny = 1e-13 * max(1.0, np.abs(exact).max(), scale)
    assert np.abs(products.precise_square(samples, at, to).get() - exact).max() <= tiny
    precise = products.precise_product(samples, at, to, cupy.asarray(weights)).get()
    assert np.abs(precise - exact @ weights).max() <= tiny * np.abs(weights).sum()


def test_all_rows_in_parts():
    import cupy

    from maxmargin.cuda import products

    random = np.random.default_rng(0)
    X, kernel = random.normal(size=(5000, 20)), Gaussian(0.02)
    samples = on_device(kernel, X)
    weights = random.normal(size=5000)
    exact = kernel.evaluate(Points(X), Points(X)) @ weights
    found = products.product_parts(samples, None, None, cupy.asarray(weights)).sum(axis=0).get()
    assert np.abs(found - exact).max() < 1e-4
    precise = products.precise_product(samples, None, None, cupy.asarray(weights)).get()
    assert np.abs(precise - exact).max() < 1e-10


@pytest.mark.parametrize("small", [0, 1])
@pytest.mark.parametrize("width", [1, 7, 54, 64, 65, 203])
@pytest.mark.parametrize("functions", [1, 3])
def test_inner_products_in_float64(small, width, functions, monkeypatch):
    """On tensor cores, with the products of all cards and with those of newer ones: any width, no matter the shape."""
    import cupy

    from maxmargin.cuda import products

    compiled = products.kernel

    def forced(*names, **parameters):
        return compiled(*names, **parameters | ({"SMALL_PRODUCTS": small} if "SMALL_PRODUCTS" in parameters else {}))

    monkeypatch.setattr(products, "kernel", forced)
    random = np.random.default_rng(0)
    X, kernel = random.normal(size=(517, width)), Gaussian(1.0 / width)
    samples = on_device(kernel, X)
    assert samples.squared_norms is not None
    rows, columns = random.permutation(517)[:201], random.permutation(517)[:131]
    weights = random.normal(size=(131, functions))
    exact = kernel.evaluate(Points(X[rows]), Points(X[columns])) @ weights
    at, to = (cupy.asarray(index.astype(np.int32)) for index in (rows, columns))
    found = products.precise_several_products(samples, at, to, cupy.asarray(weights)).get()
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-13 * np.abs(weights).sum())
    again = products.precise_several_products(samples, at, to, cupy.asarray(weights)).get()
    np.testing.assert_array_equal(found, again)


def test_samples_far_from_the_origin_take_differences():
    import cupy

    from maxmargin.cuda import products

    random = np.random.default_rng(0)
    X, kernel = random.normal(size=(300, 5)) + 1e6, Gaussian(0.2)
    samples, weights = on_device(kernel, X), random.normal(size=300)
    assert samples.squared_norms is None
    exact = kernel.evaluate(Points(X), Points(X)) @ weights
    found = products.precise_product(samples, None, None, cupy.asarray(weights)).get()
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-11)
