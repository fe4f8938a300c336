"""Training with `device="cuda"`, on a twin of the GPU in NumPy and on the card: composed kernels, data on the host."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, SVR, NuSVC, OneClassSVM
from maxmargin.cuda import block_values, sparse_values
from maxmargin.cuda.device import DeviceError
from maxmargin.kernels import FunctionKernel, Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.kernels.split_sums import FeatureSums
from maxmargin.matrices import KernelMatrix
from maxmargin.solvers import StoppingRule
from maxmargin.training.fit_context import FitContext, SolverOptions
from maxmargin.training.pipeline import Session

pytestmark = pytest.mark.usefixtures("device")

KERNELS = {
    "gaussian": Gaussian(0.2),
    "sum": 0.5 * Gaussian(0.1) + Linear(),
    "product": Gaussian(0.1) * Polynomial(gamma=0.2, coef0=1.0, degree=2),
    "polynomial": Polynomial(gamma=0.2, coef0=1.0, degree=3),
    "nested": (Laplacian(0.1) + 2.0 * Gaussian(0.1)) * (0.1 * Linear() + Gaussian(np.linspace(0.0, 0.3, 6))),
}


#: Of which values are compared, not optima: the sigmoid kernel is indefinite, and its problems have several.
KERNELS_WITH_VALUES = KERNELS | {"sigmoid": Sigmoid(gamma=0.02, coef0=-0.1) + Linear()}


def samples(n=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 6))
    return X, X[:, 0] * X[:, 1] + 0.3 * random.normal(size=n)


def assert_same_optimum(on_gpu, on_cpu):
    found, expected = on_gpu.certificate_, on_cpu.certificate_
    assert on_gpu.device_ == "cuda"
    assert found.violation <= 1e-3
    assert abs(found.dual - expected.dual) <= found.gap + expected.gap + 1e-9 * abs(expected.dual)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("C", [1e-6, 1.0, 1e4])
def test_optimum_of_the_cpu(name, C):
    X, y = samples()
    labels = (y > 0).astype(int)
    on_cpu, on_gpu = SVC(kernel=KERNELS[name], C=C).fit(X, labels), SVC(kernel=KERNELS[name], C=C, device="cuda")
    on_gpu.fit(X, labels)
    assert_same_optimum(on_gpu, on_cpu)
    expected = on_gpu.set_params(device="cpu").decision_function(X)
    found = on_gpu.set_params(device="cuda").decision_function(X)
    np.testing.assert_allclose(found, expected, atol=1e-10 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("name", ["sum", "product"])
@pytest.mark.parametrize("model", [SVR(C=2.0), OneClassSVM(nu=0.2)], ids=repr)
def test_other_formulations(model, name):
    X, y = samples()
    parameters = model.get_params() | {"kernel": KERNELS[name]}
    on_cpu = type(model)(**parameters).fit(X, y)
    on_gpu = type(model)(**parameters | {"device": "cuda"}).fit(X, y)
    assert_same_optimum(on_gpu, on_cpu)


@pytest.mark.parametrize("model", [SVC(), SVC(multi_class="ovr"), NuSVC(nu=0.2)], ids=repr)
def test_several_classes(model):
    X, y = samples(300)
    labels = np.digitize(y, [-0.5, 0.0, 0.5])
    on_cpu = type(model)(**model.get_params()).fit(X, labels)
    on_gpu = type(model)(**model.get_params() | {"device": "cuda"}).fit(X, labels)
    for found, expected in zip(on_gpu.certificate_, on_cpu.certificate_, strict=True):
        assert found.violation <= 1e-3
        assert abs(found.dual - expected.dual) <= found.gap + expected.gap
    expected = on_gpu.set_params(device="cpu").decision_function(X)
    np.testing.assert_allclose(on_gpu.set_params(device="cuda").decision_function(X), expected, atol=1e-10)


def test_probabilities():
    X, y = samples(300)
    on_cpu, on_gpu = (SVC(probability=True, device=device).fit(X, y > 0) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(on_gpu.predict_proba(X), on_cpu.predict_proba(X), atol=0.02)


def hard_cases():
    X, y = samples()
    signs = np.where(y > 0, 1, -1)
    single = -np.ones(len(y), dtype=int)
    single[7] = 1
    return {
        "unscaled": (X * [1e4, 1, 1e-3, 1, 100, 1], signs),
        "duplicates with other labels": (np.vstack([X[:90], X[:90]]), np.concatenate([signs[:90], -signs[:90]])),
        "one sample in a class": (X, single),
        "one value": (np.ones((50, 3)), signs[:50]),
        "two samples": (X[:2], np.array([1, -1])),
    }


@pytest.mark.parametrize("name", hard_cases())
def test_hard_cases(name):
    X, labels = hard_cases()[name]
    kernel = Gaussian(0.1) * Gaussian(0.05) + 0.5 * Gaussian(1.0)
    assert_same_optimum(SVC(kernel=kernel, device="cuda").fit(X, labels), SVC(kernel=kernel).fit(X, labels))


@pytest.mark.parametrize("sums", FeatureSums)
@pytest.mark.parametrize("name", KERNELS)
def test_products_of_a_certificate(name, sums):
    X, _ = samples()
    vector = np.random.default_rng(1).normal(size=200) * (np.arange(200) % 3 > 0)
    on_cpu, on_gpu = KernelMatrix(KERNELS[name], Points(X)), KernelMatrix(KERNELS[name], Points(X), 1, "cuda", sums)
    error = on_gpu.product_error(vector).double
    assert (np.abs(on_gpu.matvec(vector) - on_cpu.matvec(vector)) <= 2 * error).all()
    part, rows = vector[50:150], np.arange(50, 150)
    np.testing.assert_allclose(on_gpu.take(rows).matvec(part), on_cpu.take(rows).matvec(part), atol=1e-11)


@pytest.fixture
def little_memory(monkeypatch):
    """Data stay in host memory; blocks have up to 64 rows of 6 features."""
    monkeypatch.setattr("maxmargin.cuda.samples.MAX_TABLE_FRACTION", 0.0)
    monkeypatch.setattr(block_values, "free_memory", lambda: int(64 * 8 * 6 / block_values.TABLE_FRACTION))
    monkeypatch.setattr(block_values, "MIN_TABLE_ROWS", 16)


def forms(X):
    sparse_X = np.where(np.abs(X) > 0.7, X, 0.0)
    return {"dense": X, "float32": X.astype(np.float32), "sparse": sparse.csr_matrix(sparse_X)}


@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("name", KERNELS)
def test_data_in_host_memory(little_memory, name, form):
    X, y = samples()
    X, labels = forms(X)[form], (y > 0).astype(int)
    on_cpu, on_gpu = SVC(kernel=KERNELS[name]).fit(X, labels), SVC(kernel=KERNELS[name], device="cuda").fit(X, labels)
    assert_same_optimum(on_gpu, on_cpu)
    np.testing.assert_allclose(on_gpu.decision_function(X), on_cpu.decision_function(X), atol=0.02)


def test_problems_at_a_time(monkeypatch, little_memory):
    """One where samples are copied in blocks, since each would take its part of the same free memory."""
    X = np.zeros((1001, 3))
    rule = SolverOptions("auto", StoppingRule())
    context = FitContext(Gaussian(0.1), rule, None, 2, Session(), "cuda")
    assert context.divide_threads(X, 45) == (1, 2)
    assert context.divide_threads(sparse.csr_matrix(X), 45) == (1, 2)
    monkeypatch.setattr("maxmargin.cuda.samples.MAX_TABLE_FRACTION", 0.1)
    assert context.divide_threads(X, 45) == (8, 1)
    assert context.divide_threads(X, 3) == (3, 1)
    assert context.divide_threads(X, 1) == (1, 2)


@pytest.mark.parametrize("model", [SVC(n_jobs=2), SVC(multi_class="ovr", n_jobs=2)], ids=repr)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_several_classes_in_host_memory(little_memory, monkeypatch, model, form):
    monkeypatch.setattr("maxmargin.training.fit_context.MAX_SINGLE_THREAD_ROWS", 100)
    X, y = samples(300)
    X, labels = forms(X)[form], np.digitize(y, [-0.5, 0.0, 0.5])
    on_cpu = type(model)(**model.get_params()).fit(X, labels)
    on_gpu = type(model)(**model.get_params() | {"device": "cuda"}).fit(X, labels)
    for found, expected in zip(on_gpu.certificate_, on_cpu.certificate_, strict=True):
        assert found.violation <= 1e-3
        assert abs(found.dual - expected.dual) <= found.gap + expected.gap


@pytest.mark.parametrize("model", [SVR(C=2.0), OneClassSVM(nu=0.2), SVC(C=1e4), SVC(C=1e-6)], ids=repr)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_other_machines_on_data_in_host_memory(little_memory, model, form):
    X, y = samples()
    X = forms(X)[form]
    target = (y > 0).astype(int) if isinstance(model, SVC) else y
    on_cpu = type(model)(**model.get_params()).fit(X, target)
    assert_same_optimum(type(model)(**model.get_params() | {"device": "cuda"}).fit(X, target), on_cpu)


@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("name", KERNELS_WITH_VALUES)
def test_values_of_blocks(little_memory, name, form, device):
    X, _ = samples()
    points, kernel = Points(forms(X)[form]), KERNELS_WITH_VALUES[name]
    found = block_values.values_of_points(kernel, points, 0)
    assert isinstance(found, block_values.BlockValues) == (form != "sparse")
    random = np.random.default_rng(0)
    rows, columns, weights = random.permutation(200)[:130], random.permutation(200)[:90], random.normal(size=90)
    exact = kernel.evaluate(points.take(rows), points.take(columns))
    at, to, factors = (device.asarray(array) for array in (rows.astype(np.int32), columns.astype(np.int32), weights))
    size = np.abs(exact).max()
    assert found.square(at, to).dtype == np.float32
    np.testing.assert_allclose(found.square(at, to).get(), exact, atol=1e-5 * size)
    np.testing.assert_allclose(found.precise_square(at, to).get(), exact, atol=1e-12 * size)
    products = found.product_parts(at, to, factors).sum(axis=0).get(), found.precise_product(at, to, factors).get()
    for product, accuracy in zip(products, (1e-5, 1e-12), strict=True):
        np.testing.assert_allclose(product, exact @ weights, atol=accuracy * size * np.abs(weights).sum())
    everything = found.precise_product(None, to, factors).get()
    np.testing.assert_allclose(everything, kernel.evaluate(points, points.take(columns)) @ weights, atol=1e-10 * size)


def test_sparse_products_in_blocks_of_columns(little_memory, device, monkeypatch):
    """Errors of float64 are within the bounds of the certificate."""
    X, _ = samples()
    points = Points(forms(1e3 + X)["sparse"])
    monkeypatch.setattr(sparse_values, "free_memory", lambda: 10**9)
    monkeypatch.setattr(sparse_values, "COLUMNS_FRACTION", 7.5 * 8 * 6 / 10**9)
    vector = np.random.default_rng(1).normal(size=200)
    on_cpu, on_gpu = (KernelMatrix(Gaussian(0.2), points, device=device) for device in ("cpu", "cuda"))
    error = on_gpu.product_error(vector).double
    difference = np.abs(on_gpu.matvec(vector) - on_cpu.matvec(vector))
    assert (difference <= 2 * error).all()
    assert difference.max() > 0


def test_sparse_data_beyond_the_memory(little_memory, monkeypatch):
    """Whose stored values do not fit either, in blocks from host memory; the answer is the same."""
    X, y = samples()
    points = Points(forms(X)["sparse"])
    monkeypatch.setattr(sparse_values, "free_memory", lambda: 95 * points.data.nnz)
    assert isinstance(block_values.values_of_points(Gaussian(0.2), points, 0), block_values.BlockValues)
    assert_same_optimum(SVC(device="cuda").fit(points.data, y > 0), SVC().fit(points.data, y > 0))
    monkeypatch.setattr(sparse_values, "free_memory", lambda: 97 * points.data.nnz)
    assert isinstance(block_values.values_of_points(Gaussian(0.2), points, 0), block_values.BlockValues)  # decided
    fresh = Points(points.data)
    assert isinstance(block_values.values_of_points(Gaussian(0.2), fresh, 0), sparse_values.SparseValues)


def test_formulas_share_sparse_samples(little_memory, device, monkeypatch):
    """One copy of the samples for each set of factors of features."""
    X, _ = samples()
    copies, original = [], sparse_values.SparseSamples._copied
    monkeypatch.setattr(
        sparse_values.SparseSamples, "_copied", lambda data: copies.append(data.shape) or original(data)
    )
    points, factors = Points(forms(X)["sparse"]), np.linspace(0.0, 0.3, 6)
    kernel = Gaussian(0.1) + Linear() * Polynomial(gamma=0.2, coef0=1.0, degree=2) + Gaussian(factors)
    values = block_values.values_of_points(kernel, points, 0)
    assert len(copies) == 2
    every = device.arange(200, dtype=np.int32)
    np.testing.assert_allclose(values.precise_square(every, None).get(), kernel(points.data), rtol=1e-11)


def test_too_many_features_for_a_block(little_memory):
    X, y = samples()
    wide = sparse.hstack([sparse.csr_matrix(X), sparse.csr_matrix((200, 1000))], format="csr")
    with pytest.raises(DeviceError, match="a block of rows with 1,006 features does not fit"):
        SVC(device="cuda").fit(wide.toarray(), y > 0)
    with pytest.raises(DeviceError, match="a block of rows with 1,006 features does not fit"):
        SVC(device="cuda", kernel="laplacian").fit(wide, y > 0)
    assert_same_optimum(SVC(device="cuda").fit(wide, y > 0), SVC().fit(wide, y > 0))


def test_kernels_of_a_user():
    X, y = samples()
    own = FunctionKernel(lambda X, Z: X @ Z.T)
    for kernel in (own, own + Gaussian(0.1)):
        with pytest.raises(DeviceError, match="their sums, products and multiples"):
            SVC(kernel=kernel, device="cuda").fit(X, y > 0)
        assert SVC(kernel=kernel, device="auto").fit(X, y > 0).device_ == "cpu"
