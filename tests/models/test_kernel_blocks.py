"""Kernel values in blocks: block sizes, threads, empty input."""

import threading

import numpy as np
import pytest

from maxmargin.kernels import FunctionKernel, Gaussian, Points
from maxmargin.models import ComputedKernelBlocks, PrecomputedKernelBlocks, kernel_blocks
from maxmargin.models.kernel_blocks import map_blocks

RANDOM = np.random.default_rng(0)
X, SUPPORT = RANDOM.normal(size=(53, 4)), RANDOM.normal(size=(7, 4))
VALUES = Gaussian(0.4)(X, SUPPORT)


def all_blocks(X=X, support=SUPPORT):
    X, support = X.reshape(-1, 4), support.reshape(-1, 4)
    return {
        "native": ComputedKernelBlocks(Gaussian(0.4), Points(X), Points(support)),
        "function": ComputedKernelBlocks(FunctionKernel(Gaussian(0.4)), Points(X), Points(support)),
        "precomputed": PrecomputedKernelBlocks(Gaussian(0.4)(X, support), np.arange(len(support))),
    }


@pytest.mark.parametrize("name", ["native", "function", "precomputed"])
@pytest.mark.parametrize("threads", [1, 2, 5, 100])
@pytest.mark.parametrize("block_bytes", [1, 8 * 7 * 10, 2**20])
def test_values_do_not_depend_on_blocks_and_threads(name, threads, block_bytes, monkeypatch):
    monkeypatch.setattr(kernel_blocks, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(kernel_blocks, "MIN_VALUES_FOR_THREADS", 0)
    blocks, weights = all_blocks()[name], RANDOM.normal(size=7)
    assert len(blocks) == 53
    np.testing.assert_allclose(blocks.block(slice(10, 30)), VALUES[10:30], rtol=1e-13)
    np.testing.assert_allclose(blocks.combine(weights, threads), VALUES @ weights, atol=1e-13)
    columns = RANDOM.normal(size=(7, 3))
    found = map_blocks(blocks, 7, lambda block: block @ columns, 3, threads)
    np.testing.assert_allclose(found, VALUES @ columns, atol=1e-13)


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_are_bounded_and_cover_all_rows_once(threads, monkeypatch):
    monkeypatch.setattr(kernel_blocks, "BLOCK_BYTES", 8 * 7 * 10)
    monkeypatch.setattr(kernel_blocks, "MIN_VALUES_FOR_THREADS", 0)
    seen, names = [], set()

    class Recorder(PrecomputedKernelBlocks):
        def block(self, rows):
            seen.extend(range(rows.start, rows.stop))
            names.add(threading.current_thread().name)
            assert rows.stop - rows.start <= 10
            return super().block(rows)

    map_blocks(Recorder(VALUES, np.arange(7)), 7, lambda block: block[:, :1], 1, threads)
    assert sorted(seen) == list(range(53))
    assert (threading.current_thread().name in names) == (threads == 1)


def test_few_values_start_no_threads(monkeypatch):
    monkeypatch.setattr(kernel_blocks, "ThreadPoolExecutor", lambda *_: pytest.fail("started threads"))
    blocks = all_blocks()["precomputed"]
    assert map_blocks(blocks, 7, lambda block: block[:, :1], 1, 8).shape == (53, 1)
    monkeypatch.setattr(kernel_blocks, "MIN_VALUES_FOR_THREADS", 53 * 7)
    with pytest.raises(pytest.fail.Exception, match="started threads"):
        map_blocks(blocks, 7, lambda block: block[:, :1], 1, 8)


@pytest.mark.parametrize("name", ["native", "precomputed"])
def test_no_samples(name):
    blocks = all_blocks(X=np.empty((0, 4)))[name]
    assert len(blocks) == 0
    assert blocks.combine(np.ones(7), 2).shape == (0,)
    assert map_blocks(blocks, 7, lambda block: block @ np.ones((7, 2)), 2, 2).shape == (0, 2)


@pytest.mark.parametrize("name", ["native", "precomputed"])
def test_no_support_vectors(name):
    blocks = all_blocks(support=np.empty((0, 4)))[name]
    np.testing.assert_array_equal(blocks.combine(np.empty(0), 2), np.zeros(53))


def test_precomputed_values_use_the_columns_of_the_support_vectors():
    K = RANDOM.normal(size=(5, 12)).astype(np.float32)
    blocks = PrecomputedKernelBlocks(K, np.array([3, 11, 0]))
    block = blocks.block(slice(1, 4))
    assert block.dtype == np.float64
    assert block.flags.c_contiguous
    np.testing.assert_array_equal(block, K[1:4][:, [3, 11, 0]])


def test_an_error_of_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(kernel_blocks, "MIN_VALUES_FOR_THREADS", 0)

    def fail(block):
        raise RuntimeError("in a thread")

    with pytest.raises(RuntimeError, match="in a thread"):
        map_blocks(all_blocks()["native"], 7, fail, 1, 3)
