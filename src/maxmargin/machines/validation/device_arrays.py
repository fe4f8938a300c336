"""Samples in the memory of a GPU, and results that follow the library of the samples.

A method that is decorated with `following_samples` takes arrays of CuPy, torch and others that export `__dlpack__`, and
returns an array of the same library on the same device. Inside, samples on a GPU are a `DeviceTable`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.cuda.device import DeviceError, cupy
from maxmargin.machines.validation.samples import FLOATS

if TYPE_CHECKING:
    from maxmargin.kernels.kernel import Kernel

#: The types of devices in DLPack whose memory is that of an NVIDIA GPU: cuda, and cuda_managed.
GPU_TYPES = (2, 13)


class DeviceTable(NamedTuple):
    """A table of samples on a GPU, an array of CuPy, and the number of the GPU."""

    array: Any
    number: int

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.array.shape
        return int(rows), int(columns)

    def check(self, features: int | None, name: str) -> DeviceTable:
        """Return the samples in C order and floating point, or raise: as many features as those of the fit, finite.

        The messages are those of scikit-learn for samples in host memory.
        """
        xp = cupy()
        if self.array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if self.array.ndim != 2:
            raise ValueError(f"samples must be a table, not an array of {self.array.ndim} dimensions")
        for count, what in zip(self.shape, ("sample(s)", "feature(s)"), strict=True):
            if not count:
                raise ValueError(
                    f"Found array with 0 {what} (shape={self.shape}) while a minimum of 1 is required by {name}."
                )
        if features is not None and self.array.shape[1] != features:
            raise ValueError(
                f"X has {self.array.shape[1]} features, but {name} is expecting {features} features as input."
            )
        with xp.cuda.Device(self.number):
            kept = self.array if self.array.dtype in FLOATS else self.array.astype(np.float64)
            if not bool(xp.isfinite(kept).all()):
                raise ValueError("the samples contain NaN or infinity; replace these values, or leave out their rows")
            return DeviceTable(xp.ascontiguousarray(kept), self.number)

    def check_domain(self, kernel: Kernel) -> None:
        """Raise ValueError if these samples are outside the domain of a kernel, by the extremes of each feature."""
        from maxmargin.kernels.points import Points

        xp = cupy()
        with xp.cuda.Device(self.number):
            extremes = xp.stack([self.array.min(axis=0), self.array.max(axis=0)]).get()
        kernel.check(Points(extremes))

    def to_host(self) -> Any:
        """Return the samples in host memory."""
        return self.array.get()


def on_gpu(X: Any) -> DeviceTable | None:
    """Return samples that are on a GPU, without a copy; None if they are not."""
    if type(X) is np.ndarray or not hasattr(X, "__dlpack_device__"):
        return None
    kind, number = X.__dlpack_device__()
    if kind not in GPU_TYPES:
        return None
    with cupy().cuda.Device(int(number)):
        return DeviceTable(cupy().from_dlpack(X), int(number))


def host_array(estimator: Any, array: Any) -> Any:
    """Return a copy in host memory of an array on a GPU, or the NumPy array of one whose library an estimator follows.

    Anything else is returned as it is.
    """
    table = on_gpu(array)
    if table is not None:
        return table.to_host()
    return np.from_dlpack(array) if estimator._follows_library(array) else array


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
            result = method(self, table if "device" in vars(self) else table.to_host(), *arguments, **named)
            with cupy().cuda.Device(table.number):
                return _in_library_of(X, cupy().asarray(result)) if _is_numeric(result) else result
        if self._follows_library(X):
            result = method(self, np.from_dlpack(X), *arguments, **named)
            return _in_library_of(X, result) if _is_numeric(result) else result
        return method(self, X, *arguments, **named)

    return following


def _is_numeric(result: Any) -> bool:
    return isinstance(result, np.ndarray) and result.dtype.kind in "biuf"


def _in_library_of(X: Any, result: Any) -> Any:
    """Return an array of the library of the samples that has the memory of the result."""
    if type(result) is type(X):
        return result
    library = X.__array_namespace__() if hasattr(X, "__array_namespace__") else _package_of(X)
    return library.from_dlpack(result)


def _package_of(X: Any) -> Any:
    """Return the package of an array of torch, which is no array API namespace but has `from_dlpack`."""
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
