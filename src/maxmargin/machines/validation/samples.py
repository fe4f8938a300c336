"""Validation of samples, targets and labels without scikit-learn: arrays and CSR, as files and generators give them."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse

#: Number types of samples that are kept.
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))

#: From this many values on, all are inspected by several threads.
MANY_VALUES = 2**18


def is_valid_table(X: Any, threads: Callable[[], int], check_finite: bool = True) -> bool:
    """Whether samples are an array or CSR of finite numbers, in float64 or float32, with a row and a column.

    `threads` returns how many threads may be used; it is called for many values.
    """
    if type(X) is not np.ndarray and not (sparse.issparse(X) and X.format == "csr"):
        return False
    if X.ndim != 2 or not X.shape[0] or not X.shape[1] or X.dtype not in FLOATS:
        return False
    if not check_finite:
        return True
    return _are_finite(X if type(X) is np.ndarray else X.data, threads)


def are_valid_targets(y: Any) -> bool:
    """Whether targets or labels are a vector of finite numbers."""
    if type(y) is not np.ndarray or y.ndim != 1 or not len(y):
        return False
    return y.dtype.kind in "biu" or (y.dtype in FLOATS and _are_finite(y))


def _are_finite(values: Any, threads: Callable[[], int] = lambda: 1) -> bool:
    """Whether all values are finite, or, of values that are not contiguous, their sum."""
    if not values.flags.c_contiguous:
        return _has_finite_sum(values)
    return _native.all_finite(values.reshape(-1), threads() if values.size >= MANY_VALUES else 1)


def _has_finite_sum(values: Any) -> bool:
    """Whether the sum is finite, which takes no memory: then all values are; a sum that is not may have overflowed."""
    with np.errstate(over="ignore", invalid="ignore"):
        return isfinite(values.sum())


def check_samples(X: Any) -> Any:
    """Return a table of numbers as a C-ordered array or CSR, in float64 or float32, or raise."""
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if X.ndim != 2 or not X.shape[0] or not X.shape[1]:
        raise ValueError(f"samples must be a table of at least one row and one column, not of the shape {X.shape}")
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: samples are tables of real numbers")
    X = X if X.dtype in FLOATS else X.astype(np.float64)
    if not sparse.issparse(X):
        X = np.ascontiguousarray(X)
    values = X.data if sparse.issparse(X) else X
    if not _has_finite_sum(values) and not np.isfinite(values).all():
        raise ValueError("the samples contain NaN or infinity; replace these values, or leave out their rows")
    return X


def check_vector(values: Any, count: int | None = None, name: str = "y") -> Any:
    """Return one value for each of `count` samples as an array of one dimension."""
    values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {values.shape} instead.")
    if count is not None and len(values) != count:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[count, len(values)]}")
    return values


def check_finite_targets(y: Any) -> Any:
    """Return targets or labels, or raise if some are NaN or infinite."""
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y contains NaN or infinity; leave out these samples")
    return y


def are_labels(y: Any) -> bool:
    """Whether values are labels without a closer look: text, or whole numbers."""
    return y.dtype.kind in "biuUS" or (y.dtype.kind == "f" and np.array_equal(y, np.rint(y)))


def check_labels(y: Any) -> None:
    """Raise if numbers are not labels of classes."""
    if y.dtype.kind in "fc" and not are_labels(y):
        raise ValueError("Unknown label type: numbers that are labels of classes must be whole")


def check_random_state(seed: Any) -> Any:
    """Return a random generator: NumPy's own for None, one of a seed, or the one that is given."""
    if seed is None or seed is np.random:
        return np.random.mtrand._rand
    if isinstance(seed, int | np.integer):
        return np.random.RandomState(seed)
    if isinstance(seed, np.random.RandomState):
        return seed
    raise ValueError(f"random_state must be None, a whole number or a numpy.random.RandomState, not {seed!r}")
