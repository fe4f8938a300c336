"""What comes in at the door: tables of numbers, or samples of any kind for a user's own kernel function.

Numbers stay as they are where they are float64 or float32; a float32 array is never copied to double precision as a
whole. Strings, objects and frames are handed on to the function: it alone knows what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats
from maxmargin.estimators.validation.parameters import check_choice, check_number
from maxmargin.kernels.points import compress_rows, float64_batches
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.numerics import inner

#: Dense data of so many values are looked at for zeros, at about so many rows of them first.
MANY, LOOKED_AT = 10**6, 1000

#: If at most this part of them is not zero, passes over compressed rows are quicker, and the rows no larger than half.
SPARSE = 0.2


def is_table(X: Any) -> bool:
    """Whether these are rows of numbers: a two-dimensional array or list, or a sparse matrix. A frame is a frame."""
    if sparse.issparse(X):
        return True
    if isinstance(X, list | tuple):
        try:
            X = np.asarray(X)
        except ValueError:  # samples of unequal lengths
            return False
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"


def as_objects(X: Any) -> Any:
    """Return samples of any kind so that rows can be taken: lists as one-dimensional arrays of their items."""
    if not isinstance(X, list | tuple):
        return X
    items = np.empty(len(X), dtype=object)
    for k, item in enumerate(X):
        items[k] = item
    return items


def check_targets(validate: Callable[..., tuple[Any, Any]], X: Any, y: Any, **options: Any) -> tuple[Any, Floats]:
    """Return samples and targets validated by `validate`: a vector, or a table if there are several outputs."""
    if sparse.issparse(y):
        raise TypeError("targets must be dense; convert them with .toarray()")
    shape = np.asarray(y).shape
    several = len(shape) == 2 and shape[1] > 1  # a single column becomes a vector, with scikit-learn's warning
    X, targets = validate(X, y, y_numeric=True, multi_output=several, **options)
    return X, np.asarray(targets, dtype=np.float64)


def without_zeros(X: Any, threads: int = 1) -> Any:
    """Return many dense rows that are mostly zeros as compressed rows, and all others as they are.

    The copy is smaller than one in single precision would be, and no number changes.
    """
    if sparse.issparse(X) or X.size < MANY:
        return X
    some = X[:: max(1, len(X) // LOOKED_AT)]
    if np.count_nonzero(some) > SPARSE * some.size:
        return X
    X = np.ascontiguousarray(X)
    arrays = compress_rows(X, X.dtype, SPARSE, threads)
    if arrays is None:
        return X
    starts, features, stored = arrays
    short = starts.astype(np.int32) if starts[-1] < 2**31 else starts
    return sparse.csr_array((stored, features, short), shape=X.shape)


def resolve_gamma(gamma: Any, X: Any, weights: Floats) -> float:
    """Return gamma of a kernel: a number; for "scale" 1 / (features · variance), for "auto" 1 / features of a table."""
    if not isinstance(gamma, str):
        return check_number("gamma", gamma, least=0)
    if check_choice("gamma", gamma, ("scale", "auto")) == "auto":
        return 1.0 / float(X.shape[1])
    variance = weighted_variance(X, weights)
    if not np.isfinite(variance):
        raise ValueError(NON_FINITE_MESSAGE)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def weighted_variance(X: Any, weights: Floats) -> float:
    """Return the variance of all entries, each row counted as often as its weight says.

    With equal weights this is ``X.var()``, scikit-learn's; so a weight of 2 really is the same as a repeated row.
    """
    share = weights / (weights.sum() * X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = sum(inner(share[rows], _row_sums(part)) for rows, part in float64_batches(X))
        if not sparse.issparse(X):
            return sum(inner(share[rows], _row_sums(np.square(part - mean))) for rows, part in float64_batches(X))
        squares = sum(inner(share[rows], _row_sums(part.multiply(part))) for rows, part in float64_batches(X))
        return squares - mean * mean


def _row_sums(part: Any) -> Floats:
    return np.asarray(part.sum(axis=1)).ravel()
