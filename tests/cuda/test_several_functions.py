"""Sums of kernel values for several functions at once: fused, on a twin of the GPU and on the card."""

import numpy as np
import pytest

from maxmargin import SVC, SVR
from maxmargin.cuda import kernel_values, prediction, products
from maxmargin.cuda.block_values import precise_values_of_points, values_of_points
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Points, Polynomial, Sigmoid

KERNELS = {
    "gaussian": Gaussian(0.05),
    "a gamma for each feature": Gaussian(np.linspace(0.0, 0.1, 37)),
    "linear": Linear(),
    "polynomial": Polynomial(gamma=0.1, coef0=1.0, degree=3),
    "sigmoid": Sigmoid(gamma=0.02, coef0=-0.1),
    "laplacian": Laplacian(0.05),
    "chi squared": ChiSquared(0.1),
    "composed": 0.5 * Gaussian(0.05) * Polynomial(gamma=0.1, coef0=1.0, degree=2) + Laplacian(0.05),
}


@pytest.mark.parametrize("functions", [1, 2, 9, 16, 17, 45])
@pytest.mark.parametrize("name", KERNELS)
def test_sums(device, name, functions):
    random = np.random.default_rng(0)
    kernel, X = KERNELS[name], np.abs(random.normal(size=(400, 37)))
    rows, columns = random.permutation(400)[:150], random.permutation(400)[:131]
    weights = random.normal(size=(131, functions))
    exact = kernel.evaluate(Points(X[rows]), Points(X[columns]))
    at, to = (device.asarray(index.astype(np.int32)) for index in (rows, columns))
    points, factors = Points(X), device.asarray(weights)
    most = np.abs(exact).max() * np.abs(weights).sum(axis=0).max()
    values = values_of_points(kernel, points, 0)
    found = values.several_products(at, to, factors)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.get(), exact @ weights, atol=2e-5 * most)
    np.testing.assert_array_equal(found.get(), values.several_products(at, to, factors).get())
    for c in range(0, functions, 8):
        alone = values.product_parts(at, to, device.asarray(np.ascontiguousarray(weights[:, c]))).sum(axis=0)
        np.testing.assert_allclose(found[:, c].get(), alone.get(), atol=1e-6 * most)
    precise = precise_values_of_points(kernel, points, 0)
    np.testing.assert_allclose(
        precise.precise_several_products(at, to, factors).get(), exact @ weights, atol=1e-13 * most
    )


@pytest.mark.parametrize(("rows", "columns"), [(5000, 3000), (1, 5000), (129, 1), (0, 7), (7, 0)])
def test_shapes(device, rows, columns):
    """Several tiles and parts of columns; none."""
    random = np.random.default_rng(0)
    X, weights = random.normal(size=(5000, 5)), random.normal(size=(columns, 10))
    at, to = (device.arange(count, dtype=np.int32) for count in (rows, columns))
    exact = Gaussian(0.2).evaluate(Points(X[:rows]), Points(X[:columns])) @ weights
    samples = values_of_points(Gaussian(0.2), Points(X), 0).samples
    found = products.several_products(samples, at, to, device.asarray(weights)).get()
    np.testing.assert_allclose(found, exact, atol=2e-3)
    precise = products.precise_several_products(samples, at, to, device.asarray(weights)).get()
    np.testing.assert_allclose(precise, exact, atol=1e-9)


def test_functions_at_a_time(device, monkeypatch):
    """As many as fit into the shared memory of a block: fewer on cards other than those for data centres."""
    random = np.random.default_rng(0)
    values = values_of_points(Gaussian(0.05), Points(random.normal(size=(300, 64))), 0)
    images = values_of_points(Gaussian(0.05), Points(random.integers(0, 256, (300, 64)).astype(float)), 0)
    every, weights = device.arange(300, dtype=np.int32), device.asarray(random.normal(size=(300, 20)))
    expected = values.several_products(every, every, weights).get()
    for room, of_halves, of_integers in [(232_448, 16, 16), (101_376, 5, 13), (49_152, 1, 2)]:
        monkeypatch.setattr(products, "_shared_memory", lambda number, room=room: room)
        assert products.functions_at_a_time(values.samples) == of_halves
        assert products.functions_at_a_time(images.samples) == of_integers
        np.testing.assert_allclose(values.several_products(every, every, weights).get(), expected, atol=1e-3)


def several_classes():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 6))
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2], np.linspace(-2.0, 2.0, 9))


MODELS = {
    "pairs": SVC(C=10.0, decision_function_shape="ovo"),
    "rest": SVC(C=10.0, multi_class="ovr"),
    "outputs": SVR(C=10.0),
}


@pytest.mark.parametrize("single", [True, False], ids=["single precision", "double"])
@pytest.mark.parametrize("name", MODELS)
def test_predictions(device, monkeypatch, name, single):
    """Nothing is stored: 45 pairs of ten classes, ten classes against the rest, three outputs."""

    def refuse(*_):
        raise AssertionError("values are stored")

    X, labels = several_classes()
    y = np.column_stack([X[:, 0], X[:, 1] ** 2, np.sin(X[:, 2])]) if name == "outputs" else labels
    model = MODELS[name].fit(X, y)
    method = model.predict if name == "outputs" else model.decision_function
    expected = method(X)
    monkeypatch.setattr(kernel_values, "product_by_blocks", refuse)
    monkeypatch.setattr(prediction, "MIN_SINGLE_WORK", 0 if single else 2**60)
    model.set_params(device="cuda")
    np.testing.assert_allclose(method(X), expected, atol=5e-4 * np.abs(expected).max() if single else 1e-10)
    model.set_params(device="cpu")


def test_many_functions_of_many_features_are_multiplied_from_stored_values(device, monkeypatch):
    random = np.random.default_rng(0)
    values = values_of_points(Gaussian(0.05), Points(random.normal(size=(300, 64))), 0)
    every, weights = device.arange(300, dtype=np.int32), device.asarray(random.normal(size=(300, 20)))
    expected = values.several_products(every, every, weights).get()
    stored, original = [], kernel_values.product_by_blocks
    monkeypatch.setattr(kernel_values, "product_by_blocks", lambda *arguments: stored.append(1) or original(*arguments))
    monkeypatch.setattr(kernel_values, "MAX_FUSED_WORK", 64 * 20 - 1)
    np.testing.assert_allclose(values.several_products(every, every, weights).get(), expected, atol=1e-3)
    np.testing.assert_allclose(values.precise_several_products(every, None, weights).get(), expected, atol=1e-3)
    assert len(stored) == 2
    monkeypatch.setattr(kernel_values, "MAX_FUSED_WORK", 2**15)
    for count, in_blocks in [(64, 2), (65, 3)]:
        values.several_products(every, every, device.ones((300, count)))
        assert len(stored) == in_blocks
