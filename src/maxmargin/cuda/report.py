"""Numbers that kernels write into host memory: the host waits for them and copies nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.cuda.device import cupy


class Report:
    """So many float64 numbers in pinned memory, which the GPU reaches by the same address.

    Attributes
    ----------
    pointer : uint64
        The address, an argument of kernels.
    """

    def __init__(self, count: int) -> None:
        self._memory: Any = cupy().cuda.alloc_pinned_memory(8 * count)
        self._numbers = np.frombuffer(self._memory, np.float64, count)
        self.pointer = np.uint64(self._memory.ptr)

    def read(self) -> Floats:
        """Wait until everything queued is done, and return a copy of the numbers."""
        cupy().cuda.get_current_stream().synchronize()
        return self._numbers.copy()
