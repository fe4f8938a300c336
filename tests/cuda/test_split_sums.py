"""Arithmetic of certificates on a GPU: bounds on errors hold, and when it is taken: sums in pairs of float32, for cards
whose float64 is slow, and squared distances from inner products.

On the twin, the arithmetic of pairs is that of the CUDA source, in NumPy.
"""

import numpy as np
import pytest

from maxmargin import SVC, SVR, OneClassSVM
from maxmargin.cuda import product_costs
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.cuda.product_costs import DeviceSpeed, quickest_products
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.kernels.split_sums import FeatureSums, SplitSums
from maxmargin.matrices import KernelMatrix

H200 = DeviceSpeed(128 * 132 * 1.98e9, 2)
GEFORCE = DeviceSpeed(128 * 128 * 2.52e9, 64)

KERNELS = {
    "gaussian": Gaussian(0.2),
    "a gamma for each feature": Gaussian(np.linspace(0.0, 0.5, 9)),
    "laplacian": Laplacian(0.2),
    "factors of the laplacian": Laplacian(np.linspace(0.0, 0.5, 9)),
    "linear": Linear(),
    "polynomial": Polynomial(gamma=0.2, coef0=1.0, degree=3),
    "sigmoid": Sigmoid(gamma=0.02, coef0=-0.1),
    "sum": 0.5 * Gaussian(0.1) + Linear(),
    "product": Gaussian(0.1) * Polynomial(gamma=0.2, coef0=1.0, degree=2),
}


def normal(random):
    return random.normal(size=(150, 9))


def single_precision(random):
    return random.normal(size=(150, 9)).astype(np.float32)


def years(random):
    """Large offsets: differences lose digits of the features."""
    return 2000.0 + random.normal(size=(150, 9))


def unscaled(random):
    return random.normal(size=(150, 9)) * 10.0 ** np.arange(-12, 6, 2)


def duplicates(random):
    return np.vstack([random.normal(size=(75, 9))] * 2)


def tiny(random):
    return 1e-90 * random.normal(size=(150, 9))


def with_an_outlier(random):
    X = 1e-25 * random.normal(size=(150, 9))
    X[3, 2] = 1e5
    return X


DATA = [normal, single_precision, years, unscaled, duplicates, tiny, with_an_outlier]


@pytest.mark.parametrize("sums", [FeatureSums.SPLIT, FeatureSums.PRODUCTS])
@pytest.mark.parametrize("data", DATA, ids=lambda data: data.__name__)
@pytest.mark.parametrize("name", KERNELS)
def test_errors_are_within_their_bounds(device, name, data, sums):
    random = np.random.default_rng(0)
    X, vector = data(random), random.normal(size=150) * (np.arange(150) % 3 > 0)
    kernel = KERNELS[name]
    exact = KernelMatrix(kernel, Points(X)).extended_product(DoubleDouble.of(vector))
    for table in (X, DeviceTable(device.asarray(X), 0)):
        matrix, double = (
            KernelMatrix(kernel, Points.wrap(table), 1, "cuda", one) for one in (sums, FeatureSums.DOUBLE)
        )
        found, bound = matrix.matvec(vector), matrix.product_error(vector)
        assert (np.abs(found - exact.high - exact.low) <= bound.double).all()
        in_double = double.product_error(vector)
        assert (bound.double >= in_double.double).all()
        np.testing.assert_array_equal(bound.extended, in_double.extended)
    if data in (normal, single_precision, duplicates):
        assert bound.double.max() <= 1e-8 * np.abs(vector).sum() * matrix.magnitudes().max() ** 2


def test_pairs_are_used(device):
    """Errors are larger than those of float64, and far smaller than those of float32."""
    random = np.random.default_rng(0)
    X, vector = years(random), random.normal(size=150)
    split, double = (
        KernelMatrix(Gaussian(0.2), Points(X), 1, "cuda", sums) for sums in (FeatureSums.SPLIT, FeatureSums.DOUBLE)
    )
    difference = np.abs(split.matvec(vector) - double.matvec(vector)).max()
    assert double.product_error(vector).double.max() < difference < 1e-8


def test_what_is_float64_in_any_case():
    X = np.abs(np.random.default_rng(0).normal(size=(20, 3)))
    assert SplitSums.of(ChiSquared(1.0).formula, Points(X)) is None
    for factor in (1e200, 1e-200):
        assert SplitSums.of(Gaussian(1.0).formula, Points(factor * X)) is None
    assert SplitSums.of(Gaussian(1.0).formula, Points(np.zeros((3, 2)))).unit == 2.0**40
    assert SplitSums.of(Linear().formula, Points(X)).unit * X.max() <= 2.0**40
    factors = Gaussian(np.array([0.0, 1e8, 4.0])).formula
    assert SplitSums.of(factors, Points(X)).unit * X[:, 1].max() * 1e4 <= 2.0**40
    assert SplitSums.of(Gaussian(1.0).formula, Points(X)).roundings == 32 * (4 * 3 + 20)


@pytest.fixture(params=["pairs", "cpu"])
def slow_float64(request, monkeypatch):
    """Act as on a card for games, beside a slow or a fast CPU; return the device and the arithmetic of products."""
    monkeypatch.setattr(DeviceSpeed, "of", classmethod(lambda cls, number: GEFORCE))
    monkeypatch.setattr(product_costs, "CPU_FEATURES", 1e20 if request.param == "cpu" else 1.0)
    return ("cpu", FeatureSums.DOUBLE) if request.param == "cpu" else ("cuda", FeatureSums.SPLIT)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("C", [1e-6, 1.0, 100.0])
def test_certificates(device, slow_float64, name, C):
    """The interval of the objective contains the optimum, as that of the CPU does."""
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 9))
    labels = (X[:, 0] * X[:, 1] + 0.3 * random.normal(size=200) > 0).astype(int)
    found, expected = (SVC(kernel=KERNELS[name], C=C, device=where).fit(X, labels) for where in ("cuda", "cpu"))
    matrix = found._models_[0].training_problem()[0].matrix
    assert (matrix.device, matrix.sums) == slow_float64
    found, expected = found.certificate_, expected.certificate_
    assert found.violation <= 1e-3
    if name != "sigmoid":  # an indefinite kernel has several optima
        assert found.dual <= expected.primal
        assert expected.dual <= found.primal
        assert found.rounding <= 1e-5 * (1.0 + abs(expected.primal))


@pytest.mark.parametrize("model", [SVR(C=2.0), OneClassSVM(nu=0.2), SVC(gamma=0.1), SVC(multi_class="ovr")], ids=repr)
@pytest.mark.parametrize("where", ["host", "device"])
def test_other_machines(device, slow_float64, model, where):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * random.normal(size=200)
    y = np.digitize(y, [-0.5, 0.5]) if isinstance(model, SVC) else y
    parameters = model.get_params()
    expected = type(model)(**parameters).fit(X, y).certificate_
    found = type(model)(**parameters | {"device": "cuda"}).fit(device.asarray(X) if where == "device" else X, y)
    matrix = found._models_[0].training_problem()[0].matrix
    if where == "device":  # samples are not copied for the CPU
        assert matrix.device == "cuda"
        assert matrix.sums is FeatureSums.SPLIT
    certificates = found.certificate_ if isinstance(expected, list) else [found.certificate_]
    for one, other in zip(certificates, expected if isinstance(expected, list) else [expected], strict=True):
        assert one.violation <= 1e-3
        assert one.dual <= other.primal
        assert other.dual <= one.primal


def test_small_tolerances_are_float64(device, slow_float64, monkeypatch):
    monkeypatch.setattr(product_costs, "CPU_FEATURES", 1.0)
    X = np.random.default_rng(0).normal(size=(200, 4))
    for parameters in ({"tol": 1e-6}, {"gap_tol": 1e-6}):
        model = SVC(device="cuda", **parameters).fit(X, X[:, 0] > 0)
        assert model._models_[0].training_problem()[0].matrix.sums is FeatureSums.DOUBLE


def test_the_quickest_products(monkeypatch):
    """By the rates of an H200 and of a card for games, beside two and many cores of a CPU."""

    def choice(speed, width, threads, in_host_memory=True, tolerance=1e-3, kernel=KERNELS["sum"]):
        monkeypatch.setattr(DeviceSpeed, "of", classmethod(lambda cls, number: speed))
        return quickest_products(0, kernel, width, threads, in_host_memory, tolerance)

    for width in (1, 54, 784):
        assert choice(H200, width, 2) is FeatureSums.PRODUCTS
        assert choice(H200, width, 64) is FeatureSums.PRODUCTS
    for width in (1, 54, 784):
        assert choice(GEFORCE, width, 2) is FeatureSums.SPLIT
        assert choice(H200, width, 2, tolerance=1e-6) is FeatureSums.DOUBLE
    assert choice(GEFORCE, 54, 2, kernel=ChiSquared(1.0), in_host_memory=False) is FeatureSums.PRODUCTS
    assert choice(GEFORCE, 54, 2, tolerance=1e-6, in_host_memory=False) is FeatureSums.DOUBLE
    assert H200.seconds(FeatureSums.PRODUCTS, 54) < H200.seconds(FeatureSums.PRODUCTS, 54, has_products=False)
    small = DeviceSpeed(GEFORCE.single / 30, 64)
    assert choice(small, 54, 16) is None
    assert choice(small, 54, 16, in_host_memory=False) is FeatureSums.SPLIT


def test_the_speed_of_a_gpu(device):
    speed = DeviceSpeed.of(0)
    assert speed.single > 1e12
    assert speed.ratio in (2, 32, 64)
