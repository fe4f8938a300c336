"""Scale features to a common range, compatible with LIBSVM's svm-scale and its range files.

    x'  =  lower + (upper − lower) (x − minimum) / (maximum − minimum)      for each feature

The smallest and the largest value become exactly `lower` and `upper`. Constant features become 0, as do features that
did not occur when the ranges were computed. Values outside the range are not clipped. The ranges of the training data
must be applied to all later data (Hsu, Chang and Lin, *A practical guide to support vector classification*). A range
file stores them:

    y                       (only if targets are scaled)
    lower upper             limits of the targets
    minimum maximum         range of the targets
    x
    lower upper
    index minimum maximum   for each feature that is not constant, index from 1

Standardisation (mean 0, standard deviation 1) is the same map with limits −1 and 1 and the range mean ± deviation, so
that LIBSVM can read its range file, too.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, Any, BinaryIO

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats
from maxmargin.datasets.errors import DataFileError
from maxmargin.datasets.feature_statistics import FeatureStatistics, is_table
from maxmargin.kernels.points import restricted
from maxmargin.resources import check_memory, usable_memory
from maxmargin.storage.output_files import write_atomically

#: Number of values of a dense block when a sparse matrix is scaled and zeros become nonzero.
BLOCK_VALUES = 1 << 22

#: The largest index of a range file: LIBSVM's indices are int32.
MAX_INDEX = 2**31 - 1


@dataclass(frozen=True)
class TargetRange:
    """Range of the targets, and the limits to which it is scaled."""

    minimum: float
    maximum: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Scaling:
    """Ranges of the features, and the limits to which they are scaled.

    Attributes
    ----------
    columns : int array of shape (n_scaled,)
        Indices of the nonconstant features in ascending order.
    minimum, maximum : float arrays of shape (n_scaled,)
        Range of each of them.
    lower, upper : float
        Limits of the scaled features.
    target : TargetRange or None
        Scaling of the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.datasets import Scaling
    >>> scaling = Scaling.fit(np.array([[1.0, 7.0, 10.0], [3.0, 7.0, 20.0]]))
    >>> scaling.apply(np.array([[2.0, 7.0, 40.0]]))
    array([[0., 0., 5.]])
    """

    columns: np.ndarray[Any, np.dtype[np.int64]]
    minimum: Floats
    maximum: Floats
    lower: float = -1.0
    upper: float = 1.0
    target: TargetRange | None = None

    def __post_init__(self) -> None:
        _check_limits(self.lower, self.upper)

    @classmethod
    def fit(cls, X: Any, lower: float = -1.0, upper: float = 1.0) -> Scaling:
        """Return the scaling of the range of each feature to the limits.

        X is an array, a sparse matrix, or a table of `maxmargin.blocks`, which is read once.
        """
        if is_table(X):
            found = FeatureStatistics.of((block.X for block in X), X.n_features, squares=False)
            columns = np.flatnonzero(found.least != found.largest)
            return cls(columns, found.least[columns], found.largest[columns], float(lower), float(upper))
        occurring, X = _occurring(X)
        low, high = (_row(X.min(axis=0)), _row(X.max(axis=0))) if min(X.shape) else (np.zeros(0), np.zeros(0))
        varying = np.flatnonzero(low != high)
        return cls(occurring[varying], low[varying], high[varying], float(lower), float(upper))

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # deviations that overflow are an error
    def standardise(cls, X: Any) -> Scaling:
        """Return the scaling of each feature to mean 0 and standard deviation 1; X is as for `fit`."""
        if is_table(X):
            found, features = FeatureStatistics.of((block.X for block in X), X.n_features), np.arange(X.n_features)
        else:
            features, X = _occurring(X)
            found = FeatureStatistics.of([X], len(features))
        columns = np.flatnonzero(~(found.least >= found.largest))
        mean = found.mean[columns]
        deviation = np.sqrt(found.squares[columns] / max(1, found.rows))
        low, high = mean - deviation, mean + deviation
        if not np.isfinite(high - low).all():
            raise ValueError(
                "features are not finite, or their squares overflow float64; scale them to a range first, with "
                "Scaling.fit"
            )
        nonempty = low < high
        return cls(features[columns][nonempty], low[nonempty], high[nonempty])

    def with_target(self, y: Floats, lower: float, upper: float) -> Scaling:
        """Return this scaling extended by the scaling of the range of the targets to the limits."""
        _check_limits(lower, upper)
        low, high = float(np.min(y)), float(np.max(y))
        if not low < high:
            raise ValueError(f"all targets are {low:g}; constant targets cannot be scaled")
        return replace(self, target=TargetRange(low, high, float(lower), float(upper)))

    def apply(self, X: Any) -> Any:
        """Return scaled features: an array for an array, a CSR matrix for a sparse matrix.

        The result has a column for each feature of X and of the scaling; features that occur only in X become 0.
        Sparsity is preserved where 0 maps to 0, that is with ``lower=0`` and nonnegative features.
        """
        if is_table(X):
            raise TypeError("a table of blocks is scaled by maxmargin.blocks.transform(table, scaling)")
        width = max(X.shape[1], int(self.columns[-1]) + 1 if len(self.columns) else 0)
        if not sparse.issparse(X) and 16 * X.shape[0] * width > max(usable_memory(), 32 * X.size):
            raise MemoryError(f"{X.shape[0]} samples with {width} features, as in the ranges, exceed the memory")
        scaled = self._apply_sparse(X.tocsr(), width) if sparse.issparse(X) else self._apply_dense(X, width)
        if not np.isfinite(scaled.data if sparse.issparse(scaled) else scaled).all():
            raise ValueError("a scaled value overflows float64; leave out features with a tiny range")
        return scaled

    def apply_to_target(self, y: Floats) -> Floats:
        """Return scaled targets, unchanged if targets are not scaled."""
        if self.target is None:
            return y
        found = self.target
        return _scaled(y, found.minimum, found.maximum, found.lower, found.upper)

    def restore_target(self, y: Floats) -> Floats:
        """Return scaled targets or predictions in the original range (the inverse of `apply_to_target`)."""
        if self.target is None:
            return y
        found = self.target
        return _scaled(y, found.lower, found.upper, found.minimum, found.maximum)

    def unseen(self, X: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the nonconstant columns of X that have no range; `apply` sets them to 0."""
        return np.setdiff1d(Scaling.fit(X).columns, self.columns)

    def write(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        """Write a range file of LIBSVM, with exact numbers."""
        lines = []
        if self.target is not None:
            found = self.target
            lines += ["y", f"{found.lower:.17g} {found.upper:.17g}", f"{found.minimum:.17g} {found.maximum:.17g}"]
        lines += ["x", f"{self.lower:.17g} {self.upper:.17g}"]
        ranges = zip(self.columns.tolist(), self.minimum.tolist(), self.maximum.tolist(), strict=True)
        lines += [f"{column + 1} {low:.17g} {high:.17g}" for column, low, high in ranges]
        text = "".join(f"{line}\n" for line in lines).encode("ascii")
        write_atomically(target, [text])

    @classmethod
    def read(cls, source: str | os.PathLike[str] | IO[bytes]) -> Scaling:
        """Read a range file of LIBSVM; raise DataFileError with the line number if it is invalid."""
        if isinstance(source, str | os.PathLike):
            with open(source, "rb") as stream:
                return _RangeFile(stream, os.fspath(source)).read()
        return _RangeFile(source, str(getattr(source, "name", "ranges"))).read()

    def _apply_dense(self, X: Floats, width: int) -> Floats:
        present = self.columns[self.columns < X.shape[1]]
        values = np.zeros((X.shape[0], len(self.columns)))
        values[:, : len(present)] = X[:, present]
        scaled = np.zeros((X.shape[0], width))
        scaled[:, self.columns] = _scaled(values, self.minimum, self.maximum, self.lower, self.upper)
        return scaled

    def _apply_sparse(self, X: Any, width: int) -> Any:
        starts, places, values = restricted(X, self.columns, np.float64)
        count = len(self.columns)
        scaled_zeros = _scaled(np.zeros(count), self.minimum, self.maximum, self.lower, self.upper)
        if scaled_zeros.any():
            part = sparse.csr_matrix((values, places, starts), shape=(X.shape[0], count))
            return self._apply_blockwise(part, width, int(np.count_nonzero(scaled_zeros)))
        data = _scaled(values, self.minimum[places], self.maximum[places], self.lower, self.upper)
        scaled = sparse.csr_matrix((data, self.columns[places], starts), shape=(X.shape[0], width))
        scaled.eliminate_zeros()
        return scaled

    def _apply_blockwise(self, part: Any, width: int, dense_columns: int) -> Any:
        """Scale the columns of a sparse matrix that have a range, if zeros become nonzero, some rows at a time."""
        rows, count = part.shape
        what = f"scaling turns zeros into nonzeros, and the result of {rows:,} samples"
        check_memory(12 * rows * dense_columns, what, "with lower=0 (--lower 0) nonnegative features stay sparse")
        step = max(1, BLOCK_VALUES // count)
        blocks = []
        for start in range(0, rows, step):
            dense = part[start : start + step].toarray()
            block = sparse.csr_matrix(_scaled(dense, self.minimum, self.maximum, self.lower, self.upper))
            shape = (block.shape[0], width)
            blocks.append(sparse.csr_matrix((block.data, self.columns[block.indices], block.indptr), shape=shape))
        return sparse.vstack(blocks, format="csr") if blocks else sparse.csr_matrix((rows, width))


class _RangeFile:
    """Parser of range files."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self.name = name
        self.line = 0
        self.lines = self._read_lines(io.BufferedReader(stream) if isinstance(stream, io.RawIOBase) else stream)

    def read(self) -> Scaling:
        target = None
        section = next(self.lines, None)
        if section == [b"y"]:
            lower, upper = self._limits()
            low, high = self._numbers(next(self.lines, None), "minimum maximum")
            if not low < high:
                raise self._error(f"the largest target ({high:g}) must be above the smallest ({low:g})")
            target = TargetRange(low, high, lower, upper)
            section = next(self.lines, None)
        if section != [b"x"]:
            raise self._error("a range file begins with a line 'x', or with 'y' and two lines of numbers before it")
        lower, upper = self._limits()
        columns: list[int] = []
        ranges: list[tuple[float, float]] = []
        for words in self.lines:
            columns.append(self._index(words[0], columns[-1] if columns else -1))
            ranges.append(self._numbers(words[1:], "index minimum maximum"))
            if not ranges[-1][0] < ranges[-1][1]:
                raise self._error(f"the maximum ({ranges[-1][1]:g}) must be above the minimum ({ranges[-1][0]:g})")
        low_high = np.array(ranges, dtype=np.float64).reshape(-1, 2)
        return Scaling(
            np.array(columns, dtype=np.int64), low_high[:, 0].copy(), low_high[:, 1].copy(), lower, upper, target
        )

    def _read_lines(self, stream: Any) -> Iterator[list[bytes]]:
        for line in stream:
            self.line += 1
            words = line.split()
            if words:
                yield words

    def _limits(self) -> tuple[float, float]:
        lower, upper = self._numbers(next(self.lines, None), "lower upper")
        if not lower < upper:
            raise self._error(f"the upper limit ({upper:g}) must be above the lower ({lower:g})")
        return lower, upper

    def _numbers(self, words: list[bytes] | None, meaning: str) -> tuple[float, float]:
        """Return the two finite numbers of a line."""
        try:
            low, high = (math.nan if b"_" in word else float(word) for word in words or ())
        except ValueError:
            low = high = math.nan
        if not (math.isfinite(low) and math.isfinite(high)):
            raise self._error(f"expected the finite numbers '{meaning}'")
        return low, high

    def _index(self, word: bytes, last: int) -> int:
        """Return the column of an index, from 0."""
        if not word.isdigit() or len(word) > 10 or not 1 <= int(word) <= MAX_INDEX:
            raise self._error(f"{word[:20]!r} is not a feature index from 1 to {MAX_INDEX}")
        if int(word) - 1 <= last:
            raise self._error(f"index {int(word)} comes after {last + 1}; indices must be in ascending order")
        return int(word) - 1

    def _error(self, message: str) -> DataFileError:
        return DataFileError(self.name, message, max(1, self.line))


def _scaled(values: Floats, minimum: Any, maximum: Any, lower: float, upper: float) -> Floats:
    """Return values scaled to the limits, with the rounding of LIBSVM."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = lower + (upper - lower) * (values - minimum) / (maximum - minimum)
    scaled = np.where(values == maximum, upper, scaled)
    found: Floats = np.where(values == minimum, lower, scaled)
    return found


def _occurring(X: Any) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Any]:
    """Return the columns that occur, and the data in these columns; a sparse matrix may have billions of others."""
    if len(getattr(X, "shape", ())) != 2:
        raise TypeError(
            f"the samples of a scaling must be an array of two dimensions, a sparse matrix or a table of "
            f"maxmargin.blocks.open, not {type(X).__name__}"
        )
    if not sparse.issparse(X):
        return np.arange(X.shape[1]), X
    X = X.tocsr()
    occurring, place = np.unique(X.indices, return_inverse=True)
    return occurring.astype(np.int64), sparse.csr_matrix((X.data, place, X.indptr), (X.shape[0], len(occurring)))


def _row(values: Any) -> Floats:
    """Return a row of a dense or sparse matrix as an array."""
    dense = values.toarray() if sparse.issparse(values) else values
    return np.asarray(dense, dtype=np.float64).ravel()


def _check_limits(lower: float, upper: float) -> None:
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise ValueError(f"the upper limit must be above the lower, not {lower:g} and {upper:g}")
