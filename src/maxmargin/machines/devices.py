"""The device of a fit or a prediction: what the user asked for, or the GPU where it pays; kernel values on it."""

from __future__ import annotations

from typing import Any

from maxmargin.cuda.device import cupy
from maxmargin.cuda.device_table import DeviceTable
from maxmargin.kernels import Kernel, Points
from maxmargin.machines.validation.device_arrays import device_of_samples
from maxmargin.models import ComputedKernelBlocks
from maxmargin.models.device_blocks import DeviceKernelBlocks

#: With fewer samples than this, "auto" stays on the CPU: a fit takes it less than the start of a GPU.
MIN_SAMPLES_FOR_GPU = 10_000

#: Fewer values than this are read by the CPU in the time of a launch.
MIN_VALUES_ON_DEVICE = 2**20

#: Where float64 takes more than so many times as long as float32, products with features stay on the CPU: the second
#: moments of n samples with w features take n w² multiplications. GPUs for data centres have 2, others 32 or 64.
MAX_DOUBLE_RATIO = 8

#: With more features of all samples than this, 8 GB as a dense table, "auto" stays on the CPU.
MAX_VALUES_FOR_GPU = 10**9


def choose_device(wanted: Any, kernel: Kernel | None, X: Any, supported: bool = True) -> str:
    """Return ``"cpu"`` or the name of a GPU; raise if the one that was asked for cannot do this.

    `supported` says whether a GPU can train with the parameters of the estimator, which decides for "auto" only.
    """
    from maxmargin.cuda.device import DeviceError, is_available
    from maxmargin.cuda.kernel_values import is_supported

    if wanted == "cpu":
        return "cpu"
    name = checked_name(wanted)
    if isinstance(X, DeviceTable):
        there = device_of_samples(name, X)
        name = there if name == "auto" else name
    supported_kernel = is_supported(kernel)
    if name == "auto":
        return "cuda" if supported_kernel and supported and is_worthwhile(X) and is_available() else "cpu"
    if not supported_kernel:
        raise DeviceError(
            f"device={name!r} computes the built-in kernels, their sums, products and multiples from samples; use "
            "one of them, or device='cpu'"
        )
    return name


def checked_name(wanted: Any) -> str:
    """Return the name of a device; raise if it is none, or there is no such GPU."""
    from maxmargin.cuda.device import NAMES, open_device

    if not isinstance(wanted, str):
        raise ValueError(f"device must be {NAMES}, not {wanted!r}")
    if wanted not in ("cpu", "auto"):
        open_device(wanted)
    return wanted


def is_worthwhile(X: Any) -> bool:
    """Whether samples are enough, and not too many, for "auto" to choose a GPU."""
    rows, features = X.shape
    return bool(rows >= MIN_SAMPLES_FOR_GPU and rows * features <= MAX_VALUES_FOR_GPU)


def trains_in_place(wanted: Any, kernel: Any, table: DeviceTable, supported: bool) -> bool:
    """Whether samples in the memory of a GPU are used there by a fit, as far as the parameters tell.

    `kernel` and `supported` are as the user gave the one and as in `choose_device`.
    """
    from maxmargin.cuda.kernel_values import is_supported

    if wanted == "cpu" or table.array.ndim != 2 or not (isinstance(kernel, str) or is_supported(kernel)):
        return False
    return kernel != "precomputed" and (wanted != "auto" or (supported and is_worthwhile(table)))


def copied_to_device(table: Any, device: str) -> Any:
    """Return a dense table with a copy on a GPU, which computes products with it, all in float64.

    Few values and too many stay here, and all where the GPU is slow in float64.
    """
    if device == "cpu" or table.size < MIN_VALUES_ON_DEVICE:
        return table
    from maxmargin.cuda.device import open_device
    from maxmargin.cuda.product_costs import DeviceSpeed
    from maxmargin.cuda.samples import fits_on_device

    number, points = open_device(device), Points(table)
    if DeviceSpeed.of(number).ratio > MAX_DOUBLE_RATIO:
        return table
    with cupy().cuda.Device(number):
        return DeviceTable.copy_of(points.data, number) if fits_on_device(points, number) else table


def kernel_blocks(wanted: Any, kernel: Kernel, X: Any, support: Points) -> ComputedKernelBlocks | DeviceKernelBlocks:
    """Return the kernel values of samples, which are checked, with support vectors, on the device that is wanted.

    With "auto", a kernel that a GPU does not compute gets samples in GPU memory as a copy in host memory.
    """
    from maxmargin.cuda.kernel_values import is_supported

    if isinstance(X, DeviceTable):
        wanted = checked_name(wanted)
        wanted = device_of_samples(wanted, X) if wanted != "auto" or is_supported(kernel) else "cpu"
        X = X.in_host_memory() if wanted == "cpu" else X
    points = Points.wrap(X)
    kernel.check(points)
    device = "cpu" if wanted == "cpu" else choose_device(wanted, kernel, X)
    if device == "cpu":
        return ComputedKernelBlocks(kernel, points, support)
    return DeviceKernelBlocks(kernel, points, support, device)
