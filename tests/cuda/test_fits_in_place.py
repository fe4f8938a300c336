"""Fits of samples in GPU memory: they are used there, and only what the host needs is copied."""

import pickle
from copy import deepcopy

import numpy as np
import pytest

from maxmargin import LSSVC, SVC, SVDD, SVR, KernelApproximationSVC, NuSVC, NuSVR, OneClassSVM, QuantileSVR
from maxmargin.cuda import block_values
from maxmargin.cuda.device import DeviceError, is_available
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid
from maxmargin.machines.validation.checkpoints import identity_of
from maxmargin.matrices import KernelMatrix
from reference import cuda_twin


@pytest.fixture
def no_copy(monkeypatch):
    """Copying all samples to host memory fails; return the numbers of rows of smaller copies."""
    everything, rows, copied = DeviceTable.in_host_memory, DeviceTable.__getitem__, []

    def vectors_only(self):
        assert self.array.ndim == 1, "all samples are copied"
        return everything(self)

    def recorded(self, chosen):
        found = rows(self, chosen)
        copied.append(len(found))
        return found

    monkeypatch.setattr(DeviceTable, "in_host_memory", vectors_only)
    monkeypatch.setattr(DeviceTable, "__getitem__", recorded)
    return copied


def samples(n=300):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + 0.3 * random.normal(size=n)


def targets_of(model, y):
    if isinstance(model, SVC | NuSVC):
        return np.digitize(y, [-0.5, 0.5]) if model.degree == 2 else (y > 0).astype(int)
    return y


def certificates(model):
    found = model.certificate_
    return found if isinstance(found, list) else [found]


#: A degree of 2 marks those of several classes.
MODELS = [
    SVC(),
    SVC(C=1e-6),
    SVC(kernel="linear"),
    SVC(kernel="poly", coef0=1.0),
    SVC(kernel="laplacian"),
    SVC(kernel=0.5 * Gaussian(0.1) * Polynomial(gamma=0.2, degree=1, coef0=1.0) + Linear()),
    SVC(gamma=np.linspace(0.0, 0.4, 5)),
    SVC(loss="squared_hinge", class_weight={0: 2.0, 1: 0.5}),
    SVC(degree=2),
    SVC(degree=2, multi_class="ovr"),
    NuSVC(nu=0.2, degree=2),
    SVR(C=2.0),
    NuSVR(nu=0.3),
    QuantileSVR(quantile=0.3),
    OneClassSVM(nu=0.2),
    SVDD(nu=0.2),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_same_as_from_host_memory(device, no_copy, model, dtype):
    X, y = samples()
    X, y = X.astype(dtype), targets_of(model, y)
    parameters = model.get_params() | {"device": "cuda"}
    expected = type(model)(**parameters).fit(X, y)
    there = device.asarray(X)
    found = type(model)(**parameters).fit(there, device.asarray(y))
    assert found.device_ == "cuda"
    assert found.n_features_in_ == 5
    for one, other in zip(certificates(found), certificates(expected), strict=True):
        assert one.violation <= 1e-3
        assert abs(one.dual - other.dual) <= one.gap + other.gap + 1e-9 * abs(other.dual)
        assert one.gap >= -1e-9 * abs(one.dual)
    np.testing.assert_array_equal(found.support_vectors_, X[found.support_])
    method = "predict" if isinstance(found, SVR | NuSVR | QuantileSVR) else "decision_function"
    values, by_host = getattr(found, method)(there).get(), getattr(found, method)(X)
    np.testing.assert_allclose(values, by_host, atol=1e-10 * np.abs(by_host).max())
    np.testing.assert_allclose(values, getattr(expected, method)(X), atol=0.02 * np.abs(by_host).max())


def test_what_is_copied(device, no_copy, monkeypatch):
    """The support vectors of each fit, and rows of the checksum of the data."""
    monkeypatch.setattr("maxmargin.kernels.points.CHECKSUM_BYTES", 10_000)
    X, y = samples(3000)
    model = SVC(C=0.1, device="cuda").fit(device.asarray(X), y > 0)
    assert model.certificate_.violation <= 1e-3
    assert len(model.support_) in no_copy
    others = [count for count in no_copy if count != len(model.support_)]
    assert sum(others) < len(X)


def test_certificate_in_more_than_double_precision(device):
    """It is computed by the CPU, from a copy."""
    X, y = samples()
    model, other = (SVC(C=1e4, gamma=0.1, device="cuda").fit(data, y > 0) for data in (device.asarray(X), X))
    assert model.certificate_.violation <= 1e-3
    assert abs(model.certificate_.dual - other.certificate_.dual) <= model.certificate_.gap + other.certificate_.gap


def test_weights_and_warm_start(device, no_copy):
    X, y = samples()
    weights = np.where(np.arange(300) % 7, 1.0, 0.0)
    there, labels = device.asarray(X), (y > 0).astype(int)
    model = SVC(device="cuda", warm_start=True).fit(there, labels, sample_weight=device.asarray(weights))
    other = SVC(device="cuda").fit(X, labels, sample_weight=weights)
    assert abs(model.certificate_.dual - other.certificate_.dual) <= model.certificate_.gap + other.certificate_.gap
    assert not set(model.support_) & set(np.flatnonzero(weights == 0))
    steps = model.n_iter_.sum()
    assert model.fit(X=there, y=labels, sample_weight=weights).n_iter_.sum() < steps


@pytest.mark.parametrize("kind", ["integers", "columns first", "every second row"])
def test_other_arrays(device, no_copy, kind):
    X, y = samples()
    X = np.rint(8 * X).astype(np.int32) if kind == "integers" else X
    there, labels = device.asarray(X), y > 0
    if kind == "columns first":
        there = device.asarray(np.ascontiguousarray(X.T)).T
    if kind == "every second row":
        there, X, labels = there[::2], X[::2], labels[::2]
    found, expected = SVC(device="cuda").fit(there, labels), SVC(device="cuda").fit(X, labels)
    found_one, expected_one = found.certificate_, expected.certificate_
    assert abs(found_one.dual - expected_one.dual) <= found_one.gap + expected_one.gap
    np.testing.assert_array_equal(found.support_vectors_, X[found.support_])


@pytest.mark.parametrize("kind", ["integers", "columns first", "every second row", "float32 columns first"])
def test_the_array_that_is_kept_is_complete(monkeypatch, kind):
    """The test for finite values waits for the array that it reads; streams of the fit read the same one."""
    twin = cuda_twin.install_backend(monkeypatch)
    X = samples()[0]
    given = {
        "integers": np.rint(8 * X).astype(np.int32),
        "columns first": np.asfortranarray(X),
        "every second row": X[::2],
        "float32 columns first": np.asfortranarray(X.astype(np.float32)),
    }[kind]
    tested = []
    monkeypatch.setattr(twin, "isfinite", lambda array: tested.append(array) or np.isfinite(array), raising=False)
    there = given[:].view(cuda_twin.DeviceArray)
    found = DeviceTable(there, 0).check(None, "SVC").array
    assert [one is found for one in tested] == [True]
    assert found.flags.c_contiguous
    assert found.dtype == (np.float32 if "float32" in kind else np.float64)
    np.testing.assert_array_equal(found.get(), given)


def test_later_uses_copy_what_they_need(device):
    """Probabilities, noise and left-out values on the CPU; pickles have the support vectors only."""
    X, y = samples()
    there, labels = device.asarray(X), (y > 0).astype(int)
    model = SVC(probability=True, device="cuda").fit(there, labels)
    np.testing.assert_allclose(model.predict_proba(X), SVC(probability=True).fit(X, labels).predict_proba(X), atol=0.02)
    assert SVR(noise=True, device="cuda").fit(there, y).noise_scale_ > 0
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-12)
    plain = SVC(device="cuda").fit(there, labels)
    on_cpu = SVC().fit(X, labels)
    assert abs(plain.loo_error_ - on_cpu.loo_error_) <= 0.02


def test_data_changed_after_the_fit(device):
    X, y = samples()
    there = device.asarray(X)
    model = SVC(device="cuda").fit(there, y > 0)
    there[:] = 0.0
    with pytest.raises(RuntimeError, match="training data were changed"):
        _ = model.certificate_


def test_samples_whose_halves_do_not_fit(device, monkeypatch):
    monkeypatch.setattr("maxmargin.cuda.samples.MAX_HALVES_FRACTION_PER_BYTE", 0.0)
    monkeypatch.setattr(block_values, "free_memory", lambda: int(64 * 8 * 5 / block_values.TABLE_FRACTION))
    monkeypatch.setattr(block_values, "MIN_TABLE_ROWS", 16)
    X, y = samples()
    found, expected = SVC(device="cuda").fit(device.asarray(X), y > 0), SVC().fit(X, y > 0)
    assert abs(found.certificate_.dual - expected.certificate_.dual) <= expected.certificate_.gap + 0.01


def test_where_the_cpu_trains(device, monkeypatch):
    """device="cpu", few samples with "auto", and machines without a device get a copy in host memory."""
    X, y = samples()
    there, labels = device.asarray(X), (y > 0).astype(int)
    expected = SVC().fit(X, labels).dual_coef_
    for name in ("cpu", "auto"):
        model = SVC(device=name).fit(there, labels)
        assert model.device_ == "cpu"
        np.testing.assert_array_equal(model.dual_coef_, expected)
    np.testing.assert_array_equal(LSSVC().fit(there, labels).dual_coef_, LSSVC().fit(X, labels).dual_coef_)
    monkeypatch.setattr("maxmargin.machines.devices.MIN_SAMPLES_FOR_GPU", 100)
    assert SVC(device="auto").fit(there, labels).device_ == "cuda:0"
    assert SVC(device="auto", solver="pairwise").fit(there, labels).device_ == "cpu"
    assert SVC(device="auto", kernel=lambda X, Z: X @ Z.T).fit(there, labels).device_ == "cpu"


def test_errors(device):
    X, y = samples()
    labels = (y > 0).astype(int)
    model = SVC(device="cuda")
    for table, message in [
        (np.where(X > 2, np.nan, X), "NaN"),
        (X + 1j, "Complex data not supported"),
        (X[:0], r"0 sample\(s\)"),
        (X[:, :0], r"0 feature\(s\)"),
        (X[:200], "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(device.asarray(table), labels)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(device.asarray(X), np.where(y > 0, np.nan, y))
    with pytest.raises(ValueError, match="at least 0"):
        SVC(kernel="chi_squared", device="cuda").fit(device.asarray(X), labels)
    with pytest.raises(ValueError, match="overflows float64"):
        SVC(gamma=np.full(5, 1e300), device="cuda").fit(device.asarray(1e200 * X), labels)
    for kernel, given in (("precomputed", X @ X.T), (lambda X, Z: X @ Z.T, X)):
        with pytest.raises(DeviceError, match="computes the built-in kernels"):
            SVC(kernel=kernel, device="cuda").fit(device.asarray(given), labels)
    with pytest.raises(ValueError, match="solver='auto' or 'block'"):
        SVC(solver="pairwise", device="cuda").fit(device.asarray(X), labels)


@pytest.mark.parametrize("kernel", [lambda X, Z: X @ Z.T, "precomputed"], ids=["function", "precomputed"])
def test_auto_predicts_with_a_kernel_for_the_cpu(device, kernel):
    """From a copy in host memory, as it trained; the results are on the device."""
    X, y = samples()
    X, labels = X @ X.T if kernel == "precomputed" else X, (y > 0).astype(int)
    there = device.asarray(X)
    model, expected = SVC(device="auto", kernel=kernel).fit(there, labels), SVC(kernel=kernel).fit(X, labels)
    assert model.device_ == "cpu"
    for method in ("predict", "decision_function"):
        found = getattr(model, method)(there)
        assert isinstance(found, type(there))
        np.testing.assert_array_equal(found.get(), getattr(expected, method)(X))
    if kernel != "precomputed":
        with pytest.raises(DeviceError, match="computes the built-in kernels"):
            model.set_params(device="cuda").predict(there)
        one_class = OneClassSVM(nu=0.2, device="auto", kernel=kernel).fit(there)
        assert set(one_class.predict(there).get()) == {-1, 1}
        approximation = KernelApproximationSVC(kernel=kernel, n_components=20, random_state=0, device="auto")
        assert approximation.fit(there, labels).decision_function(there).get().shape == (300,)


@pytest.mark.parametrize("name", [3, None, "gpu", "cuda:"])
def test_names_that_are_none(device, name):
    """The message is that for samples in host memory, in a fit and in a prediction."""
    X, y = samples()
    labels, message = (y > 0).astype(int), rf"device must be 'cpu', .*, not {name!r}$"
    for table in (X, device.asarray(X)):
        with pytest.raises(ValueError, match=message):
            SVC(device=name).fit(table, labels)
        with pytest.raises(ValueError, match=message):
            SVC().fit(X, labels).set_params(device=name).predict(table)


def test_another_gpu(monkeypatch):
    twin = cuda_twin.install_backend(monkeypatch)
    X, y = samples()
    monkeypatch.setattr(cuda_twin.Device, "home", 1)
    there = twin.asarray(X)
    with pytest.raises(DeviceError, match=r"GPU 1, but device='cuda': use set_params\(device='cuda:1'\)"):
        SVC(device="cuda").fit(there, y > 0)
    model = SVC(device="cuda:1").fit(there, y > 0)
    assert model.device_ == "cuda:1"
    assert model.certificate_.violation <= 1e-3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.2),
        Gaussian(np.linspace(0.0, 0.3, 5)),
        Laplacian(0.2),
        ChiSquared(0.2),
        Linear(),
        Polynomial(gamma=0.2, coef0=1.0, degree=3),
        Sigmoid(gamma=0.02, coef0=-0.1),
        2.0 * Gaussian(0.1) * Linear() + Laplacian(np.linspace(0.1, 0.3, 5)),
    ],
    ids=repr,
)
def test_the_matrix_is_the_same(device, kernel, dtype):
    """Blocks of few and of many samples, diagonal, products, and bounds on rounding errors."""
    X = np.abs(samples()[0]).astype(dtype)
    table = DeviceTable(device.asarray(X), 0)
    there, here = (KernelMatrix(kernel, Points.wrap(data), device="cuda") for data in (table, X))
    some, vector = np.arange(5, 25), np.random.default_rng(1).normal(size=300)
    np.testing.assert_array_equal(there.block(some, some[:3]), here.block(some, some[:3]))
    np.testing.assert_array_equal(
        there.partial_product(some, some[:3], vector[:3]), here.partial_product(some, some[:3], vector[:3])
    )
    assert table._host is None
    assert (np.abs(there.diagonal() - here.diagonal()) <= 2 * here.diagonal_error()).all()
    for name in ("magnitudes", "diagonal_error"):
        np.testing.assert_allclose(getattr(there, name)(), getattr(here, name)(), rtol=1e-13)
    error = there.product_error(vector).double
    on_cpu = KernelMatrix(kernel, Points(X))
    assert (np.abs(there.matvec(vector) - on_cpu.matvec(vector)) <= 2 * error).all()
    assert (error <= 30 * np.maximum(on_cpu.product_error(vector).double, 1e-13)).all()
    assert table._host is None
    np.testing.assert_array_equal(there.rows(some), here.rows(some))
    assert table._host is not None
    assert there.checksum() == here.checksum()


def test_a_checkpoint_of_the_same_data(device):
    X, y = samples()
    of_device, of_host = (identity_of(SVC(), data, y, np.ones(300)) for data in (DeviceTable(device.asarray(X), 0), X))
    assert of_device == of_host


def test_gamma_scale(device):
    X, y = samples()
    X = 1e6 + X
    weights = np.random.default_rng(0).uniform(size=300)
    there = SVC(device="cuda").fit(device.asarray(X), y > 0, weights)
    assert there._gamma == pytest.approx(SVC().fit(X, y > 0, weights)._gamma, rel=1e-9)


@pytest.mark.gpu
def test_torch(no_copy):
    torch = pytest.importorskip("torch")
    if not is_available():
        pytest.skip("needs an NVIDIA GPU and CuPy")
    X, y = samples()
    labels = (y > 0).astype(int)
    there = torch.asarray(X, device="cuda")
    model = SVC(gamma=0.2, device="cuda").fit(there, torch.asarray(labels, device="cuda"))
    other = SVC(gamma=0.2, device="cuda").fit(X, labels)
    np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)
    assert model.predict(there).device == there.device


def test_copies_of_a_model(device):
    X, y = samples()
    model = SVC(device="cuda").fit(device.asarray(X), y > 0)
    np.testing.assert_array_equal(deepcopy(model).decision_function(X), model.decision_function(X))
