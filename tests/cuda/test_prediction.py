"""Decision values on a GPU: on a twin in NumPy, everywhere, and on the card."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.cuda import block_values, kernel_values, prediction, samples, sparse_values
from maxmargin.cuda.device import is_available
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.kernels import ChiSquared, FunctionKernel, Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.models import ComputedKernelBlocks, KernelExpansions, OneVsOneVote
from maxmargin.models.device_blocks import DeviceKernelBlocks, in_host_memory
from reference import cuda_twin

KERNELS = {
    "gaussian": Gaussian(0.05),
    "gaussian of each feature": Gaussian(np.linspace(0.0, 0.1, 12)),
    "linear": Linear(),
    "polynomial": Polynomial(gamma=0.1, coef0=1.0, degree=3),
    "sigmoid": Sigmoid(gamma=0.02, coef0=-0.1),
    "laplacian": Laplacian(0.05),
    "chi squared": ChiSquared(0.1),
    "sum": 0.5 * Gaussian(0.1) + Linear(),
    "product": Gaussian(0.02) * Polynomial(gamma=0.1, coef0=1.0, degree=2),
    "nested": (Laplacian(0.1) + 2.0 * Gaussian(0.1)) * (Linear() + Gaussian(0.3)),
}


@pytest.fixture(params=["twin", pytest.param("card", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """Return a function that copies an array to the device."""
    if request.param == "twin":
        twin = cuda_twin.install(monkeypatch)
        return twin.asarray
    if not is_available():
        pytest.skip("needs an NVIDIA GPU and CuPy")
    import cupy

    return cupy.asarray


def data(kernel=None, n=260, S=90, seed=0):
    random = np.random.default_rng(seed)
    X, support = random.normal(size=(n, 12)), random.normal(size=(S, 12))
    return (np.abs(X), np.abs(support)) if isinstance(kernel, ChiSquared) else (X, support)


def vote(S, classes, seed=0):
    random = np.random.default_rng(seed)
    counts = np.full(classes, S // classes)
    pairs = classes * (classes - 1) // 2
    return OneVsOneVote(random.normal(size=(classes - 1, counts.sum())), random.normal(size=pairs), counts)


def both(kernel, X, support):
    """Return the blocks of the device and of the CPU."""
    on_host = X if isinstance(X, Points) else Points(X)
    return (
        DeviceKernelBlocks(kernel, on_host, Points(support), "cuda"),
        ComputedKernelBlocks(kernel, on_host, Points(support)),
    )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("functions", [1, 3, 6])
@pytest.mark.parametrize("single", [True, False])
def test_values_of_the_cpu(device, name, functions, single, monkeypatch):
    monkeypatch.setattr(prediction, "MIN_SINGLE_WORK", 0 if single else 10**12)
    kernel = KERNELS[name]
    X, support = data(kernel)
    random = np.random.default_rng(1)
    model = KernelExpansions(random.normal(size=(functions, len(support))), random.normal(size=functions))
    on_device, on_cpu = both(kernel, X, support)
    found, expected = model.decision_values(on_device, 1).get(), model.decision_values(on_cpu, 1)
    spread = np.sqrt(((expected - model.offsets) ** 2).mean(axis=0)).max()
    np.testing.assert_allclose(found, expected, atol=(prediction.ACCURACY if single else 1e-12) * spread)
    assert (np.sign(found) == np.sign(expected)).all()
    here = DeviceKernelBlocks(kernel, Points.wrap(DeviceTable(device(X), 0)), Points(support), "cuda")
    np.testing.assert_array_equal(model.decision_values(here, 1).get(), found)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_votes_and_scores(device, classes, monkeypatch):
    monkeypatch.setattr(prediction, "MIN_SINGLE_WORK", 0)
    monkeypatch.setattr("maxmargin.models.device_blocks.DECISIONS_AT_A_TIME", 500)
    kernel = Gaussian(0.1)
    model, (X, support) = vote(84, classes), data(S=84)
    on_device, on_cpu = both(kernel, X, support)
    np.testing.assert_allclose(in_host_memory(model.scores_of(on_device, 1)), model.scores_of(on_cpu, 1), atol=1e-4)
    np.testing.assert_array_equal(in_host_memory(model.classes_of(on_device, 1)), model.classes_of(on_cpu, 1))


def test_blocks_of_samples_and_support_vectors(device, monkeypatch):
    """Parts of the samples and of the support vectors, where the memory is small; a class of one support vector."""
    monkeypatch.setattr(prediction, "MIN_SINGLE_WORK", 0)
    monkeypatch.setattr(block_values, "free_memory", lambda: int(40 * 8 * 12 / block_values.TABLE_FRACTION))
    kernel, (X, support) = Gaussian(0.1), data(S=93)
    random = np.random.default_rng(0)
    model = OneVsOneVote(random.normal(size=(2, 93)), random.normal(size=3), np.array([60, 1, 32]))
    sparse_X = sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0.0))
    for rows in (Points(X), Points(X).take(np.arange(259, -1, -3)), Points(sparse_X), Points(X.astype(np.float32))):
        for vectors in (support, sparse.csr_matrix(np.where(np.abs(support) > 1, support, 0.0))):
            on_device, on_cpu = both(kernel, rows, vectors)
            expected = model.decision_values(on_cpu, 1)
            np.testing.assert_allclose(model.decision_values(on_device, 1).get(), expected, atol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "gaussian of each feature", "sum", "product", "laplacian"])
@pytest.mark.parametrize("classes", [2, 4])
def test_very_sparse_samples(device, name, classes, monkeypatch):
    """Those of inner products and Euclidean distances are not expanded; others are."""
    monkeypatch.setattr(prediction, "MIN_SPARSE_WIDTH", 12)
    monkeypatch.setattr(prediction, "MIN_ZEROS", 2)
    monkeypatch.setattr(prediction, "STORED_PER_BLOCK", 100)
    copied, copy = [], sparse_values.SparseSamples._copied
    monkeypatch.setattr(sparse_values.SparseSamples, "_copied", lambda data: copied.append(data) or copy(data))
    expanded, original = [], samples._dense
    monkeypatch.setattr(samples, "_dense", lambda rows: expanded.append(rows.shape) or original(rows))
    kernel, model = KERNELS[name], vote(84, classes)
    X, support = (sparse.csr_matrix(np.where(np.abs(table) > 1.2, table, 0.0)) for table in data(S=84))
    on_device, on_cpu = both(kernel, Points(X), support)
    found, expected = model.decision_values(on_device, 1).get(), model.decision_values(on_cpu, 1)
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())
    assert bool(expanded) == (name == "laplacian")
    if name == "laplacian":
        assert not copied
        return
    blocks = [part for part in copied if part.shape[0] != 84]
    assert len(copied) - len(blocks) == 1  # the support vectors, once for all blocks and formulas
    assert sum(part.shape[0] for part in blocks) == 260
    assert len(blocks) > 1
    assert max(part.nnz for part in blocks) <= 100 + 12


@pytest.mark.parametrize("empty", [0, 1, 300])
def test_very_sparse_samples_without_values(device, empty, monkeypatch):
    """Rows of zeros, at the end or alone; support vectors that do not fit are expanded."""
    random = np.random.default_rng(0)
    X = sparse.random(40, 5000, 0.002, format="csr", random_state=random)
    X = sparse.vstack([X[: 40 if empty != 300 else 0], sparse.csr_matrix((empty, 5000))], format="csr")
    support = sparse.random(30, 5000, 0.002, format="csr", random_state=random)
    monkeypatch.setattr(prediction, "STORED_PER_BLOCK", 50)
    model = KernelExpansions(random.normal(size=(2, 30)), random.normal(size=2))
    on_device, on_cpu = both(Gaussian(0.5), Points(X), support)
    expected = model.decision_values(on_cpu, 1)
    np.testing.assert_allclose(model.decision_values(on_device, 1).get(), expected, atol=1e-12)
    monkeypatch.setattr(sparse_values, "MAX_STORED_FRACTION", 0.0)
    monkeypatch.setattr(sparse_values.SparseSamples, "_copied", None)
    on_device, _ = both(Gaussian(0.5), Points(X), support)
    np.testing.assert_allclose(model.decision_values(on_device, 1).get(), expected, atol=1e-12)


@pytest.mark.gpu
def test_many_values_on_the_card():
    """Enough for single precision, in one block and without."""
    if not is_available():
        pytest.skip("needs an NVIDIA GPU and CuPy")
    import cupy

    X, support = data(n=300_000, S=20_000)
    for functions in (1, 3, 10):
        random = np.random.default_rng(functions)
        model = KernelExpansions(random.normal(size=(functions, 20_000)), random.normal(size=functions))
        there = Points.wrap(DeviceTable(cupy.asarray(X), 0))
        here = DeviceKernelBlocks(Gaussian(0.05), there, Points(support), "cuda")
        some = np.arange(0, 300_000, 1000)
        expected = model.decision_values(both(Gaussian(0.05), X[some], support)[1], 2)
        found = model.decision_values(here, 1).get()[some]
        spread = np.sqrt(((expected - model.offsets) ** 2).mean(axis=0)).max()
        np.testing.assert_allclose(found, expected, atol=prediction.ACCURACY * spread)
        assert (np.sign(found) == np.sign(expected)).all()


def count_precise_rows(monkeypatch):
    """Return a list of the numbers of rows whose sums are computed in float64."""
    rows, original = [], prediction._Block._precise_sums
    monkeypatch.setattr(
        prediction._Block, "_precise_sums", lambda self, chosen: rows.append(len(chosen)) or original(self, chosen)
    )
    return rows


def test_single_precision_is_checked(device, monkeypatch):
    """Coefficients that cancel lose the digits of single precision: then float64 computes all rows."""
    monkeypatch.setattr(prediction, "MIN_SINGLE_WORK", 0)
    rows = count_precise_rows(monkeypatch)
    X, support = data(n=1000)
    good = KernelExpansions(np.random.default_rng(0).normal(size=(1, 90)), np.zeros(1))
    on_device, on_cpu = both(Gaussian(0.1), X, support)
    good.decision_values(on_device, 1)
    assert len(rows) == 2  # the audited ones, and those near 0
    assert rows[1] < 100
    rows.clear()
    near = np.vstack([support, support + 1e-7])
    weights = 1e6 * good.coefficients
    cancelling = KernelExpansions(np.hstack([weights, -weights]), np.zeros(1))
    on_device, on_cpu = both(Gaussian(0.1), X, near)
    found, expected = cancelling.decision_values(on_device, 1).get(), cancelling.decision_values(on_cpu, 1)
    assert rows[-1] == 1000
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def test_signs_are_those_of_float64(device, monkeypatch):
    """Rows on the boundary but for the last digits."""
    monkeypatch.setattr(prediction, "MIN_SINGLE_WORK", 0)
    X, support = data(n=500)
    model = KernelExpansions(np.random.default_rng(0).normal(size=(1, 90)), np.zeros(1))
    on_device, on_cpu = both(Gaussian(0.1), X, support)
    expected = model.decision_values(on_cpu, 1)[:, 0]
    for k in range(0, 500, 50):
        at = KernelExpansions(model.coefficients, np.array([-expected[k] * (1 + 1e-9)]))
        found = at.decision_values(on_device, 1).get()[:, 0]
        np.testing.assert_array_equal(found > 0, at.decision_values(on_cpu, 1)[:, 0] > 0)


def test_extreme_features_are_computed_in_float64(device, monkeypatch):
    monkeypatch.setattr(prediction, "MIN_SINGLE_WORK", 0)
    X, support = (1e150 * table for table in data())
    model = KernelExpansions(np.ones((1, 90)), np.zeros(1))
    on_device, on_cpu = both(Linear(), X, support)
    np.testing.assert_allclose(model.decision_values(on_device, 1).get(), model.decision_values(on_cpu, 1), rtol=1e-9)


def test_no_support_vectors(device):
    X, _ = data()
    model = KernelExpansions(np.empty((2, 0)), np.array([0.5, -1.0]))
    blocks = DeviceKernelBlocks(Gaussian(0.1), Points(X), Points(np.empty((0, 12))), "cuda")
    np.testing.assert_array_equal(model.decision_values(blocks, 1).get(), np.tile([0.5, -1.0], (260, 1)))
    wide = [Points(sparse.csr_matrix((rows, 5000))) for rows in (260, 0)]
    blocks = DeviceKernelBlocks(Gaussian(0.1), *wide, "cuda")
    np.testing.assert_array_equal(model.decision_values(blocks, 1).get(), np.tile([0.5, -1.0], (260, 1)))


def test_supported_kernels():
    assert all(map(kernel_values.is_supported, KERNELS.values()))
    own = FunctionKernel(lambda X, Z: X @ Z.T)
    assert not any(map(kernel_values.is_supported, [None, own, Gaussian(1.0) + own, own * Linear(), 2.0 * own]))
