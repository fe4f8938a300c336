"""Data files of the programs: samples with features or precomputed kernel values, blocks of test data, output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.cli.libsvm.program_options import ProgramError
from maxmargin.datasets.compressed_rows import CompressedRows
from maxmargin.datasets.libsvm_reader import iterate_rows, load_rows
from maxmargin.kernels.points import SPARSE_COST_FACTOR
from maxmargin.storage.output_files import atomic_path


@dataclass(frozen=True)
class FeatureRows:
    """Samples with features.

    Attributes
    ----------
    X : array or CSR
        Columns correspond to the indices from 1 on, or from 0 on if `zero_based`.
    max_index : int
        Largest index in the file.
    zero_based : bool
        Whether the index 0 occurs.
    """

    X: Any
    max_index: int
    zero_based: bool

    @classmethod
    def of(cls, rows: CompressedRows) -> FeatureRows:
        """Return rows whose first column is that of index 0, which is left out if it is empty."""
        zero_based = not rows.columns.min(initial=1)
        return cls(densify(rows if zero_based else rows.without_first_column), rows.width - 1, zero_based)

    def training_input(self, rows: Indices) -> Any:
        """Return the input of `fit` for some samples."""
        return self.X[rows]

    def test_input(self, rows: Indices, training_rows: Indices) -> Any:
        """Return the input of `predict` for some samples, of a model trained on others."""
        return self.X[rows]


@dataclass(frozen=True)
class KernelRows:
    """Rows of a precomputed kernel matrix.

    Attributes
    ----------
    values : array
        One column per serial number, from 1 on.
    serials : int array
        The column of each sample.
    max_index : int
        Largest index in the file.
    """

    values: Floats
    serials: Indices
    max_index: int

    @classmethod
    def of(cls, X: Floats) -> KernelRows:
        """Return rows whose first column has the serial numbers; raise if they are no columns."""
        first, count = X[:, 0], X.shape[1] - 1
        if not first.all():
            raise ProgramError("Wrong input format: first column must be 0:sample_serial_number")
        serials = first.astype(np.int64)
        if serials.min(initial=1) < 1 or serials.max(initial=0) > count:
            raise ProgramError("Wrong input format: sample_serial_number out of range")
        return cls(X[:, 1:], serials - 1, count)

    def training_input(self, rows: Indices) -> Floats:
        """Return the kernel matrix of some samples."""
        return self.test_input(rows, rows)

    def test_input(self, rows: Indices, training_rows: Indices) -> Floats:
        """Return the kernel values of some samples with the training samples."""
        return np.ascontiguousarray(self.values[np.ix_(rows, self.serials[training_rows])])


def read_features(path: str) -> tuple[FeatureRows, Floats]:
    """Return samples and labels of a file."""
    rows, y = read_rows(path)
    return FeatureRows.of(rows), y


def read_kernel_values(path: str) -> tuple[KernelRows, Floats]:
    """Return kernel values and labels of a file whose index 0 has serial numbers."""
    rows, y = read_rows(path)
    return KernelRows.of(rows.dense()), y


def read_rows(path: str, zero_based: bool = True, kind: str = "input file") -> tuple[CompressedRows, Floats]:
    """Return the rows and labels of a file; the first column is that of index 0 or 1."""
    try:
        X, y = load_rows(path, zero_based=zero_based)
    except OSError as error:
        raise ProgramError(f"can't open {kind} {path}") from error
    if not X.shape[0]:
        raise ProgramError(f"{path} has no samples")
    wrong = np.flatnonzero(~np.isfinite(X.values))
    if len(wrong):
        sample = int(np.searchsorted(X.starts, wrong[0], side="right"))
        raise ProgramError(f"{path}: sample {sample} has a value that is not finite, {X.values[wrong[0]]}")
    if not np.isfinite(y).all():
        raise ProgramError(f"{path}: the label of sample {int(np.argmin(np.isfinite(y))) + 1} is not finite")
    return X._replace(width=max(X.width, 2 if zero_based else 1)), y  # at least one feature


def densify(X: CompressedRows) -> Any:
    """Return rows as an array if products with it are faster, otherwise as a CSR matrix."""
    return X.dense() if SPARSE_COST_FACTOR * len(X.values) >= X.shape[0] * X.width else X.matrix()


def read_blocks(path: str, zero_based: bool = True) -> Iterator[tuple[CompressedRows, Floats]]:
    """Return an iterator over blocks of rows and labels; a missing file raises immediately."""
    blocks = iterate_rows(path, zero_based=zero_based)
    try:
        first = next(blocks, None)
    except OSError as error:
        raise ProgramError(f"can't open input file {path}") from error
    return iter(()) if first is None else chain([first], blocks)


@contextmanager
def open_output(path: str) -> Iterator[IO[str]]:
    """Open the output file of predictions; "-" is standard output."""
    if path == "-":
        yield sys.stdout
        return
    if not Path(path).absolute().parent.is_dir():
        raise ProgramError(f"can't open output file {path}")
    with atomic_path(path) as target:
        try:
            output = open(target, "w", encoding="ascii")  # noqa: SIM115  # errors of later writes differ from this one
        except OSError as error:
            raise ProgramError(f"can't open output file {path}") from error
        with output:
            yield output
