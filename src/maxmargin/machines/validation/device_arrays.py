"""Samples of other array libraries, in the memory of a GPU or of the host, and results that follow them.

A method that is decorated with `following_samples` takes arrays of CuPy, torch and others that export `__dlpack__`, and
returns an array of the same library on the same device. Inside, samples on a GPU are a `DeviceTable`, others arrays of
NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from maxmargin.cuda.device import DeviceError, cupy
from maxmargin.cuda.device_table import DeviceTable

#: The types of devices in DLPack whose memory is that of an NVIDIA GPU: cuda, and cuda_managed.
GPU_TYPES = (2, 13)


def on_gpu(X: Any) -> DeviceTable | None:
    """Return samples that are on a GPU, without a copy; None if they are not."""
    if type(X) is np.ndarray or not hasattr(X, "__dlpack_device__"):
        return None
    kind, number = X.__dlpack_device__()
    if kind not in GPU_TYPES:
        return None
    with cupy().cuda.Device(int(number)):
        return DeviceTable(cupy().from_dlpack(X), int(number))


def copied_from_gpu(array: Any) -> Any:
    """Return a copy in host memory of an array on a GPU; anything else is returned as it is."""
    table = on_gpu(array)
    return array if table is None else table.in_host_memory()


def host_array(estimator: Any, array: Any) -> Any:
    """Return a copy in host memory of an array on a GPU, or the NumPy array of one whose library an estimator follows.

    Anything else is returned as it is.
    """
    array = copied_from_gpu(array)
    if not estimator._follows_library(array):
        return array
    return np.from_dlpack(array.detach() if hasattr(array, "detach") else array)  # of torch, without its gradient


def training_samples(estimator: Any, X: Any) -> Any:
    """Return samples on a GPU as they are where an estimator trains on them there, else in host memory."""
    table = on_gpu(X)
    return table if table is not None and estimator._trains_in_place(table) else host_array(estimator, X)


def following_samples(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of samples that returns an array of their library on their device.

    Samples on a GPU are followed always, others where `_follows_library` of the estimator says so. An estimator without
    the parameter `device` gets a copy in host memory. Labels that are no numbers remain arrays of NumPy.
    """

    @wraps(method)
    def following(self: Any, X: Any, *arguments: Any, **named: Any) -> Any:
        if type(X) is np.ndarray or isinstance(X, DeviceTable):
            return method(self, X, *arguments, **named)
        table = on_gpu(X)
        if table is not None:
            result = method(self, table if "device" in vars(self) else table.in_host_memory(), *arguments, **named)
            with cupy().cuda.Device(table.number):
                return _in_library_of(X, cupy().asarray(result)) if _is_numeric(result) else result
        if self._follows_library(X):
            others = [host_array(self, value) for value in arguments]
            named = {name: host_array(self, value) for name, value in named.items()}
            result = method(self, host_array(self, X), *others, **named)
            return _library_of(X).asarray(result, device=X.device) if _is_numeric(result) else result
        return method(self, X, *arguments, **named)

    return following


def _is_numeric(result: Any) -> bool:
    return isinstance(result, np.ndarray) and result.dtype.kind in "biuf"


def _in_library_of(X: Any, result: Any) -> Any:
    """Return an array of the library of the samples that has the memory of the result."""
    if type(result) is type(X):
        return result
    return _library_of(X).from_dlpack(result)


def _library_of(X: Any) -> Any:
    """Return the namespace of an array; of torch, which has none, its package, which has the functions used here."""
    if hasattr(X, "__array_namespace__"):
        return X.__array_namespace__()
    return sys.modules[type(X).__module__.partition(".")[0]]


def device_of_samples(wanted: str, table: DeviceTable) -> str:
    """Return the name of the GPU that samples are on; raise DeviceError if another device was asked for."""
    there = f"cuda:{table.number}"
    if wanted in ("auto", there) or (wanted == "cuda" and table.number == 0):
        return there
    raise DeviceError(
        f"the samples are in the memory of GPU {table.number}, but device={wanted!r}: use "
        f"set_params(device={there!r}), or copy them"
    )
