"""`KernelApproximationSVC(device="cuda")`: features of the CPU, on a twin of the GPU in NumPy and on the card."""

import numpy as np
import pytest
from scipy import sparse

import maxmargin.blocks
from maxmargin import KernelApproximationSVC, load, save
from maxmargin.cuda import landmarks
from maxmargin.cuda.device import DeviceError, is_available
from maxmargin.kernels import FunctionKernel, Gaussian, Laplacian, Linear, Points, Polynomial
from maxmargin.models import LandmarkFeatures
from reference import cuda_twin


@pytest.fixture(params=["twin", pytest.param("card", marks=pytest.mark.gpu)], autouse=True)
def device(request, monkeypatch):
    """Return the module of arrays on the device."""
    if request.param == "twin":
        return cuda_twin.install(monkeypatch)
    if not is_available():
        pytest.skip("needs an NVIDIA GPU and CuPy")
    import cupy

    return cupy


def samples(n=400):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + 0.1 * random.normal(size=n) > 0


KERNELS = [Gaussian(0.3), Linear(), Polynomial(degree=2, coef0=1.0), Laplacian(0.2) + Gaussian(1.0) * Linear()]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("form", ["float64", "float32", "sparse"])
def test_features_of_the_cpu(kernel, form, monkeypatch):
    monkeypatch.setattr(landmarks, "BLOCK_VALUES", 100 * 40)  # several blocks
    X, _ = samples()
    X = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)) if form == "sparse" else X.astype(form)
    on_cpu = LandmarkFeatures.of(kernel, Points(X[:40]))
    on_gpu = LandmarkFeatures(kernel, on_cpu.landmarks, on_cpu.factor, device="cuda")
    rows = np.random.default_rng(0).permutation(400)
    found, expected = on_gpu(Points(X).take(rows)), on_cpu(Points(X).take(rows))
    assert found.dtype == expected.dtype
    # Rounding errors of kernel values in float32 are those of the CPU.
    errors = 1e-6 * np.abs(kernel(X, X[:40])).max() * np.abs(on_cpu.factor).sum(axis=0).max()
    np.testing.assert_allclose(found, expected, atol=errors)


@pytest.mark.parametrize("classes", [2, 3])
def test_fit_and_predictions(classes, device, tmp_path):
    X, y = samples()
    y = y.astype(int) + (X[:, 2] > 1) if classes == 3 else y.astype(int)
    options = {"n_components": 60, "random_state": 0}
    on_cpu = KernelApproximationSVC(**options).fit(X, y)
    on_gpu = KernelApproximationSVC(**options, device="cuda").fit(X, y)
    assert (on_cpu.device_, on_gpu.device_) == ("cpu", "cuda")
    for certificate in [on_gpu.certificate_] if classes == 2 else on_gpu.certificate_:
        assert certificate.relative_gap <= 1e-3
    np.testing.assert_allclose(on_gpu.exact_primal_, on_cpu.exact_primal_, rtol=2e-3)
    expected = on_gpu.set_params(device="cpu").decision_function(X)
    on_gpu.set_params(device="cuda")
    np.testing.assert_allclose(on_gpu.decision_function(X), expected, atol=1e-9 * np.abs(expected).max())
    there = on_gpu.predict(device.asarray(X))
    assert type(there) is device.ndarray
    np.testing.assert_array_equal(there.get(), on_gpu.predict(X))
    save(on_gpu, tmp_path / "model")
    assert load(tmp_path / "model").device_ == "cuda"


def test_blocks_of_rows():
    X, y = samples()
    blocks = maxmargin.blocks.open(X, y.astype(int))
    model = KernelApproximationSVC(n_components=60, random_state=0, device="cuda").fit(blocks)
    assert model.device_ == "cuda"
    assert model.certificate_.relative_gap <= 1e-3


def test_unsupported_kernels():
    X, y = samples()
    own = FunctionKernel(lambda X, Z: X @ Z.T)
    with pytest.raises(DeviceError, match="their sums, products and multiples"):
        KernelApproximationSVC(kernel=own, device="cuda").fit(X, y)
    assert KernelApproximationSVC(kernel=own, device="auto", n_components=20).fit(X, y).device_ == "cpu"
