"""Linear problems whose products with the features are computed on a GPU: those of KernelApproximationSVC."""

import numpy as np
import pytest

from maxmargin import SVC, KernelApproximationSVC
from maxmargin.cuda.device import is_available
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.double_double import DoubleDouble
from maxmargin.kernels import Points
from maxmargin.matrices import features as features_module
from maxmargin.matrices.features import Features
from reference import cuda_twin


@pytest.fixture(params=["twin", pytest.param("card", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """Return the module of arrays on the device; small problems are solved there, too."""
    monkeypatch.setattr("maxmargin.machines.devices.MIN_VALUES_ON_DEVICE", 0)
    if request.param == "twin":
        return cuda_twin.install_backend(monkeypatch)
    if not is_available():
        pytest.skip("needs an NVIDIA GPU and CuPy")
    import cupy

    return cupy


def data(n=600):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + 0.3 * random.normal(size=n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("subset", [False, True])
def test_products(device, monkeypatch, dtype, subset):
    """Those of the CPU, within the bounds on their errors, in blocks of a few rows."""
    monkeypatch.setattr("maxmargin.cuda.device_table.CONVERTED_VALUES", 1000)
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 30)).astype(dtype) * 10.0 ** random.integers(-3, 3, 30)
    X = X.astype(dtype)
    rows = random.permutation(400)[:170] if subset else np.arange(400)
    table = DeviceTable(device.asarray(X), 0)
    there, here = (Features(Points.wrap(held).take(rows), 0.7) for held in (table, X))
    assert (there.size, there.width, there.stored) == (here.size, here.width, here.stored)
    weights, few = random.normal(size=31), random.normal(size=len(rows)) * (np.arange(len(rows)) % 5 == 0)
    dual = random.normal(size=len(rows))
    exact = here.extended_decisions(DoubleDouble.of(weights))
    difference = np.abs(there.decisions(weights) - exact.high - exact.low)
    assert (difference <= 2 * there.decisions_error(weights).double).all()
    for vector in (few, dual, np.zeros(len(rows))):
        exact = here.extended_weights(DoubleDouble.of(vector))
        difference = there.weights(vector) - exact.high - exact.low
        assert np.linalg.norm(difference) <= 2 * there.weights_error(vector).double[0] + 1e-300
    np.testing.assert_allclose(there.squared_norms(), here.squared_norms(), rtol=1e-13)
    for origin in (None, random.normal(size=30)):
        found, expected = there.moments(np.abs(few), origin), here.moments(np.abs(few), origin)
        assert found[0] == expected[0]
        for one, other in zip(found[1:], expected[1:], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-11 * np.abs(other).max())
    assert table._host is None


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_same_optimum(device, monkeypatch, loss, C, classes):
    """Passes over the features are on the device."""
    passes, original = [], DeviceTable.decisions
    monkeypatch.setattr(
        DeviceTable, "decisions", lambda self, *given: passes.append(self.shape) or original(self, *given)
    )
    X, y = data()
    labels = np.digitize(y, [0.0] if classes == 2 else [-0.5, 0.5])
    options = {"loss": loss, "C": C, "n_components": 40, "random_state": 0, "tol": 1e-4}
    found, expected = (KernelApproximationSVC(device=name, **options).fit(X, labels) for name in ("cuda", "cpu"))
    assert len(passes) > 2
    assert {rows for rows, _ in passes} == {600}
    for one, other in zip(*(np.atleast_1d(model.certificate_) for model in (found, expected)), strict=True):
        assert one.relative_gap <= 1e-4
        # The features differ by rounding, in float32.
        assert abs(one.primal - other.primal) <= 2e-3 * abs(other.primal)
    values, by_cpu = (model.decision_function(X) for model in (found, expected))
    np.testing.assert_allclose(values, by_cpu, atol=0.05 * np.abs(by_cpu).max())


def test_few_features_stay_on_the_cpu(device, monkeypatch):
    monkeypatch.setattr("maxmargin.machines.devices.MIN_VALUES_ON_DEVICE", 600 * 40 + 1)
    monkeypatch.setattr(DeviceTable, "copy_of", None)
    X, y = data()
    model = KernelApproximationSVC(device="cuda", n_components=40, random_state=0).fit(X, y > 0)
    assert model.score(X, y > 0) > 0.7


def test_features_that_do_not_fit_stay_on_the_cpu(device, monkeypatch):
    monkeypatch.setattr("maxmargin.cuda.samples.MAX_TABLE_FRACTION", 0.0)
    monkeypatch.setattr(DeviceTable, "copy_of", None)
    X, y = data()
    model = KernelApproximationSVC(device="cuda", n_components=40, random_state=0).fit(X, y > 0)
    assert model.score(X, y > 0) > 0.7


@pytest.mark.parametrize(("ratio", "there"), [(2, True), (32, False), (64, False)])
def test_features_stay_on_the_cpu_where_float64_is_slow(monkeypatch, ratio, there):
    cuda_twin.install_backend(monkeypatch)
    monkeypatch.setattr("maxmargin.machines.devices.MIN_VALUES_ON_DEVICE", 0)
    monkeypatch.setattr(cuda_twin.Runtime, "attributes", cuda_twin.Runtime.attributes | {87: ratio})
    copies, copy_of = [], DeviceTable.copy_of
    monkeypatch.setattr(DeviceTable, "copy_of", lambda *given: copies.append(given[0].shape) or copy_of(*given))
    X, y = data()
    model = KernelApproximationSVC(device="cuda", n_components=40, random_state=0).fit(X, y > 0)
    assert model.score(X, y > 0) > 0.7
    assert model.device_ == "cuda"  # which computes the features
    assert copies == ([(600, 40)] if there else [])


def test_certificate_of_the_linear_kernel(device, monkeypatch):
    """Two passes over samples that were given in GPU memory, without a copy in host memory."""
    X, y = data()
    monkeypatch.setattr(features_module._native, "row_decisions", None)
    model = SVC(kernel="linear", device="cuda").fit(device.asarray(X), y > 0)
    assert model.certificate_.violation <= 1e-3
    assert model._models_[0].training_problem()[0].matrix.points.table._host is None


@pytest.mark.parametrize(
    "options",
    [
        {"probability": True},
        {"certify": "exact"},
        {"certify": "exact", "polish": True},
        {"class_weight": "balanced"},
        {"max_seconds": 60.0, "landmarks": "kmeans"},
    ],
    ids=str,
)
def test_other_parameters(device, options):
    X, y = data()
    given = {"n_components": 40, "random_state": 0} | options
    found, expected = (KernelApproximationSVC(device=name, **given).fit(X, y > 0) for name in ("cuda", "cpu"))
    assert abs(found.score(X, y > 0) - expected.score(X, y > 0)) <= 0.02
    if "certify" in options:
        one, other = found.exact_certificate_, expected.exact_certificate_
        assert one.dual <= other.primal
        assert other.dual <= one.primal
    if "probability" in options:
        np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=0.05)


def test_resumed_from_a_checkpoint(device, tmp_path):
    X, y = data()
    given = {"n_components": 40, "random_state": 0, "checkpoint": tmp_path / "fit", "checkpoint_seconds": 0.0}
    given["device"] = "cuda"
    stopped = KernelApproximationSVC(callback=lambda progress: True, **given)
    with pytest.warns(UserWarning, match="stopped"):
        stopped.fit(X, y > 0)
    assert (tmp_path / "fit").exists()
    found = KernelApproximationSVC(**given).fit(X, y > 0)
    assert found.certificate_.relative_gap <= 1e-3
