"""Preparation of samples for tensor cores, with NumPy in place of CuPy: the parts give the kernel to seven digits."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from maxmargin.cuda import halves, samples, transfer
from maxmargin.cuda.device import DeviceError
from maxmargin.cuda.samples import DeviceSamples
from maxmargin.kernels import Gaussian, Linear, Points, Polynomial


class Memory:
    """The memory of a GPU, in place of CuPy's runtime and of its pool."""

    free = 10**12

    def memGetInfo(self):
        return self.free, 10**13

    def free_bytes(self):
        return 0


class NumpyInPlaceOfCupy:
    """The functions of NumPy, and what is asked about the memory of a GPU."""

    def __init__(self):
        self.cuda = self
        self.runtime = Memory()

    def get_default_memory_pool(self):
        return Memory()

    def get_current_stream(self):
        return self

    def synchronize(self):
        pass

    def __getattr__(self, name):
        return getattr(np, name)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    for module in (halves, samples, transfer):
        monkeypatch.setattr(module, "cupy", NumpyInPlaceOfCupy)


def values(prepared, function):
    """Return the kernel values that tensor cores compute from the parts, up to their rounding."""
    high, low = (np.float64(0.0) if part is None else part.astype(np.float64) for part in prepared.halves)
    inner = prepared.scale * (high + low) @ (high + low).T
    if prepared.half_norms is not None:
        norms = prepared.half_norms.astype(np.float64)
        return np.exp2(np.minimum(inner - norms[:, None] - norms, 0.0))
    return function(inner + prepared.offset)


def years(random):
    return random.integers(1990, 2021, (200, 5)).astype(float)


def images(random):
    return np.where(random.random((100, 64)) < 0.3, random.integers(0, 256, (100, 64)), 0) / 255.0


def normal(random):
    return random.normal(size=(200, 7))


def tiny(random):
    return 1e-30 * random.normal(size=(200, 7))


def far_away(random):
    return 1e4 + random.normal(size=(200, 7))


def rare_flags(random):
    flags = (random.random((2000, 5)) < 0.002).astype(float)
    X = np.column_stack([random.normal(size=2000), flags])
    return ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9))[np.argsort(-flags.sum(axis=1), kind="stable")[:300]]


@pytest.mark.parametrize("data", [years, images, normal, tiny, far_away, rare_flags], ids=lambda data: data.__name__)
def test_gaussian(data):
    X = data(np.random.default_rng(0))
    kernel = Gaussian(1.0 / (X.shape[1] * X.var()))
    prepared = DeviceSamples.of(kernel.formula, Points(X), 0)
    assert (prepared.halves[1] is None) == (data in (years, images))
    assert prepared.width % 16 == 0
    np.testing.assert_allclose(values(prepared, None), kernel.evaluate(Points(X), Points(X)), atol=2e-6)


@pytest.mark.parametrize("data", [years, images, normal], ids=lambda data: data.__name__)
@pytest.mark.parametrize(
    "kernel", [Linear(), Polynomial(gamma=0.01, coef0=1.0, degree=2)], ids=["linear", "polynomial"]
)
def test_functions_of_inner_products(kernel, data):
    X = data(np.random.default_rng(0))
    prepared = DeviceSamples.of(kernel.formula, Points(X), 0)
    exact = kernel.evaluate(Points(X), Points(X))
    degree = getattr(kernel, "degree", 1)
    found = values(prepared, lambda inner: inner**degree)
    assert np.abs(found - exact).max() <= 2e-6 * np.abs(exact).max()


@pytest.mark.parametrize("form", [np.float64, np.float32])
@pytest.mark.parametrize("data", [years, images, normal, tiny, far_away, rare_flags], ids=lambda data: data.__name__)
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear()], ids=["gaussian", "linear"])
def test_few_rows_at_a_time(data, form, kernel, monkeypatch):
    """Samples are the same to the last bit, however many are prepared at a time."""
    X = data(np.random.default_rng(0)).astype(form)
    whole = DeviceSamples.of(kernel.formula, Points(X), 0)
    monkeypatch.setattr(halves, "PREPARED_VALUES", 500)
    parts = DeviceSamples.of(kernel.formula, Points(X), 0)
    assert parts.scale == whole.scale
    for found, expected in zip((*parts.halves, parts.half_norms), (*whole.halves, whole.half_norms), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("data", [years, normal, rare_flags], ids=lambda data: data.__name__)
@pytest.mark.parametrize("form", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear()], ids=["gaussian", "linear"])
def test_memory_of_the_preparation(data, form, kernel, monkeypatch):
    """Besides the table and its halves it takes little: a table of the largest size that is allowed fits."""
    X = np.tile(data(np.random.default_rng(0)).astype(form), (1000, 3))[:, :16].copy()
    monkeypatch.setattr(halves, "PREPARED_VALUES", 2**16)
    monkeypatch.setattr(halves, "CENTRE_SAMPLES", 2**10)
    tracemalloc.start()
    DeviceSamples.prepare(kernel.formula, X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    norms = 12 * len(X)  # in float32 for γ, and in float64 for all
    assert peak <= 2 * 2 * X.size + norms + 8 * 8 * 2**16


def test_views_share_the_data():
    points = Points(normal(np.random.default_rng(0)))
    formula = Gaussian(0.1).formula
    assert DeviceSamples.of(formula, points, 0) is DeviceSamples.of(formula, points.take([3, 4]), 0)


def test_extreme_features():
    with pytest.raises(DeviceError, match="too extreme for a GPU"):
        DeviceSamples.of(Gaussian(1.0).formula, Points(1e150 * normal(np.random.default_rng(0))), 0)


def test_data_on_the_device(monkeypatch):
    X = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(samples.data_on_device(Points(X), 0), X)
    np.testing.assert_array_equal(samples.data_on_device(Points(sparse.csr_matrix(X)), 0), X)


def test_what_fits(monkeypatch):
    points, others = (Points(sparse.csr_matrix((1000, 1000))) for _ in range(2))
    assert samples.fits_on_device(points, 0)
    monkeypatch.setattr(Memory, "free", 10**6)
    assert samples.fits_on_device(points.take([0]), 0)  # all views have the same answer: the data may be there by now
    assert not samples.fits_on_device(others.take([0]), 0)  # of all data


@pytest.mark.parametrize("form", [np.float64, np.float32, "sparse"])
def test_a_gamma_for_each_feature_multiplies_the_samples(form):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 9)) + (2.0 if form == "sparse" else 20.0)
    X = sparse.csr_array(X * (random.random(X.shape) < 0.4)) if form == "sparse" else X.astype(form)
    kernel, points = Gaussian(random.uniform(0.0, 0.3, 9) * (np.arange(9) != 4)), Points(X)
    prepared = DeviceSamples.of(kernel.formula, points, 0)
    assert prepared.data.dtype == np.float64
    np.testing.assert_allclose(values(prepared, None), kernel(X), atol=4e-6)
    assert DeviceSamples.of(kernel.formula, points.take([3, 4]), 0) is prepared
    one = DeviceSamples.of(Gaussian(0.1).formula, points, 0)  # the copy of the samples is not multiplied
    np.testing.assert_allclose(values(one, None), Gaussian(0.1)(X), atol=4e-6)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1001])
def test_rows_are_combined_column_by_column(count):
    rows = np.random.default_rng(count).integers(0, 9, (count, 3))
    for combine, reduced in (
        (np.minimum, rows.min(axis=0)),
        (np.maximum, rows.max(axis=0)),
        (np.add, rows.sum(axis=0)),
    ):
        np.testing.assert_array_equal(halves._combined(combine, rows), reduced)
    np.testing.assert_array_equal(halves._combined(np.logical_and, rows > 0), (rows > 0).all(axis=0))
