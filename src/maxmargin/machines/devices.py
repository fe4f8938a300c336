"""The device of a fit or a prediction: what the user asked for, or the GPU where it pays; kernel values on it."""

from __future__ import annotations

from typing import Any

from maxmargin.kernels import Kernel, Points
from maxmargin.machines.validation.device_arrays import DeviceTable, device_of_samples
from maxmargin.models import ComputedKernelBlocks
from maxmargin.models.device_blocks import DeviceKernelBlocks

#: With fewer samples than this, "auto" stays on the CPU: a fit takes it less than the start of a GPU.
MIN_SAMPLES_FOR_GPU = 10_000

#: With more features of all samples than this, 8 GB as a dense table, "auto" stays on the CPU.
MAX_VALUES_FOR_GPU = 10**9


def choose_device(wanted: Any, kernel: Kernel | None, X: Any, supported: bool = True) -> str:
    """Return ``"cpu"`` or the name of a GPU; raise if the one that was asked for cannot do this.

    `supported` says whether a GPU can train with the parameters of the estimator, which decides for "auto" only.
    """
    from maxmargin.cuda.device import NAMES, DeviceError, is_available, open_device
    from maxmargin.cuda.kernel_values import is_supported

    if wanted == "cpu":
        return "cpu"
    if not isinstance(wanted, str):
        raise ValueError(f"device must be {NAMES}, not {wanted!r}")
    supported_kernel = is_supported(kernel)
    if wanted == "auto":
        large, small = X.shape[0] >= MIN_SAMPLES_FOR_GPU, X.shape[0] * X.shape[1] <= MAX_VALUES_FOR_GPU
        return "cuda" if supported_kernel and supported and large and small and is_available() else "cpu"
    open_device(wanted)
    if not supported_kernel:
        raise DeviceError(
            f"device={wanted!r} computes the built-in kernels, their sums, products and multiples from samples; use "
            "one of them, or device='cpu'"
        )
    return wanted


def kernel_blocks(wanted: Any, kernel: Kernel, X: Any, support: Points) -> ComputedKernelBlocks | DeviceKernelBlocks:
    """Return the kernel values of samples, which are checked, with support vectors, on the device that is wanted."""
    if isinstance(X, DeviceTable):
        device = choose_device(device_of_samples(wanted, X), kernel, X)
        X.check_domain(kernel)
        return DeviceKernelBlocks(kernel, X.array, support, device)
    points = Points.wrap(X)
    kernel.check(points)
    device = "cpu" if wanted == "cpu" else choose_device(wanted, kernel, X)
    if device == "cpu":
        return ComputedKernelBlocks(kernel, points, support)
    return DeviceKernelBlocks(kernel, points, support, device)
