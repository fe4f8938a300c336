"""Output of a torch module or of one of its layers. Imported only after torch has been imported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


class _LayerOutput(Exception):  # noqa: N818  # control flow, not an error
    """Raised by the forward hook to skip the layers behind the requested one."""

    def __init__(self, output: Any) -> None:
        self.output = output


def module_output(module: torch.nn.Module, layer: str | None, X: NDArray[Any], batch_size: int) -> NDArray[Any]:
    """Return the output of a layer, or of the whole module, flattened to one row per sample."""
    reference = next((parameter for parameter in module.parameters() if parameter.is_floating_point()), None)
    parts = []
    with _evaluation_mode(module), _stop_after(module, layer), torch.no_grad():
        for start in range(0, len(X), batch_size):
            batch = torch.as_tensor(X[start : start + batch_size])
            if reference is not None:
                batch = batch.to(reference.device, reference.dtype)
            parts.append(_as_rows(_forward(module, layer, batch), len(batch), layer))
    return np.concatenate(parts)


def _forward(module: torch.nn.Module, layer: str | None, batch: Any) -> Any:
    try:
        output = module(batch)
    except _LayerOutput as result:
        return result.output
    if layer is not None:
        raise ValueError(f"the forward pass of the network never calls layer {layer!r}; choose another layer")
    return output


def _as_rows(output: Any, samples: int, layer: str | None) -> NDArray[Any]:
    where = "network" if layer is None else f"layer {layer!r}"
    if not isinstance(output, torch.Tensor):
        raise ValueError(f"the {where} returned a {type(output).__name__}, not a tensor; choose another layer")
    if output.ndim == 0 or output.shape[0] != samples:
        raise ValueError(
            f"the {where} must return one row per sample, but gave shape {tuple(output.shape)} for {samples} samples"
        )
    if output.dtype not in (torch.float32, torch.float64):
        output = output.float()
    rows: NDArray[Any] = output.reshape(samples, -1).cpu().numpy()
    return rows


@contextmanager
def _evaluation_mode(module: torch.nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode and restore the mode of every submodule afterwards."""
    modes = [(submodule, submodule.training) for submodule in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for submodule, training in modes:
            submodule.training = training


@contextmanager
def _stop_after(module: torch.nn.Module, layer: str | None) -> Iterator[None]:
    """Make the forward pass raise `_LayerOutput` as soon as the layer has been computed."""
    if layer is None:
        yield
        return
    layers = dict(module.named_modules())
    if layer not in layers:
        names = ", ".join(repr(name) for name in layers if name)
        raise ValueError(f"the network has no layer {layer!r}; its layers are {names}")

    def stop(submodule: Any, inputs: Any, output: Any) -> None:
        raise _LayerOutput(output)

    hook = layers[layer].register_forward_hook(stop)
    try:
        yield
    finally:
        hook.remove()
