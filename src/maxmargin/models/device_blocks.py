"""Decision values of a kernel model on a GPU, of samples in host memory or on the GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.kernels import Kernel, Points
from maxmargin.models.overflow import check_finite

#: Decision values that are on the GPU at a time where only the classes or scores that follow from them are kept.
DECISIONS_AT_A_TIME = 2**27


@dataclass(frozen=True)
class DeviceKernelBlocks:
    """Samples and support vectors whose kernel values a GPU computes.

    Parameters
    ----------
    kernel : Kernel
        Built-in, or composed of such.
    samples : Points
        In host memory, or in that of the GPU.
    support : Points
    device : str
        The GPU; that of the samples if they are on one.
    """

    kernel: Kernel
    samples: Points
    support: Points
    device: str

    def __len__(self) -> int:
        return len(self.samples)

    def scope(self) -> AbstractContextManager[Any]:
        """Return a context in which the current GPU is the one that has the arrays."""
        from maxmargin.cuda.device import cupy, open_device

        scope: AbstractContextManager[Any] = cupy().cuda.Device(open_device(self.device))
        return scope

    def decision_values(self, segments: Sequence[tuple[slice, Floats, Indices]], offsets: Floats) -> Any:
        """Return the value of every function for every sample, a device array, or raise if one is not finite.

        A segment is some support vectors, their coefficients, a column for each function, and the numbers of these.
        """
        from maxmargin.cuda.prediction import Segment, decision_values

        named = [Segment(*segment) for segment in segments]
        with self.scope():
            return check_finite(decision_values(self.device, self.kernel, self.samples, self.support, named, offsets))

    def map_parts(self, function: Callable[[DeviceKernelBlocks], Any], outputs: int) -> Any:
        """Return the results of a function of parts of the samples, stacked; each has so many decision values.

        The function is called with the GPU of the arrays as the current one.
        """
        from maxmargin.cuda.device import cupy

        step = max(1, DECISIONS_AT_A_TIME // max(1, outputs))
        rows = (slice(start, start + step) for start in range(0, len(self), step))
        with self.scope():
            return cupy().concatenate([function(replace(self, samples=self.samples.take(part))) for part in rows])


def in_host_memory(values: Any) -> Any:
    """Return an array in host memory that may be on a device."""
    return values if type(values) is np.ndarray else values.get()


def array_module(array: Any) -> Any:
    """Return NumPy, or CuPy for a device array."""
    if type(array) is np.ndarray:
        return np
    from maxmargin.cuda.device import cupy

    return cupy()
