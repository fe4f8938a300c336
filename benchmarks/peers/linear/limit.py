"""A lower bound on the time of one pass over the data, measured on the same computer with the same number of threads.

Dense data are read once (a dot product of the values with themselves). Sparse rows also gather a weight for each value,
as the product of the matrix with a vector does. Both use the data as given, in double precision.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.peers.limit import shortest


@dataclass(frozen=True)
class PassLimit:
    """Seconds of one pass, the operation, and the megabytes of the data."""

    seconds: float
    way: str
    data_mb: float


def measure_pass(X: Any, threads: int) -> PassLimit:
    """Measure one pass over the rows, divided among the threads."""
    bounds = np.linspace(0, X.shape[0], threads + 1).astype(int)
    parts = [_rows(X, start, end) for start, end in pairwise(bounds)]
    if sparse.issparse(X):
        weights = np.random.default_rng(0).normal(size=X.shape[1])
        way, size = "gather", X.data.nbytes + X.indices.nbytes + X.indptr.nbytes

        def visit(part: Any) -> Any:
            return part @ weights
    else:
        way, size = "read", X.nbytes

        def visit(part: Any) -> Any:
            return np.dot(part.reshape(-1), part.reshape(-1))

    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        seconds = shortest(lambda: list(pool.map(visit, parts)))
    return PassLimit(seconds, way, size / 2**20)


def _rows(X: Any, start: int, end: int) -> Any:
    """Return consecutive rows without copying values."""
    if not sparse.issparse(X):
        return X[start:end]
    first, last = X.indptr[start], X.indptr[end]
    shape = (end - start, X.shape[1])
    return sparse.csr_matrix((X.data[first:last], X.indices[first:last], X.indptr[start : end + 1] - first), shape)
