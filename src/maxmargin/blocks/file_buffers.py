"""Memory for values that are read from files, used again as soon as no array is in it.

The pages of new memory cost as much time as reading a file that the system has cached.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from typing import Any

import numpy as np

#: Sizes are multiples of this, so that blocks of nearly equal size use the same memory.
GRANULE_BYTES = 2**20

#: So many buffers that no array uses are kept: read-ahead has three blocks in hand.
MAX_UNUSED = 3

#: Pages of this process alone, which count towards limits of its memory; so they are everywhere on Windows.
PRIVATE: dict[str, int] = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANON}


class FileBuffers:
    """Buffers of bytes that return here when the last array in them is gone."""

    def __init__(self) -> None:
        self._unused: list[mmap.mmap] = []

    def array(self, count: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """Return an array of a type, whose values are arbitrary."""
        buffer = self._take(count * dtype.itemsize)
        # The arrays in this memory keep the ctypes object alive, which can be observed by a weak reference.
        owner: Any = (ctypes.c_char * len(buffer)).from_buffer(buffer)
        weakref.finalize(owner, self._give_back, buffer).atexit = False
        return np.frombuffer(owner, dtype, count)  # SciPy copies views of arrays with many more elements

    def _take(self, size: int) -> mmap.mmap:
        while self._unused:
            buffer = self._unused.pop()
            if len(buffer) >= size:
                return buffer
        return mmap.mmap(-1, -(-size // GRANULE_BYTES) * GRANULE_BYTES, **PRIVATE)

    def _give_back(self, buffer: mmap.mmap) -> None:
        if len(self._unused) < MAX_UNUSED:
            self._unused.append(buffer)
