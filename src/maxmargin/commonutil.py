"""What `maxmargin.svmutil` and `maxmargin.liblinearutil` share: samples, metrics and scaling of their packages.

- `svm_read_problem`, `evaluations`, `evaluations_scipy`, `csr_find_scale_param`, `csr_scale`: LIBSVM's functions, with
  its arguments and return values
- `feature_rows`, `target_array`: samples and labels in the forms that LIBSVM's package takes, as arrays
- `program_errors`: errors of the drop-in programs as ValueError
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import IO, Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.cli.libsvm.program_data import FeatureRows
from maxmargin.cli.libsvm.program_options import Option, ProgramError, UsageError, split_options
from maxmargin.cli.metrics import RunningMetrics
from maxmargin.datasets.compressed_rows import CompressedRows
from maxmargin.datasets.libsvm_reader import load_rows

#: Largest index of a feature: LIBSVM's have 32 bits.
MAX_INDEX = 2**31 - 2

__all__ = ["csr_find_scale_param", "csr_scale", "evaluations", "svm_read_problem"]


def svm_read_problem(data_source: str | os.PathLike[str] | IO[Any], return_scipy: bool = False) -> tuple[Any, Any]:
    r"""Read samples and labels in LIBSVM format.

    Parameters
    ----------
    data_source : path or file
        A path (also of a compressed file), or a file that is open in text or binary mode.
    return_scipy : bool, default=False
        Whether to return arrays instead of lists.

    Returns
    -------
    y : list of float, or float array
    x : list of dict from indices to values, or csr_matrix
        Columns of the matrix start at index 1, or at index 0 if it occurs.

    Raises
    ------
    DataFileError
        If a line is malformed; the message names the file, the line and the problem.

    Examples
    --------
    >>> import io
    >>> from maxmargin.svmutil import svm_read_problem
    >>> svm_read_problem(io.StringIO("+1 1:0.5 3:2\n-1 2:1\n"))
    ([1.0, -1.0], [{1: 0.5, 3: 2.0}, {2: 1.0}])
    """
    source: Any = io.BytesIO(_read_bytes(data_source)) if hasattr(data_source, "read") else data_source
    rows, y = load_rows(source, zero_based=True)
    if not return_scipy:
        columns, values, ends = rows.columns.tolist(), rows.values.tolist(), rows.starts.tolist()
        samples = [dict(zip(columns[start:stop], values[start:stop], strict=True)) for start, stop in pairwise(ends)]
        return y.tolist(), samples
    X = rows if not rows.columns.min(initial=1) else rows.without_first_column
    matrix = X.matrix()
    matrix.eliminate_zeros()
    return y, matrix


def _read_bytes(file: Any) -> bytes:
    """Return the rest of a file that is open in text or binary mode."""
    content: str | bytes = file.read()
    return content.encode() if isinstance(content, str) else content


def evaluations(ty: Any, pv: Any, useScipy: bool = True) -> tuple[float, float, float]:  # noqa: N803, RUF100  # LIBSVM's
    """Return accuracy in per cent, mean squared error and squared correlation coefficient of predictions.

    Parameters
    ----------
    ty, pv : array-like of shape (n_samples,)
        True and predicted values.
    useScipy : bool, default=True
        Accepted for LIBSVM's sake; the values are the same.

    Returns
    -------
    tuple of float
        The correlation is NaN if the true or the predicted values are constant.

    Examples
    --------
    >>> from maxmargin.svmutil import evaluations
    >>> evaluations([1, -1, 1, 1], [1, -1, -1, 1])
    (75.0, 1.0, 0.3333333333333333)
    """
    truth, predicted = target_array(ty), target_array(pv)
    if len(truth) != len(predicted):
        raise ValueError("len(ty) must be equal to len(pv)")
    metrics = RunningMetrics()
    metrics.add(predicted, truth)
    return metrics.accuracy, metrics.mean_squared_error, metrics.squared_correlation


def evaluations_scipy(ty: Any, pv: Any) -> tuple[float, float, float]:
    """Return `evaluations` of two arrays; lists are a TypeError, as in LIBSVM's package."""
    if not (isinstance(ty, np.ndarray) and isinstance(pv, np.ndarray)):
        raise TypeError("type of ty and pv must be ndarray")
    return evaluations(ty, pv)


def csr_find_scale_param(x: Any, lower: float = -1, upper: float = 1) -> dict[str, Floats]:
    """Return the parameters that scale each feature to a range, for `csr_scale`.

    Parameters
    ----------
    x : csr_matrix of shape (n_samples, n_features)
    lower, upper : float, default=-1 and 1

    Returns
    -------
    dict
        ``coef`` and ``offset`` of each feature: scaled = x · coef + offset. Both are 0 for a constant feature.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from maxmargin.svmutil import csr_find_scale_param, csr_scale
    >>> x = csr_matrix([[0.0, 1.0], [4.0, 3.0]])
    >>> csr_scale(x, csr_find_scale_param(x, lower=0)).toarray()
    array([[0., 0.],
           [1., 1.]])
    """
    _check_csr(x)
    if not lower < upper:
        raise ValueError(f"lower must be below upper, but they are {lower} and {upper}")
    least, largest = (getattr(x, name)(axis=0).toarray().ravel() for name in ("min", "max"))
    coef = (largest - least) / (upper - lower)
    coef[coef != 0] = 1.0 / coef[coef != 0]
    offset = np.where(coef == 0, 0.0, lower - least * coef)
    if np.count_nonzero(offset) * x.shape[0] > 3 * x.nnz:
        print(
            "WARNING: The #nonzeros of the scaled data is at least 2 times larger than the original one.\n"
            "If feature values are non-negative and sparse, set lower=0 rather than the default lower=-1.",
            file=sys.stderr,
        )
    return {"coef": coef, "offset": offset}


def csr_scale(x: Any, scale_param: Mapping[str, Floats]) -> Any:
    """Return scaled samples; `scale_param` is the result of `csr_find_scale_param`.

    Features that have no parameters, because they did not occur in the data of these, become 0.
    """
    _check_csr(x)
    rows, width = x.shape
    coef, offset = (np.asarray(scale_param[name], dtype=np.float64) for name in ("coef", "offset"))
    if len(coef) != len(offset):
        raise ValueError(f"coef and offset must have the same length, not {len(coef)} and {len(offset)}")
    if len(coef) != width:
        print("WARNING: The dimension of scaling parameters and feature number do not match.", file=sys.stderr)
        coef, offset = (np.pad(values[:width], (0, max(0, width - len(values)))) for values in (coef, offset))
    shift = sparse.vstack([sparse.csr_matrix(offset[None, :])] * rows, format="csr", dtype=x.dtype)
    scaled = sparse.csr_matrix(x @ sparse.diags(coef) + shift)
    if scaled.nnz > x.nnz:
        print(
            f"WARNING: original #nonzeros {x.nnz}\n       > new      #nonzeros {scaled.nnz}\n"
            "If feature values are non-negative and sparse, get scale_param by setting lower=0 rather than the default "
            "lower=-1.",
            file=sys.stderr,
        )
    return scaled


def _check_csr(x: Any) -> None:
    if not (sparse.issparse(x) and x.format == "csr" and min(x.shape)):
        raise ValueError("x must be a CSR matrix with rows and columns; scipy.sparse.csr_matrix(x) makes one")


def target_array(y: Any) -> Floats:
    """Return labels or targets as an array, or raise."""
    if not isinstance(y, list | tuple | np.ndarray):
        raise TypeError(f"type of y: {type(y)} is not supported!")
    try:
        values = np.asarray(y, dtype=np.float64)
    except ValueError:
        raise ValueError("the labels must be numbers") from None
    if values.ndim != 1:
        raise ValueError(f"y must have one label for each sample, not the shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("a label is NaN or infinite; leave out this sample")
    return values


def feature_rows(x: Any, is_kernel: bool = False) -> FeatureRows:
    """Return samples in one of LIBSVM's forms: a list of samples, an array, or a sparse matrix.

    A sample in a list is a list or a tuple of values, a dict from indices to values, an array, or a tuple of the array
    of positions and the array of values. Values without an index have the indices from 1 on, or from 0 on for a
    precomputed kernel.
    """
    if not (sparse.issparse(x) or isinstance(x, list | tuple | np.ndarray)):
        raise TypeError(f"type of x: {type(x)} is not supported!")
    table = _as_table(x)
    rows = _rows_of_samples(x, is_kernel) if table is None else _rows_of_table(table, is_kernel)
    if not np.isfinite(rows.X.data if sparse.issparse(rows.X) else rows.X).all():
        raise ValueError("a sample has a value that is NaN or infinite; replace it, or leave out the sample")
    return rows


def _as_table(x: Any) -> Any:
    """Return a CSR matrix or an array of two dimensions; None if the samples have their own indices or lengths."""
    if sparse.issparse(x):
        matrix = sparse.csr_matrix(x, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    if not isinstance(x, np.ndarray) and any(isinstance(sample, Mapping) for sample in x):
        return None
    try:
        table = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):  # samples of several lengths, or no numbers
        return None
    return table if table.ndim == 2 else None


def _rows_of_table(table: Any, is_kernel: bool) -> FeatureRows:
    """Return the rows of a matrix; the largest index of an array is that of its last column with values."""
    if not min(table.shape):
        raise ValueError("x has no samples or no features")
    width = table.shape[1]
    if is_kernel:
        return FeatureRows(table, width - 1, True)
    return FeatureRows(
        table, width if sparse.issparse(table) else int(np.flatnonzero(table.any(axis=0)).max(initial=0)) + 1, False
    )


def _rows_of_samples(x: Any, is_kernel: bool) -> FeatureRows:
    """Return the rows of samples with indices of their own."""
    samples = [_indices_and_values(sample, 0 if is_kernel else 1) for sample in x]
    if not samples:
        raise ValueError("x has no samples")
    columns, values = (np.concatenate(parts) for parts in zip(*samples, strict=True))
    starts = np.concatenate([[0], np.cumsum([len(indices) for indices, _ in samples])])
    if is_kernel:
        width = int(columns.max(initial=0)) + 1
        return FeatureRows(CompressedRows(values, columns, starts, width).dense(), width - 1, True)
    starts = np.concatenate([[0], np.cumsum(values != 0)])[starts]
    columns, values = columns[values != 0], values[values != 0]
    return FeatureRows.of(CompressedRows(values, columns, starts, max(2, int(columns.max(initial=0)) + 1)))


def _indices_and_values(sample: Any, first: int) -> tuple[Any, Floats]:
    """Return the indices, in ascending order, and the values of a sample."""
    try:
        if isinstance(sample, Mapping):
            indices: Any = np.array(list(sample), dtype=np.int64)
            values = np.array(list(sample.values()), dtype=np.float64)
        elif isinstance(sample, tuple) and len(sample) == 2 and all(isinstance(part, np.ndarray) for part in sample):
            indices, values = sample[0].astype(np.int64) + first, np.asarray(sample[1], dtype=np.float64)
        elif isinstance(sample, list | tuple | np.ndarray):
            values = np.asarray(sample, dtype=np.float64)
            indices = np.arange(first, first + len(values))
        else:
            raise TypeError("xi should be a dictionary, list, tuple, 1-d numpy array, or tuple of (index, data)")
    except (ValueError, OverflowError):
        raise ValueError("a sample must consist of numbers, with integers as indices") from None
    if indices.shape != values.shape or values.ndim != 1:
        raise ValueError(f"a sample has {indices.size} indices for values of the shape {values.shape}")
    if indices.min(initial=0) < 0 or indices.max(initial=0) > MAX_INDEX:
        raise ValueError(f"the index of a feature must be from 0 to {MAX_INDEX}")
    order = np.argsort(indices, kind="stable")
    return indices[order], values[order]


@contextmanager
def program_errors() -> Iterator[None]:
    """Raise the errors of the drop-in programs as ValueError."""
    try:
        yield
    except (UsageError, ProgramError) as error:
        raise ValueError(str(error).replace("ERROR:", "Error:", 1)) from None


def parse_words(options: str | Sequence[str] | None, counts: Mapping[str, int]) -> list[Option]:
    """Return the options of a string or a list of words; raise ValueError or TypeError if they are invalid."""
    if options is not None and not isinstance(options, str | list):
        raise TypeError("arg 1 should be a list or a str.")
    words = options.split() if isinstance(options, str) else list(options or [])
    try:
        found, others = split_options(words, counts, "unknown option -{}")
    except UsageError as error:
        raise ValueError(f"Wrong options: {str(error) or 'the value of the last option is missing'}") from None
    if others:
        raise ValueError(f"Wrong options: {others[0]!r} is no option")
    return found


def predict_options(options: str | Sequence[str]) -> tuple[bool, Callable[[str], object]]:
    """Return whether probabilities are asked for, and the function that prints."""
    found = parse_words(options, {"b": 1, "q": 0})
    with program_errors():
        probability = [option.integer for option in found if option.letter == "b"]
    quiet = any(option.letter == "q" for option in found)
    return bool(probability and probability[-1]), (lambda line: None) if quiet else print


def print_metrics(
    y: Any, predicted: Floats, regression: bool, info: Callable[[str], object]
) -> tuple[float, float, float]:
    """Print the metrics of predictions as LIBSVM's functions do, and return them; no labels count as zeros."""
    truth = target_array(y)
    if not len(truth):
        truth = np.zeros(len(predicted))
    if len(truth) != len(predicted):
        raise ValueError("len(y) != len(x)")
    metrics = RunningMetrics()
    metrics.add(predicted, truth)
    correct = f" ({metrics.correct}/{metrics.count}) (classification)"
    for line in metrics.lines(regression, suffixes=(correct, " (regression)")):
        info(line)
    return metrics.accuracy, metrics.mean_squared_error, metrics.squared_correlation
