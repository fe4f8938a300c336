"""GPUs by name, and what is missing where there is none."""

from __future__ import annotations

import re
from typing import Any

#: What `device` parameters accept.
NAMES = "'cpu', 'cuda', 'cuda:1' (the number of a GPU) or 'auto'"

#: The oldest generation whose tensor cores and reductions the kernels use: Ampere.
MIN_CAPABILITY = 80


class DeviceError(ValueError):
    """The device that was asked for cannot be used."""


def cupy() -> Any:
    """Return the module CuPy; raise DeviceError with what to install if it is missing."""
    try:
        import cupy as module
    except ImportError as error:
        raise DeviceError(
            "device='cuda' needs CuPy: pip install 'maxmargin[cuda13]' (driver of CUDA 12: 'maxmargin[cuda12]'); "
            "device='cpu' needs nothing"
        ) from error
    return module


def cupy_sparse() -> Any:
    """Return CuPy's module of sparse matrices."""
    cupy()  # or the error that says what is missing
    from cupyx.scipy import sparse

    return sparse


def open_device(name: str) -> int:
    """Return the number of the GPU that ``"cuda"`` or ``"cuda:1"`` names; raise DeviceError if there is none."""
    match = re.fullmatch(r"cuda(?::(\d+))?", name)
    if match is None:
        raise ValueError(f"device must be {NAMES}, not {name!r}")
    runtime, number = cupy().cuda.runtime, int(match[1] or 0)
    try:
        count = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        raise DeviceError(f"device={name!r}: no GPU can be used ({error}); device='cpu' works everywhere") from error
    if number >= count:
        there = f"there are {count}, 'cuda:0' to 'cuda:{count - 1}'" if count else "there is none"
        raise DeviceError(f"device={name!r}: GPU {number} does not exist; {there}")
    capability = int(cupy().cuda.Device(number).compute_capability)
    if capability < MIN_CAPABILITY:
        raise DeviceError(
            f"device={name!r}: compute capability {capability / 10} is too old; 8.0 (Ampere) or newer is needed. "
            "device='cpu' works everywhere"
        )
    return number


def is_available() -> bool:
    """Return whether ``device="cuda"`` would work."""
    try:
        open_device("cuda")
    except DeviceError:
        return False
    return True
