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

from benchmarks.peers.libraries import Parameters
from benchmarks.peers.verification import matrix_of

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


#: Reads a clock, in seconds.
Clock = Callable[[], float]


def measure_limit(
    X: Any,
    parameters: Parameters,
    support: np.ndarray,
    values: int,
    free_by_pair: list[int],
    clock: Clock = perf_counter,
) -> Limit:
    """Measure the lower bound of a problem whose solution has these support vectors."""
    threads = parameters.threads
    with threadpool_limits(threads):
        rates = {"fused rows": fused_rate(X, parameters, support, clock)}
        if parameters.kernel != "precomputed":
            rates["matrix product and function"] = product_rate(X, parameters, support, clock)
        way = max(rates, key=lambda name: rates[name])
        return Limit(
            kernel_seconds=values / rates[way],
            cholesky_seconds=cholesky_seconds(free_by_pair, threads, clock),
            reading_seconds=reading_seconds(X, clock),
            values=values,
            way=way,
            rates=rates,
        )


def fused_rate(X: Any, parameters: Parameters, support: np.ndarray, clock: Clock) -> float:
    """Return the kernel values per second of maxmargin's compiled kernel rows; precomputed ones are copied."""
    matrix = matrix_of(X, parameters)
    columns = matrix.float32_columns(np.asarray(support, dtype=np.int64))
    out = np.empty((min(BLOCK, matrix.size), len(support)), dtype=np.float32)
    slots = np.arange(len(out))

    def block(start: int) -> int:
        rows = np.arange(start, min(start + BLOCK, matrix.size))
        columns.fill(rows, out, slots[: len(rows)])
        return len(rows) * len(support)

    return best_rate(block, range(0, matrix.size, BLOCK), clock)


def product_rate(X: Any, parameters: Parameters, support: np.ndarray, clock: Clock) -> float:
    """Return the kernel values per second of products with blocks of support vectors and a function, in NumPy."""
    left, right = _factors(X, parameters, support)
    panels = [np.ascontiguousarray(right[start : start + BLOCK].T) for start in range(0, len(right), BLOCK)]
    rows_per_request = 2048
    work = [(panel, start) for panel in panels for start in range(0, left.shape[0], rows_per_request)]

    def block(position: int) -> int:
        panel, start = work[position]
        values = left[start : start + rows_per_request] @ panel
        _apply(values, parameters)
        return int(values.size)

    threads = parameters.threads
    if threads == 1:
        return best_rate(block, range(len(work)), clock)
    with ThreadPoolExecutor(threads) as pool, threadpool_limits(1):
        strides = range(0, len(work), threads)
        return best_rate(
            lambda start: sum(pool.map(block, range(start, min(start + threads, len(work))))), strides, clock
        )  # fmt: skip


def _apply(values: np.ndarray, parameters: Parameters) -> None:
    """Compute kernel values from the products of `_factors`, in place."""
    if parameters.kernel == "rbf":
        np.exp(values, out=values)
    elif parameters.kernel == "poly":
        powers = values.copy() if parameters.degree > 1 else None
        for _ in range(parameters.degree - 1):
            values *= powers
    elif parameters.kernel == "sigmoid":
        np.tanh(values, out=values)


def _factors(X: Any, parameters: Parameters, support: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return float32 factors L and R; L Rᵀ is −γ‖x − z‖² for the RBF kernel, else γ x·z + coef0 (linear: x·z).

    Two additional features hold the squared norms or the constant. L stays sparse where the data are.
    """
    gamma = 1.0 if parameters.kernel == "linear" else parameters.gamma
    if sparse.issparse(X):
        norms, chosen = np.asarray(X.multiply(X).sum(axis=1)).ravel(), X[support].toarray()
    else:
        norms, chosen = np.einsum("ij,ij->i", X, X), X[support]
    ones, of_support = np.ones(len(norms)), np.ones(len(support))
    if parameters.kernel == "rbf":
        extra = np.column_stack([-gamma * norms, ones])
        right = np.column_stack([2 * gamma * chosen, of_support, -gamma * norms[support]])
    else:
        constant = 0.0 if parameters.kernel == "linear" else parameters.coef0
        extra = np.column_stack([constant * ones, 0.0 * ones])
        right = np.column_stack([gamma * chosen, of_support, of_support])
    if sparse.issparse(X):
        left = sparse.hstack([X, sparse.csr_matrix(extra)], format="csr", dtype=np.float32)
    else:
        left = np.column_stack([X, extra]).astype(np.float32)
    return left, right.astype(np.float32)


def cholesky_seconds(free_by_pair: list[int], threads: int, clock: Clock = perf_counter) -> float:
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
            seconds = min(seconds, shortest(lambda: linalg.cholesky(matrix, lower=True, check_finite=False), clock))
    return float(seconds) * sum((free / size) ** 3 for free in free_by_pair)


def reading_seconds(X: Any, clock: Clock) -> float:
    """Return the seconds to read the data once."""
    values = X.data if sparse.issparse(X) else X
    return shortest(lambda: values.sum(), clock)


def best_rate(block: Callable[[int], int], starts: range, clock: Clock) -> float:
    """Return the highest rate of several passes over blocks; a long pass is cut off."""
    block(starts[0])  # warm up
    best, began = 0.0, clock()
    while clock() - began < MIN_SECONDS:
        values, started = 0, clock()
        for start in starts:
            values += block(start)
            if clock() - started > MAX_SECONDS:
                break
        best = max(best, values / (clock() - started))
    return best


def shortest(work: Callable[[], Any], clock: Clock = perf_counter) -> float:
    """Return the minimum time of several runs: at least four, unless they take long."""
    best, began, runs = np.inf, clock(), 0
    while clock() - began < (MIN_SECONDS / 4 if runs >= 4 else MAX_SECONDS):
        started = clock()
        work()
        best, runs = min(best, clock() - started), runs + 1
    return float(best)
