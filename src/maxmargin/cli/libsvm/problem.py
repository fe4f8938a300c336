"""Training data as LIBSVM's programs see them: features with their indices, or kernel values with serial numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.cli.libsvm.option_words import ProgramError
from maxmargin.datasets import load_libsvm
from maxmargin.kernels.points import SPARSE_COST_FACTOR


@dataclass(frozen=True)
class FeatureRows:
    """Samples with features.

    Attributes
    ----------
    X : array or CSR
        The columns are the indices from 1 on, or from 0 on.
    max_index : int
        The largest index in the file.
    zero_based : bool
        Whether the index 0 occurs.
    """

    X: Any
    max_index: int
    zero_based: bool

    def among(self, rows: Indices) -> Any:
        """Return some samples to train on."""
        return self.X[rows]

    def between(self, rows: Indices, training_rows: Indices) -> Any:
        """Return some samples to predict, by a machine that was trained on others."""
        return self.X[rows]


@dataclass(frozen=True)
class KernelRows:
    """Rows of kernel values with the samples that have serial numbers.

    Attributes
    ----------
    values : array
        A column for each serial number, from 1 on.
    serials : int array
        The column of each row.
    max_index : int
        The largest index in the file.
    """

    values: Floats
    serials: Indices
    max_index: int

    def among(self, rows: Indices) -> Floats:
        """Return the kernel matrix of some samples."""
        return self.between(rows, rows)

    def between(self, rows: Indices, training_rows: Indices) -> Floats:
        """Return kernel values of some samples with those that were trained on."""
        return np.ascontiguousarray(self.values[np.ix_(rows, self.serials[training_rows])])


def read_features(path: str) -> tuple[FeatureRows, Floats]:
    """Return samples and labels of a file."""
    X, y = read_rows(path)
    zero_based = bool(X[:, :1].nnz)
    return FeatureRows(as_table(X if zero_based else X[:, 1:]), X.shape[1] - 1, zero_based), y


def read_kernel_values(path: str) -> tuple[KernelRows, Floats]:
    """Return kernel values and labels of a file whose column 0 has serial numbers."""
    X, y = read_rows(path)
    first = X[:, 0].toarray().ravel()
    if not first.all():
        raise ProgramError("Wrong input format: first column must be 0:sample_serial_number")
    count = X.shape[1] - 1
    serials = first.astype(np.int64)
    if serials.min(initial=1) < 1 or serials.max(initial=0) > count:
        raise ProgramError("Wrong input format: sample_serial_number out of range")
    return KernelRows(X[:, 1:].toarray(), serials - 1, count), y


def read_rows(path: str, zero_based: bool = True, what: str = "input file") -> tuple[Any, Floats]:
    """Return the rows of a file and the labels; the first column is that of index 0, or of 1."""
    try:
        X, y = load_libsvm(path, zero_based=zero_based)
    except OSError as error:
        raise ProgramError(f"can't open {what} {path}") from error
    if not X.shape[0]:
        raise ProgramError(f"{path} has no samples")
    wrong = np.flatnonzero(~np.isfinite(X.data))
    if len(wrong):
        sample = int(np.searchsorted(X.indptr, wrong[0], side="right"))
        raise ProgramError(f"{path}: sample {sample} has a value that is no finite number, {X.data[wrong[0]]}")
    if not np.isfinite(y).all():
        raise ProgramError(f"{path}: the label of sample {int(np.argmin(np.isfinite(y))) + 1} is no finite number")
    least = 2 if zero_based else 1  # a machine has at least one feature
    return (X if X.shape[1] >= least else sparse.csr_matrix((X.data, X.indices, X.indptr), (X.shape[0], least))), y


def as_table(X: Any) -> Any:
    """Return rows as an array if products take less time so."""
    return X.toarray() if SPARSE_COST_FACTOR * X.nnz >= X.shape[0] * X.shape[1] else X
