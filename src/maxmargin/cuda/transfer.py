"""Copies of large arrays from host memory to a GPU, through pinned memory on several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np

from maxmargin.cuda.device import cupy
from maxmargin.deadline import check_deadline

#: Arrays of more bytes than this go through pinned memory: the driver's own copy of ordinary memory runs on one core.
MIN_BYTES = 2**22

#: Bytes of a piece that one thread copies, pieces of a transfer, and transfers under way at a time.
PIECE, PIECES, BUFFERS = 2**22, 8, 3

#: More threads than this copy no faster than the bus.
MAX_THREADS = 8


def to_device(array: Any) -> Any:
    """Return a copy of an array of numbers on the current GPU."""
    xp = cupy()
    array = np.ascontiguousarray(array)
    if array.nbytes < MIN_BYTES:
        return xp.asarray(array)
    out = xp.empty(array.shape, dtype=array.dtype)
    _copy(array.reshape(-1).view(np.uint8), out.data)
    return out


def _copy(source: Any, target: Any) -> None:
    """Copy bytes to device memory: threads fill one buffer while another is on its way."""
    xp = cupy()
    size, chunk = len(source), PIECE * PIECES
    stream = xp.cuda.Stream(non_blocking=True)
    buffers = [(_pinned(chunk), xp.cuda.Event()) for _ in range(BUFFERS)]
    xp.cuda.get_current_stream().synchronize()  # the memory may be in use by what was queued before
    try:
        with ThreadPoolExecutor(min(MAX_THREADS, cpu_count() or 1)) as pool:
            for number, start in enumerate(range(0, size, chunk)):
                check_deadline()
                (pinned, view), sent = buffers[number % BUFFERS]
                sent.synchronize()
                part = source[start : start + chunk]
                pieces = [slice(at, min(at + PIECE, len(part))) for at in range(0, len(part), PIECE)]
                list(pool.map(lambda piece, to=view, of=part: np.copyto(to[piece], of[piece]), pieces))
                (target + start).copy_from_host_async(pinned.ptr, len(part), stream)
                sent.record(stream)
    finally:
        stream.synchronize()  # before the memory is freed, also after Ctrl-C


def _pinned(size: int) -> tuple[Any, Any]:
    """Return pinned memory and an array of its bytes."""
    memory = cupy().cuda.alloc_pinned_memory(size)
    return memory, np.frombuffer(memory, np.uint8, size)
