"""The parameter `device`, on computers with and without a GPU."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, SVR
from maxmargin.cuda import device
from maxmargin.cuda.device import DeviceError, is_available
from maxmargin.kernels import Gaussian
from maxmargin.machines.devices import choose_device

X = np.random.default_rng(0).normal(size=(40, 3))
y = (X[:, 0] > 0).astype(int)


def test_the_cpu_is_the_default_and_imports_nothing():
    code = "import sys, maxmargin; maxmargin.SVC().fit([[0.0], [1.0]], [0, 1]); assert 'cupy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert SVC().fit(X, y).device_ == "cpu"


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", None, 1])
def test_unknown_names(device):
    with pytest.raises(ValueError, match="device must be 'cpu', 'cuda'"):
        SVC(device=device).fit(X, y)


def test_few_samples_stay_on_the_cpu():
    assert SVR(device="auto").fit(X, X[:, 0]).device_ == "cpu"


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


@pytest.mark.usefixtures("no_gpu")
class TestWithoutCupy:
    def test_fit_says_what_to_install(self):
        with pytest.raises(DeviceError, match=r"pip install 'maxmargin\[cuda13\]'"):
            SVC(device="cuda").fit(X, y)

    def test_a_failed_fit_keeps_the_previous_model(self):
        model = SVC().fit(X, y)
        with pytest.raises(DeviceError):
            model.set_params(device="cuda").fit(X, y)
        assert model.device_ == "cpu"
        assert model.set_params(device="cpu").score(X, y) > 0.9

    def test_prediction_does_not_move_to_the_cpu(self):
        with pytest.raises(DeviceError, match="CuPy"):
            SVC().fit(X, y).set_params(device="cuda").predict(X)

    def test_auto(self):
        assert not is_available()
        assert choose_device("auto", Gaussian(1.0), np.empty((20_000, 1))) == "cpu"


@pytest.fixture
def with_a_gpu(monkeypatch):
    monkeypatch.setattr(device, "is_available", lambda: True)


@pytest.mark.usefixtures("with_a_gpu")
class TestAuto:
    def test_many_samples_go_to_the_gpu(self):
        assert choose_device("auto", Gaussian(1.0), np.empty((20_000, 1))) == "cuda"
        assert choose_device("auto", Gaussian(1.0), np.empty((2_000, 1))) == "cpu"

    def test_kernels_for_the_cpu(self):
        assert choose_device("auto", None, np.empty((20_000, 1))) == "cpu"

    def test_wide_sparse_samples_stay_on_the_cpu(self):
        assert choose_device("auto", Gaussian(1.0), sparse.csr_matrix((20_000, 100_000))) == "cpu"

    @pytest.mark.parametrize(
        "parameters",
        [
            {"C": np.inf},
            {"C": 1e20},
            {"solver": "pairwise"},
            {"selection": "maximum_gain"},
            {"multi_class": "crammer_singer"},
        ],
        ids=str,
    )
    def test_parameters_for_the_cpu(self, parameters):
        assert SVC()._trains_on_a_gpu()
        assert not SVC(**parameters)._trains_on_a_gpu()
