"""`--device` of `maxmargin train` and `predict`, on a twin of a GPU in NumPy and without a GPU."""

import json

import numpy as np
import pytest

from maxmargin import load
from maxmargin.cli.main import main
from maxmargin.cuda import device
from maxmargin.datasets import dump_libsvm
from reference import cuda_twin


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    X = np.where(random.random((150, 4)) < 0.6, random.normal(size=(150, 4)), 0.0)
    y = X[:, 0] * X[:, 1] + 0.1 * random.normal(size=150)
    dump_libsvm(X, (y > 0).astype(int), "classes.txt")
    dump_libsvm(X, np.digitize(y, [-0.1, 0.1]), "three.txt")
    dump_libsvm(X, y, "numbers.txt")
    return tmp_path


@pytest.fixture
def gpu(monkeypatch):
    cuda_twin.install_backend(monkeypatch)


@pytest.mark.parametrize("data", ["classes.txt", "three.txt", "numbers.txt"])
def test_train_and_predict(folder, gpu, data, capsys):
    assert main(["train", data, "on_cpu", "--json"]) == 0
    assert "device" not in json.loads(capsys.readouterr().out)
    assert main(["train", data, "on_gpu", "--device", "cuda", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device"] == "cuda"
    assert load("on_gpu").device == "cuda"
    for name in ("on_cpu", "on_gpu"):
        predictions = []
        for options in ([], ["--device", "cuda"], ["--device", "auto"]):
            assert main(["predict", data, name, "predicted.csv", *options]) == 0
            predictions.append(np.loadtxt("predicted.csv", skiprows=1))
        np.testing.assert_allclose(predictions[1], predictions[0], atol=1e-10)
        np.testing.assert_array_equal(predictions[2], predictions[0])  # few samples


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "classes.txt", "--device", "gpu"], "device must be 'cpu', 'cuda'"),
        (["train", "classes.txt", "--device", "cuda:1"], "GPU 1 does not exist; there are 1"),
        (["train", "classes.txt", "--device", "cuda", "--solver", "platt"], "solver='auto' or 'block'"),
        (["train", "classes.txt", "--device", "cuda", "-C", "inf"], "finite C"),
        (["train", "classes.txt", "--device", "cuda", "--estimator", "ls-svc"], "estimators that have it: svc, nu-svc"),
        (["predict", "classes.txt", "kernel", "--device", "cuda:x"], "device must be 'cpu', 'cuda'"),
        (["predict", "classes.txt", "linear", "--device", "cuda"], "LinearSVC predicts on the CPU"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_errors(folder, gpu, words, message, capsys):
    assert main(["train", "classes.txt", "kernel"]) == 0
    assert main(["train", "classes.txt", "linear", "--estimator", "linear-svc"]) == 0
    capsys.readouterr()
    assert main(words) != 0
    assert message in capsys.readouterr().err


def test_without_cupy(folder, capsys, monkeypatch):
    def missing():
        raise device.DeviceError("device='cuda' needs CuPy")

    monkeypatch.setattr(device, "cupy", missing)
    assert main(["train", "classes.txt", "model", "--device", "auto"]) == 0
    for words in (["train", "classes.txt"], ["predict", "classes.txt", "model"]):
        capsys.readouterr()
        assert main([*words, "--device", "cuda"]) == 1
        assert "needs CuPy" in capsys.readouterr().err
