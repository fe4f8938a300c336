"""Validation of training data: samples, targets, labels, and weights of samples and classes.

Numbers keep their precision, float64 or float32. Strings, objects and data frames are passed to a user's kernel
function unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, isinf
from numbers import Real
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.kernels.device_rows import DeviceRows
from maxmargin.kernels.native_kernel import feature_gammas
from maxmargin.kernels.points import compress_rows, float64_batches
from maxmargin.machines.validation.parameters import check_choice, check_number
from maxmargin.machines.validation.samples import MANY_VALUES
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.matrices.numerics import inner

#: Dense data of at least this many values are compressed if they are mostly zeros, which is tested on a sample of rows.
MIN_VALUES_TO_COMPRESS, ROWS_TESTED_FOR_ZEROS = 10**6, 1000

#: The largest fraction of nonzero values at which compressed rows are faster and take at most half the memory.
MAX_SPARSE_FRACTION = 0.2

#: Rows whose mean is the centre of a variance, and the largest ratio of the square of the mean around it to the sum of
#: squares at which the difference of the two has all digits but one.
ROWS_FOR_A_CENTRE, MAX_SHIFT = 1000, 0.1


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


def count_samples(X: Any) -> int:
    """Return the number of samples of any kind."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def check_lengths(X: Any, y: Any) -> None:
    """Raise unless there are as many targets as samples."""
    counts = [count_samples(X), len(y)]
    if counts[0] != counts[1]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {counts}")


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
    if sparse.issparse(X) or isinstance(X, DeviceRows) or X.size < MIN_VALUES_TO_COMPRESS:
        return X
    some = X[:: max(1, len(X) // ROWS_TESTED_FOR_ZEROS)]
    if np.count_nonzero(some) > MAX_SPARSE_FRACTION * some.size:
        return X
    X = np.ascontiguousarray(X)
    arrays = compress_rows(X, X.dtype, MAX_SPARSE_FRACTION, threads)
    if arrays is None:
        return X
    starts, features, stored = arrays
    short = starts.astype(np.int32) if starts[-1] < 2**31 else starts
    return sparse.csr_array((stored, features, short), shape=X.shape)


def resolve_gamma(gamma: Any, X: Any, weights: Floats, threads: Callable[[], int] = lambda: 1) -> float | Floats:
    """Return gamma of a kernel: a number, or one for each feature.

    "scale" is 1 / (features · variance), "auto" 1 / features of a table. `threads` says how many may be used.
    """
    if not isinstance(gamma, str):
        if np.ndim(gamma):
            return _gammas_of(gamma, X.shape[1])
        return check_number("gamma", gamma, least=0)
    if check_choice("gamma", gamma, ("scale", "auto")) == "auto":
        return 1.0 / float(X.shape[1])
    variance = weighted_variance(X, weights, threads() if X.size >= MANY_VALUES else 1)
    if not np.isfinite(variance):
        raise ValueError(NON_FINITE_MESSAGE)
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def refuse_array(gamma: Any, kernel: Any) -> None:
    """Raise if there is a gamma for each feature, but a kernel that does not take its gamma from the estimator."""
    if np.ndim(gamma):
        given = repr(kernel) if isinstance(kernel, str) else "a kernel object or function"
        raise ValueError(
            f"a gamma for each feature is for kernel='rbf', 'laplacian' or 'chi_squared', not for {given}; give it to "
            "the kernel object itself, for example Gaussian(gamma=[0.5, 2.0])"
        )


def _gammas_of(gamma: Any, features: int) -> Floats:
    gammas = feature_gammas(gamma)
    if len(gammas) != features:
        raise ValueError(f"gamma has {len(gammas)} values, one for each feature, but X has {features} features")
    return gammas


def weighted_variance(X: Any, weights: Floats, threads: int = 1) -> float:
    """Return the variance of all entries, each row counted as often as its weight says.

    With equal weights this is ``X.var()``, scikit-learn's; so a weight of 2 really is the same as a repeated row.
    """
    share = weights / (weights.sum() * X.shape[1])
    if isinstance(X, DeviceRows):
        return X.variance(share)
    if not sparse.issparse(X):
        return _dense_variance(np.ascontiguousarray(X), share, threads)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = sum(inner(share[rows], _row_sums(part)) for rows, part in float64_batches(X))
        squares = sum(inner(share[rows], _row_sums(part.multiply(part))) for rows, part in float64_batches(X))
        return squares - mean * mean


def _dense_variance(X: Any, share: Floats, threads: int) -> float:
    """Return the variance, in one pass around the mean of some rows if that is close to the mean of all."""
    some = slice(None, None, max(1, len(X) // ROWS_FOR_A_CENTRE))
    chosen = np.ascontiguousarray(X[some])
    centre, taken = 0.0, float(share[some].sum())
    if len(chosen) < len(X) and taken > 0.0:
        centre = _native.weighted_sums(chosen, share[some] / (taken * X.shape[1]), 0.0, threads)[0]
    mean, squares = _native.weighted_sums(X, share, centre, threads)
    if mean * mean <= MAX_SHIFT * squares:
        return squares - mean * mean
    return float(_native.weighted_sums(X, share, centre + mean, threads)[1])


def _row_sums(part: Any) -> Floats:
    return np.asarray(part.sum(axis=1)).ravel()


@dataclass(frozen=True)
class Labels:
    """The classes of training rows.

    Attributes
    ----------
    classes : array
        The labels that occur, sorted.
    numbers : int array
        The class of each row by its number, −1 for rows without weight, which are left out.
    taking_part : int array
        The rows of all classes, in order.
    """

    classes: Any
    numbers: Indices
    taking_part: Indices

    @cached_property
    def members(self) -> list[Indices]:
        """The rows of each class."""
        codes = self.numbers[self.taking_part]
        return [self.taking_part[codes == c] for c in range(len(self.classes))]


def number_classes(y: Any, weights: Floats, lone: Callable[[Any], str]) -> Labels:
    """Return the classes of the rows with a weight, or raise: `lone` says what is wrong with a single one."""
    taking_part = np.flatnonzero(weights > 0)
    classes, codes = _two_classes(y[taking_part]) or np.unique(y[taking_part], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(lone(classes.tolist()[0]))
    numbers = np.full(len(y), -1)
    numbers[taking_part] = codes
    return Labels(classes, numbers, taking_part)


def _two_classes(y: Any) -> tuple[Any, Any] | None:
    """Return two classes and which one each label is, None if they are not two numbers: quicker than to sort them."""
    if y.dtype.kind not in "biuf" or not len(y):
        return None
    differs = y != y[0]
    other = int(differs.argmax())
    if not differs[other] or not np.array_equal(differs, y == y[other]):
        return None
    if y[0] < y[other]:
        return y[[0, other]], differs.astype(np.intp)
    return y[[other, 0]], np.logical_not(differs).astype(np.intp)


def single_class_message(label: Any) -> str:
    """Return the error message about data of a single class."""
    return (
        "Invalid input - all samples with positive weights belong to the same class: training needs at least two "
        f"classes, but there is only one class, {label!r}"
    )


def check_sample_weights(sample_weight: Any, X: Any) -> Floats:
    """Return the weight of each sample, 1 by default; 0 leaves a row out, and so does less, as in scikit-learn."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    if isinstance(sample_weight, Real):
        sample_weight = np.full(X.shape[0], sample_weight)
    weights: Floats = np.asarray(sample_weight, dtype=np.float64)
    if not np.isfinite(weights).all():
        raise ValueError("Input sample_weight contains NaN or infinity; every weight must be a number")
    if weights.shape != X.shape[:1]:
        raise ValueError(f"sample_weight.shape == {weights.shape}, but there must be one weight for each row of X")
    weights = np.maximum(weights, 0.0)
    if not weights.any():
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. Rows of such weights are left out, "
            "so sample_weight must contain at least one number above 0"
        )
    return weights


def check_costs(cost: float, weights: Floats) -> Floats:
    """Return cost · weight of each sample, or raise: their sum and the inverse of each must be numbers."""
    used = weights > 0
    if isinf(cost):
        return np.where(used, cost, 0.0)
    with np.errstate(over="ignore", under="ignore"):
        costs: Floats = cost * weights
        most = costs.sum()
    least = float(costs.min(initial=1.0, where=used))
    if not isfinite(most) or least == 0.0 or isinf(1.0 / least):
        raise ValueError("the cost times the sample weights overflows or underflows float64")
    return costs


def class_factors(class_weight: Any, classes: Any, codes: Indices, weights: Floats) -> Floats:
    """Return the factor of each class: as given, 1 by default, or "balanced" by the weights of its samples."""
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",))
        totals = np.bincount(codes, weights=weights)
        balanced: Floats = totals.sum() / (len(classes) * totals)
        return balanced
    if class_weight is None:
        return np.ones(len(classes))
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be a dict, 'balanced' or None, not {class_weight!r}")
    labels = classes.tolist()
    missing = [label for label in labels if label not in class_weight]
    if missing and len(class_weight) != len(labels) - len(missing):  # as scikit-learn: probably a mistyped label
        unknown = [label for label in class_weight if label not in labels]
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not one of the classes {labels}")
    factors = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ValueError(f"class_weight must be above 0 for every class, not {class_weight!r}")
    return factors
