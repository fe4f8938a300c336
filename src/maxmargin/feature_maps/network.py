"""What a torch module computes, up to one of its layers. Only imported for somebody who has loaded torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


class _Reached(Exception):  # noqa: N818  # no error: the rest of a network is left out
    """The layer has been called; this is what it gave."""

    def __init__(self, output: Any) -> None:
        self.output = output


def outputs(module: torch.nn.Module, layer: str | None, X: NDArray[Any], batch_size: int) -> NDArray[Any]:
    """Return the output of a layer, or of the whole module, for every sample, flattened."""
    like = next((parameter for parameter in module.parameters() if parameter.is_floating_point()), None)
    parts = []
    with _evaluating(module), _stopping_at(module, layer), torch.no_grad():
        for start in range(0, len(X), batch_size):
            batch = torch.as_tensor(X[start : start + batch_size])
            if like is not None:
                batch = batch.to(like.device, like.dtype)
            parts.append(_as_rows(_run(module, layer, batch), len(batch), layer))
    return np.concatenate(parts)


def _run(module: torch.nn.Module, layer: str | None, batch: Any) -> Any:
    try:
        output = module(batch)
    except _Reached as reached:
        return reached.output
    if layer is not None:
        raise ValueError(f"the network never calls its layer {layer!r}")
    return output


def _as_rows(output: Any, samples: int, layer: str | None) -> NDArray[Any]:
    where = "network" if layer is None else f"layer {layer!r}"
    if not isinstance(output, torch.Tensor):
        raise ValueError(f"the {where} gave a {type(output).__name__}, not a tensor; choose another layer")
    if output.ndim == 0 or output.shape[0] != samples:
        raise ValueError(f"the {where} gave a tensor of shape {tuple(output.shape)} for {samples} samples")
    if output.dtype not in (torch.float32, torch.float64):
        output = output.float()
    rows: NDArray[Any] = output.reshape(samples, -1).cpu().numpy()
    return rows


@contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode, and every part back into its own afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def _stopping_at(module: torch.nn.Module, layer: str | None) -> Iterator[None]:
    """Have a module stop where a layer has been called."""
    if layer is None:
        yield
        return
    layers = dict(module.named_modules())
    if layer not in layers:
        names = ", ".join(repr(name) for name in layers if name)
        raise ValueError(f"the network has no layer {layer!r}; its layers are {names}")

    def stop(part: Any, inputs: Any, output: Any) -> None:
        raise _Reached(output)

    hook = layers[layer].register_forward_hook(stop)
    try:
        yield
    finally:
        hook.remove()
