"""The device of a fit or a prediction: what the user asked for, or the GPU where it pays."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.kernels import Kernel, NativeKernel, Points

#: With fewer samples than this, "auto" stays on the CPU: a fit takes it less than the start of a GPU.
MIN_SAMPLES_FOR_GPU = 10_000


def choose_device(wanted: Any, kernel: Kernel | None, X: Any) -> str:
    """Return ``"cpu"`` or the name of a GPU; raise if the one that was asked for cannot do this."""
    from maxmargin.cuda.device import NAMES, DeviceError, is_available, open_device

    if wanted == "cpu":
        return "cpu"
    if not isinstance(wanted, str):
        raise ValueError(f"device must be {NAMES}, not {wanted!r}")
    data = X.data if isinstance(X, Points) else X
    problem = None
    if kernel is None or not isinstance(kernel, NativeKernel):
        problem = "computes the built-in kernels from samples; use one of them"
    elif not isinstance(data, np.ndarray):
        problem = "takes dense samples; use X.toarray() if that fits into memory"
    if wanted == "auto":
        return "cpu" if problem or len(data) < MIN_SAMPLES_FOR_GPU or not is_available() else "cuda"
    open_device(wanted)
    if problem:
        raise DeviceError(f"device={wanted!r} {problem}, or device='cpu'")
    return wanted
