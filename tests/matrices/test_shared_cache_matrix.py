"""Rows that several solvers share: the values of the matrix, computed once, also by threads."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from contracts.matrix_contract import MatrixContract
from maxmargin.kernels import FunctionKernel, Gaussian, Points
from maxmargin.matrices import (
    KernelMatrix,
    PrecomputedMatrix,
    RepeatedMatrix,
    SharedCacheMatrix,
)


def samples(n=12):
    return np.random.default_rng(1).random((n, 3))


class TestSharedCacheMatrix(MatrixContract):
    budget = 10**6

    def make(self):
        X = samples()
        return SharedCacheMatrix(KernelMatrix(Gaussian(0.5), Points(X)), self.budget, 1), Gaussian(0.5)(X)


class TestSharedCacheWithoutSpace(TestSharedCacheMatrix):
    budget = 0


class TestSharedCacheOfThreeRows(TestSharedCacheMatrix):
    budget = 3 * 4 * 12


class TestRepeatedSharedCache(MatrixContract):
    def make(self):
        K, of = Gaussian(0.5)(samples(6)), np.tile(np.arange(6), 2)
        return RepeatedMatrix(SharedCacheMatrix(PrecomputedMatrix(K), 10**6, 1), of), K[np.ix_(of, of)]


@pytest.mark.parametrize("budget", [0, 4 * 4 * 12, 10**6])
def test_shared_cache_computes_rows_once(budget):
    calls = []

    def kernel(X, Z):
        calls.append(len(X) * len(Z))
        return Gaussian(0.5)(X, Z)

    X = samples()
    shared = SharedCacheMatrix(KernelMatrix(FunctionKernel(kernel), Points(X)), budget, 1)
    everything, rows, weights = np.arange(12), np.array([7, 2, 9]), np.array([1.0, -2.0, 3.0])
    expected = Gaussian(0.5)(X)
    for first in (True, False):
        calls.clear()
        out = np.empty((3, 12), dtype=np.float32)
        computed = shared.float32_columns(everything).fill(rows, out, np.arange(3))
        np.testing.assert_allclose(out, expected[rows], rtol=1e-6)
        product, more = shared.float32_columns(rows).combine(everything, weights)
        np.testing.assert_allclose(product, weights @ expected[rows], rtol=1e-6)
        part, _ = shared.float32_columns(rows).combine(everything[3:8], weights)
        np.testing.assert_allclose(part, (weights @ expected[rows])[3:8], rtol=1e-6)
        assert computed + more == (0 if budget and not first else 36 if budget else 72)
        assert sum(calls) == (computed + more if budget else 72 + 15)
    assert shared.bytes <= budget


def test_threads_share_cached_rows_and_an_error_blocks_none():
    X, calls = samples(40), []

    def kernel(A, B):
        calls.append(len(A) * len(B))
        if len(calls) == 1:
            raise RuntimeError("once")
        return Gaussian(0.5)(A, B)

    shared = SharedCacheMatrix(KernelMatrix(FunctionKernel(kernel), Points(X)), 10**6, 1)
    everything, rows = np.arange(40), np.arange(0, 40, 2)

    def read(_):
        out = np.empty((20, 40), dtype=np.float32)
        return shared.float32_columns(everything).fill(rows, out, np.arange(20)), out

    with pytest.raises(RuntimeError, match="once"):
        read(0)
    calls[1:] = []
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(read, range(8)))
    assert sum(computed for computed, _ in results) == sum(calls[1:]) == 20 * 40
    for _, out in results:
        np.testing.assert_allclose(out, Gaussian(0.5)(X)[rows], rtol=1e-6)


def test_threads_waiting_for_shared_rows_continue():
    release, entered = threading.Event(), threading.Event()

    def kernel(A, B):
        entered.set()
        assert release.wait(10)
        return Gaussian(0.5)(A, B)

    shared = SharedCacheMatrix(KernelMatrix(FunctionKernel(kernel), Points(samples())), 10**6, 1)
    computed = {}

    def hold(name, rows):
        computed[name] = shared.hold(np.array(rows))

    computing = threading.Thread(target=hold, args=("first", [0, 1]), daemon=True)
    waiting = threading.Thread(target=hold, args=("second", [1, 0]), daemon=True)
    computing.start()
    assert entered.wait(10)
    waiting.start()
    deadline = time.monotonic() + 10
    while not shared._changed._waiters and time.monotonic() < deadline:
        time.sleep(0.001)
    release.set()
    for thread in (computing, waiting):
        thread.join(10)
    assert computed == {"first": 24, "second": 0}
