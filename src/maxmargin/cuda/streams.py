"""Streams: what threads queue on different ones runs side by side on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import Any

from maxmargin.cuda.device import cupy


@contextmanager
def own_stream(device: int) -> Iterator[None]:
    """Use a GPU by a stream that no other thread uses at the same time."""
    xp, idle = cupy(), _idle_streams(device)
    with xp.cuda.Device(device):
        try:
            stream = idle.get_nowait()
        except Empty:
            stream = xp.cuda.Stream(non_blocking=True)
        try:
            with stream:
                yield
        except BaseException:
            # After Ctrl-C between a launch and its wait, the kernel still writes into memory that is about to be freed.
            stream.synchronize()
            raise
        finally:
            idle.put(stream)


@lru_cache(maxsize=64)
def _idle_streams(device: int) -> SimpleQueue[Any]:
    """Return the streams of a GPU that are not in use: CuPy keeps the freed memory of each for its next use."""
    return SimpleQueue()
