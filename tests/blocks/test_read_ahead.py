"""Blocks of a thread: the same blocks in the same order, its exceptions, and no thread that remains."""

import gc
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from maxmargin import blocks

X = np.arange(60.0).reshape(20, 3)


@pytest.fixture(autouse=True)
def no_threads_left():
    before = threading.active_count()
    yield
    gc.collect()
    assert threading.active_count() == before


@pytest.mark.parametrize("depth", [1, 2])
def test_the_same_blocks(depth):
    table = blocks.open(X, np.arange(20), block_rows=3)
    for _ in range(2):
        pairs = zip(blocks.read_ahead(table, depth), table, strict=True)
        assert all(a.first == b.first and np.array_equal(a.X, b.X) and np.array_equal(a.y, b.y) for a, b in pairs)


def test_exceptions_are_raised_in_order():
    table = X.copy()
    table[10, 1] = np.nan
    reading = blocks.read_ahead(blocks.open(table, block_rows=4))
    assert [next(reading).first, next(reading).first] == [0, 4]
    with pytest.raises(ValueError, match="row 10"):
        next(reading)


def test_an_early_close_ends_the_thread_and_the_source():
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield blocks.RowBlock(X, None, None, 0)
        finally:
            closed.set()

    reading = blocks.read_ahead(endless())
    next(reading)
    reading.close()
    assert closed.is_set()
    for block in blocks.read_ahead(endless()):
        assert block.X is X
        break


def test_reading_is_bounded():
    count = 0

    def counted():
        nonlocal count
        for _ in range(100):
            count += 1
            yield blocks.RowBlock(X, None, None, 0)

    reading = blocks.read_ahead(counted(), depth=1)
    next(reading)
    time.sleep(0.3)
    assert count <= 3  # in use, in the queue, and the one that waits
    reading.close()


def test_an_iterator_that_is_not_used_starts_no_thread():
    blocks.read_ahead(blocks.open(X))


INTERRUPTED = """
import time
import numpy as np
from maxmargin import blocks
def slow():
    yield blocks.RowBlock(np.zeros((1, 1)), None, None, 0)
    print("waiting", flush=True)
    time.sleep(1.5)
    yield blocks.RowBlock(np.zeros((1, 1)), None, None, 1)
    time.sleep(1000)
try:
    for block in blocks.read_ahead(slow()):
        pass
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c():
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "interrupted\n"
    assert process.wait(20) == 0
    process.stdout.close()
