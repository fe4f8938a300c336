"""Features from torch modules and their layers."""

import contextlib
import io
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from maxmargin.feature_maps import FunctionMap
from reference.data import wine

torch = pytest.importorskip("torch", reason="torch is optional")


def make_network():
    torch.manual_seed(0)
    hidden = torch.nn.Linear(13, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Tanh()
    network = torch.nn.Sequential(*hidden, torch.nn.Linear(8, 3))
    network[1].running_mean += 0.3
    return network


def numpy_output(network, X, layer):
    weight, bias = (parameter.detach().numpy() for parameter in network[0].parameters())
    hidden = (X @ weight.T + bias - 0.3) / np.sqrt(1 + 1e-5)
    if layer == "1":
        return hidden
    weight, bias = (parameter.detach().numpy() for parameter in network[4].parameters())
    return np.tanh(hidden) @ weight.T + bias


@pytest.mark.parametrize("layer", [None, "1"])
@pytest.mark.parametrize("batch_size", [7, 178, 1000])
def test_output_of_a_layer(layer, batch_size):
    X, _ = wine()
    network = make_network()
    features = FunctionMap(network, layer, batch_size).fit(X).transform(X)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, numpy_output(network, X, layer), atol=1e-5)


def test_state_of_the_module_is_restored():
    X, _ = wine()
    network = make_network().train()
    network[2].eval()  # a frozen submodule
    before = pickle.dumps(network.state_dict())
    map = FunctionMap(network, "3").fit(X)
    map.transform(X)
    with pytest.raises(RuntimeError):  # shape mismatch, raised by torch
        FunctionMap(network, "3").fit(X[:, :5])
    assert network.training
    assert network[1].training
    assert not network[2].training
    assert pickle.dumps(network.state_dict()) == before
    assert not network[3]._forward_hooks
    assert all(parameter.grad is None and parameter.requires_grad for parameter in network.parameters())


def test_later_layers_are_not_computed():
    class Broken(torch.nn.Module):
        def forward(self, values):
            raise AssertionError("must not be called")

    network = torch.nn.Sequential(torch.nn.Linear(13, 2), Broken())
    assert FunctionMap(network, "0").fit_transform(wine()[0]).shape == (178, 2)


def test_image_input_and_flattened_output():
    X = np.random.default_rng(0).normal(size=(10, 36)).astype(np.float32)
    convolution = torch.nn.Conv2d(1, 2, 3)
    flat = FunctionMap(torch.nn.Sequential(torch.nn.Unflatten(1, (1, 6, 6)), convolution)).fit_transform(X)
    images = FunctionMap(convolution).fit_transform(X.reshape(10, 1, 6, 6))
    assert flat.shape == (10, 2 * 4 * 4)
    np.testing.assert_array_equal(flat, images)


def test_dtype_follows_the_module():
    X, _ = wine()
    for kind, wanted in [(torch.float32, np.float32), (torch.float64, np.float64), (torch.bfloat16, np.float32)]:
        assert FunctionMap(make_network().to(kind)).fit_transform(X).dtype == wanted
    assert FunctionMap(torch.nn.Tanh()).fit_transform(X).dtype == np.float64  # no parameters: dtype of the input


def test_layer_that_is_never_called():
    class WithUnusedLayer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = torch.nn.Linear(13, 2), torch.nn.Linear(13, 2)

        def forward(self, values):
            return self.used(values)

    with pytest.raises(ValueError, match="never calls layer 'unused'"):
        FunctionMap(WithUnusedLayer(), "unused").fit(wine()[0])


def test_documentation_example_runs():
    text = (Path(__file__).parents[2] / "docs/feature_maps.md").read_text(encoding="utf-8")
    names = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in re.findall(r"```python(?: torch)?\n(.*?)```", text, re.DOTALL):
            exec(compile(code, "feature_maps.md", "exec"), names)
    assert names["network"][0].out_features == 64


def test_errors():
    X, _ = wine()
    network = make_network()
    for map, words in [
        (FunctionMap(network, layer="hidden"), "no layer 'hidden'; its layers are '0', '1', '2', '3', '4'"),
        (FunctionMap(torch.nn.Sequential(torch.nn.LSTM(13, 4))), "returned a tuple, not a tensor"),
        (FunctionMap(torch.nn.Flatten(0)), r"shape \(13,\) for 1 samples"),
    ]:
        with pytest.raises(ValueError, match=words):
            map.fit(X)
    with pytest.raises(TypeError, match="dense samples"):
        FunctionMap(network).fit(sparse.csr_array(X))
