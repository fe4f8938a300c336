"""A lower bound on the time of any kernel solver, measured on the same computer with the same number of threads.

Even with a known solution, verifying it takes the kernel values of all samples with the support vectors, in single
precision, the free coefficients (a Cholesky factorisation in double precision), and one pass over the data. The time of
a fit divided by this sum bounds the possible speed-up.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy import linalg, sparse
from threadpoolctl import threadpool_limits

from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix

#: Minimum seconds of a measurement, and seconds after which a single pass is cut off.
MIN_SECONDS, MAX_SECONDS = 0.2, 2.0

#: Size of the largest factorisation that is measured; larger ones are extrapolated.
MAX_FACTOR_SIZE = 4000

#: Rows of a block of kernel values, and columns of one of the matrix product.
BLOCK = 512


@dataclass(frozen=True)
class Limit:
    """The parts of the lower bound, in seconds.

    Attributes
    ----------
    kernel_seconds : float
        For `values` kernel values, by the faster method `way`.
    cholesky_seconds : float
        For the free coefficients of all pairs of classes.
    reading_seconds : float
        For reading the data once.
    rates : dict
        Kernel values per second of each method.
    """

    kernel_seconds: float
    cholesky_seconds: float
    reading_seconds: float
    values: int
    way: str
    rates: dict[str, float]

    @property
    def seconds(self) -> float:
        """The lower bound."""
        return self.kernel_seconds + self.cholesky_seconds + self.reading_seconds


def measure_limit(
    X: Any, gamma: float, support: np.ndarray, values: int, free_by_pair: list[int], threads: int
) -> Limit:
    """Measure the lower bound of a problem whose solution has these support vectors."""
    with threadpool_limits(threads):
        rates = {"fused rows": fused_rate(X, gamma, support, threads)}
        rates["matrix product and exp"] = product_rate(X, gamma, support, threads)
        way = max(rates, key=lambda name: rates[name])
        return Limit(
            kernel_seconds=values / rates[way],
            cholesky_seconds=cholesky_seconds(free_by_pair, threads),
            reading_seconds=reading_seconds(X),
            values=values,
            way=way,
            rates=rates,
        )


def fused_rate(X: Any, gamma: float, support: np.ndarray, threads: int) -> float:
    """Return the kernel values per second of maxmargin's compiled kernel rows."""
    matrix = KernelMatrix(Gaussian(gamma), Points(X), threads)
    columns = matrix.float32_columns(np.asarray(support, dtype=np.int64))
    out = np.empty((min(BLOCK, matrix.size), len(support)), dtype=np.float32)
    slots = np.arange(len(out))

    def block(start: int) -> int:
        rows = np.arange(start, min(start + BLOCK, matrix.size))
        columns.fill(rows, out, slots[: len(rows)])
        return len(rows) * len(support)

    return best_rate(block, range(0, matrix.size, BLOCK))


def product_rate(X: Any, gamma: float, support: np.ndarray, threads: int) -> float:
    """Return the kernel values per second of products with blocks of support vectors followed by exp, in NumPy.

    Two additional features hold the squared norms, so that the product is the exponent.
    """
    left, right = _exponent_factors(X, gamma, support)
    panels = [np.ascontiguousarray(right[start : start + BLOCK].T) for start in range(0, len(right), BLOCK)]
    rows_per_request = 2048
    work = [(panel, start) for panel in panels for start in range(0, left.shape[0], rows_per_request)]

    def block(position: int) -> int:
        panel, start = work[position]
        values = left[start : start + rows_per_request] @ panel
        np.exp(values, out=values)
        return int(values.size)

    if threads == 1:
        return best_rate(block, range(len(work)))
    with ThreadPoolExecutor(threads) as pool, threadpool_limits(1):
        strides = range(0, len(work), threads)
        return best_rate(
            lambda start: sum(pool.map(block, range(start, min(start + threads, len(work))))), strides
        )  # fmt: skip


def _exponent_factors(X: Any, gamma: float, support: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return float32 factors L and R with L Rᵀ = −γ‖x − z‖²; L stays sparse where the data are."""
    if sparse.issparse(X):
        norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        extra = sparse.csr_matrix(np.column_stack([-gamma * norms, np.ones(len(norms))]))
        left = sparse.hstack([X, extra], format="csr", dtype=np.float32)
        chosen = X[support].toarray()
    else:
        norms = np.einsum("ij,ij->i", X, X)
        left = np.column_stack([X, -gamma * norms, np.ones(len(norms))]).astype(np.float32)
        chosen = X[support]
    right = np.column_stack([2 * gamma * chosen, np.ones(len(support)), -gamma * norms[support]])
    return left, right.astype(np.float32)


def cholesky_seconds(free_by_pair: list[int], threads: int) -> float:
    """Return the seconds to factorise a matrix for each pair; sizes that are not measured scale with the cube.

    Small matrices are faster on one thread, large ones on several: the faster counts.
    """
    largest = max(free_by_pair, default=0)
    if largest == 0:
        return 0.0
    size = min(largest, MAX_FACTOR_SIZE)
    matrix = np.full((size, size), 0.5)
    np.fill_diagonal(matrix, 1.0)
    seconds = np.inf
    for count in {1, threads}:
        with threadpool_limits(count):
            seconds = min(seconds, shortest(lambda: linalg.cholesky(matrix, lower=True, check_finite=False)))
    return float(seconds) * sum((free / size) ** 3 for free in free_by_pair)


def reading_seconds(X: Any) -> float:
    """Return the seconds to read the data once."""
    values = X.data if sparse.issparse(X) else X
    return shortest(lambda: values.sum())


def best_rate(block: Callable[[int], int], starts: range) -> float:
    """Return the highest rate of several passes over blocks; a long pass is cut off."""
    block(starts[0])  # warm up
    best, began = 0.0, perf_counter()
    while perf_counter() - began < MIN_SECONDS:
        values, started = 0, perf_counter()
        for start in starts:
            values += block(start)
            if perf_counter() - started > MAX_SECONDS:
                break
        best = max(best, values / (perf_counter() - started))
    return best


def shortest(work: Callable[[], Any]) -> float:
    """Return the minimum time of several runs: at least four, unless they take long."""
    best, began, runs = np.inf, perf_counter(), 0
    while perf_counter() - began < (MIN_SECONDS / 4 if runs >= 4 else MAX_SECONDS):
        started = perf_counter()
        work()
        best, runs = min(best, perf_counter() - started), runs + 1
    return float(best)
