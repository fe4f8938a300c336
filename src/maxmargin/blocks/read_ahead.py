"""Read blocks in a thread while earlier ones are used."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable

from maxmargin.blocks.row_blocks import RowBlock

#: Seconds after which a waiting thread looks whether the other one has ended.
WAIT_SECONDS = 0.1


def read_ahead(blocks: Iterable[RowBlock], depth: int = 1) -> Generator[RowBlock, None, None]:
    """Yield the blocks of one pass, read by a thread of its own.

    Parameters
    ----------
    blocks : RowBlocks or iterable of RowBlock
    depth : int
        Number of blocks that wait to be used. Two more are in memory: the one in use, and the one that is being read.

    Yields
    ------
    block : RowBlock
        In order. An exception of the reading is raised here. Closing the iterator, or leaving the loop over it, ends
        the thread.
    """
    ready: queue.Queue[_Item] = queue.Queue(depth)
    stop = threading.Event()
    reader = threading.Thread(target=_read, args=(blocks, ready, stop), name="maxmargin-read-ahead", daemon=True)
    reader.start()
    try:
        while (item := _next(ready, reader)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
            item = None  # a block that is used up must not stay in memory while the next one is awaited
    finally:
        stop.set()
        reader.join()


_Item = RowBlock | BaseException | None


def _read(blocks: Iterable[RowBlock], ready: queue.Queue[_Item], stop: threading.Event) -> None:
    """Put the blocks into the queue, then None; or an exception."""
    iterator = None
    try:
        iterator = iter(blocks)
        for block in iterator:
            if not _put(ready, block, stop):
                return
            del block  # it must not stay in memory while the next one is read
        _put(ready, None, stop)
    except BaseException as error:  # raised again where the blocks are used
        _put(ready, error, stop)
    finally:
        close = getattr(iterator, "close", None)  # files of a generator
        if close is not None:
            close()


def _put(ready: queue.Queue[_Item], item: _Item, stop: threading.Event) -> bool:
    """Put an item into the queue when there is room; return False if the items are not wanted any more."""
    while not stop.is_set():
        try:
            ready.put(item, timeout=WAIT_SECONDS)
            return True
        except queue.Full:
            continue
    return False


def _next(ready: queue.Queue[_Item], reader: threading.Thread) -> _Item:
    """Return the next item, in short waits: Ctrl-C reaches Python between them on every system."""
    while True:
        try:
            return ready.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            if not reader.is_alive() and ready.empty():
                raise RuntimeError("the thread that reads blocks ended without a result") from None
