"""Samples in GPU memory: methods of fitted estimators take them and return arrays of their library on their device."""

import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from maxmargin import LSSVC, SVC, SVDD, SVR, LinearSVC, NuSVC, OneClassSVM
from maxmargin.cuda.device import DeviceError, is_available
from maxmargin.kernels import Gaussian, Polynomial
from reference import cuda_twin


def samples(n=300):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + 0.3 * random.normal(size=n)


@pytest.fixture(params=["twin", pytest.param("card", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """Return the module of arrays on the device."""
    if request.param == "twin":
        return cuda_twin.install(monkeypatch)
    if not is_available():
        pytest.skip("needs an NVIDIA GPU and CuPy")
    import cupy

    return cupy


MODELS = [
    SVC(),
    SVC(kernel="poly", degree=2, coef0=1.0),
    SVC(kernel=Gaussian(0.1) * Polynomial(degree=1, coef0=1.0) + 0.5 * Gaussian(1.0)),
    SVC(multi_class="ovr"),
    NuSVC(nu=0.3, decision_function_shape="ovo"),
    SVC(probability=True),
    SVR(),
    SVR(noise=True),
    OneClassSVM(nu=0.2, probability=True),
    SVDD(nu=0.2),
]
METHODS = ["predict", "decision_function", "predict_proba", "predict_log_proba", "score_samples", "predict_interval"]


def fitted(model, X, y):
    """Return a copy trained on the CPU."""
    if isinstance(model, SVC | NuSVC):
        y = np.digitize(y, [-0.5, 0.5])
    return type(model)(**model.get_params()).fit(X, y)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results_follow_the_samples(device, model, dtype):
    X, y = samples()
    X = X.astype(dtype)
    model = fitted(model, X, y)
    used = [name for name in METHODS if hasattr(model, name)]
    expected = {name: getattr(model, name)(X) for name in used}
    model.set_params(device="cuda")
    assert "predict" in used
    for name in used:
        found = getattr(model, name)(device.asarray(X))
        assert type(found) is device.ndarray
        np.testing.assert_allclose(found.get(), expected[name], atol=1e-10, err_msg=name)
        np.testing.assert_allclose(getattr(model, name)(X), expected[name], atol=1e-10, err_msg=name)


def test_labels_that_are_text(device):
    X, y = samples()
    model = SVC(device="auto").fit(X, np.where(y > 0, "yes", "no"))
    found = model.predict(device.asarray(X))  # "auto": where the samples are
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, model.predict(X))


@pytest.mark.parametrize("model", [*MODELS, SVC(kernel="laplacian")], ids=repr)
def test_another_than_the_first_gpu(model, monkeypatch):
    """Operations on arrays of the second GPU run while it is the current one, although the caller uses the first."""
    twin = cuda_twin.install_backend(monkeypatch)
    X, y = samples()
    model = fitted(model, X, y)
    used = [name for name in METHODS if hasattr(model, name)]
    expected = {name: getattr(model, name)(X) for name in used}
    monkeypatch.setattr(cuda_twin.Device, "home", 1)
    model.set_params(device="cuda:1")
    for name in used:
        found = getattr(model, name)(twin.asarray(X))
        np.testing.assert_allclose(found.get(), expected[name], atol=1e-10, err_msg=name)
        np.testing.assert_allclose(getattr(model, name)(X), expected[name], atol=1e-10, err_msg=name)
    certificates = fitted(model, X, y).certificate_
    for certificate in certificates if isinstance(certificates, list) else [certificates]:
        assert certificate.violation <= 1e-3
    with pytest.raises(RuntimeError, match="GPU 0 is the current one"):
        found + found


def test_training_copies_the_samples(device):
    X, y = samples()
    labels = (y > 0).astype(int)
    there = SVC().fit(device.asarray(X), device.asarray(labels), sample_weight=device.asarray(np.ones(300)))
    np.testing.assert_array_equal(there.dual_coef_, SVC().fit(X, labels).dual_coef_)
    linear = LinearSVC().fit(device.asarray(X), device.asarray(labels))
    np.testing.assert_array_equal(linear.coef_, LinearSVC().fit(X, labels).coef_)


def test_estimators_without_a_device_copy_the_samples(device):
    X, y = samples()
    model = LSSVC().fit(X, (y > 0).astype(int))
    found = model.decision_function(device.asarray(X))
    assert type(found) is device.ndarray
    np.testing.assert_array_equal(found.get(), model.decision_function(X))


def test_errors(device):
    X, y = samples()
    labels = (y > 0).astype(int)
    model = SVC().fit(X, labels)
    with pytest.raises(DeviceError, match=r"GPU 0, but device='cpu': use set_params\(device='cuda:0'\)"):
        model.predict(device.asarray(X))
    model.set_params(device="cuda")
    for table, message in [
        (X[:, :3], "3 features, but SVC is expecting 5"),
        (X[0], "must be a table"),
        (np.where(X > 2, np.nan, X), "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict(device.asarray(table))
    on_host = SVC().fit(X, labels)
    for table in (X[:0], X[:, :0], X + 1j):
        with pytest.raises(ValueError, match=r"0 (sample|feature)\(s\)|Complex data not supported") as here:
            on_host.predict(table)
        with pytest.raises(ValueError, match=r"0 (sample|feature)\(s\)|Complex data not supported") as there:
            model.predict(device.asarray(table))
        assert str(there.value) == str(here.value).partition("\n")[0]
    histograms = SVC(kernel="chi_squared").fit(np.abs(X), labels).set_params(device="cuda")
    with pytest.raises(ValueError, match="at least 0"):
        histograms.predict(device.asarray(X))
    given = SVC(kernel="precomputed").fit(X @ X.T, labels).set_params(device="cuda")
    with pytest.raises(TypeError, match="must be in host memory"):
        given.predict(device.asarray(X @ X.T))


def test_a_library_without_a_namespace(monkeypatch):
    """Like torch: arrays that export DLPack, of a package with `from_dlpack`."""
    twin = cuda_twin.install(monkeypatch)
    package = ModuleType("package_like_torch")

    class Tensor:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return 2, 0

        def get(self):
            return self.array.get()

    Tensor.__module__ = "package_like_torch.tensors"
    package.from_dlpack = Tensor
    monkeypatch.setitem(sys.modules, "package_like_torch", package)
    X, y = samples()
    model = SVR().fit(X, y).set_params(device="cuda")
    found = model.predict(Tensor(twin.asarray(X)))
    assert type(found) is Tensor
    np.testing.assert_allclose(found.array.get(), model.predict(X), atol=1e-12)


@pytest.mark.gpu
def test_torch():
    torch = pytest.importorskip("torch")
    X, y = samples()
    model = SVC().fit(X, (y > 0).astype(int)).set_params(device="cuda")
    there = torch.asarray(X, device="cuda")
    found = model.decision_function(there)
    assert found.device == there.device
    np.testing.assert_allclose(found.cpu().numpy(), model.decision_function(X), atol=1e-10)
    assert model.predict(there).device == there.device


ARRAY_API = """
import array_api_strict, numpy, pyarrow, sklearn
from maxmargin import SVC, LinearSVC
random = numpy.random.default_rng(0)
X = random.normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)
expected = SVC().fit(X, y).decision_function(X)
xp = array_api_strict
with sklearn.config_context(array_api_dispatch=True):
    model = SVC().fit(xp.asarray(X), xp.asarray(y))
    found = model.decision_function(xp.asarray(X))
    labels = model.predict(xp.asarray(X))
    assert type(model.decision_function(X)) is numpy.ndarray
    words = SVC().fit(X, pyarrow.array(["no", "yes"] * 30))  # exports DLPack, but is no array of numbers
    assert type(words.predict(xp.asarray(X))) is numpy.ndarray
assert type(found) is type(labels) is type(xp.asarray(X)), (type(found), type(labels))
assert (numpy.asarray(found) == expected).all()
"""


def test_array_api_dispatch_of_scikit_learn():
    """Samples in host memory of another library, where scikit-learn is told to follow it."""
    pytest.importorskip("array_api_strict")
    pytest.importorskip("pyarrow")
    done = subprocess.run(
        [sys.executable, "-c", ARRAY_API],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
