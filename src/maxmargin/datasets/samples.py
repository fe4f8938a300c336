"""Samples of a data file: features, labels, query ids and names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.resources import check_memory

#: Integer labels are class labels if there are at most this many distinct values, …
MAX_CLASSES = 10

#: … or at most this many with at least this many samples per class on average and two in each class.
MAX_CLASSES_WITH_SAMPLES, MIN_SAMPLES_PER_CLASS = 100, 10

#: What to do about integer labels that float64 cannot represent.
INEXACT_LABEL = "use smaller numbers, or strings"

#: Message about integers that are equal as float64.
INDISTINGUISHABLE = "which are equal as float64; use smaller numbers, or strings"


def are_classes(y: np.ndarray) -> bool:
    """Return whether labels look like classes, not like regression targets: strings, or few distinct integers."""
    return y.dtype.kind not in "fiu" or are_counted_classes(*np.unique(y, return_counts=True))


def are_counted_classes(labels: np.ndarray, counts: np.ndarray) -> bool:
    """Return the same for distinct labels, of which each occurs so many times."""
    if labels.dtype.kind not in "fiu":
        return True
    if len(labels) > MAX_CLASSES_WITH_SAMPLES or not np.array_equal(labels, np.rint(labels)):
        return False
    # Integer-valued measurements such as ages usually have extreme values that occur only once.
    enough = counts.sum() >= MIN_SAMPLES_PER_CLASS * len(counts) and counts.min(initial=2) >= 2
    return len(counts) <= MAX_CLASSES or bool(enough)


def indistinguishable_pair(integers: Iterable[int]) -> tuple[int, int] | None:
    """Return two different integers that are equal as float64 (possible beyond 2⁵³), None if there are none."""
    return next(((a, b) for a, b in pairwise(sorted(set(integers))) if float(a) == float(b)), None)


def checksum(*parts: Any) -> str:
    """Return a hash of the contents, kinds and shapes of matrices and arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        for array in (part.data, part.indices, part.indptr) if sparse.issparse(part) else (np.asarray(part),):
            digest.update(str((array.dtype.kind, array.shape)).encode())
            strings = array.dtype.kind in "OUS"
            digest.update(repr(array.tolist()).encode() if strings else np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Samples:
    """Samples of a data file.

    Attributes
    ----------
    X : float64 array or CSR matrix of shape (n_samples, n_features)
        All values are finite.
    y : array of shape (n_samples,) or None
        Labels or targets: float64 if all are numbers, otherwise strings. None if there are none.
    query : array of shape (n_samples,) or None
        Query id of each sample, for ranking.
    feature_names : tuple of str or None
        Names of the columns of X, if the file has names.
    label_name : str or None
        Name of the label column in the file.
    categories : mapping of str to tuple of str
        Categories of the one-hot encoded columns, by column name.
    name : str
        Name of the samples for messages.
    zero_based : bool
        Whether the file is in LIBSVM format with indices from 0. Other files with the same features then start at 0,
        too, even if index 0 does not occur in them.
    """

    X: Any
    y: np.ndarray | None = None
    query: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None
    label_name: str | None = None
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    name: str = "samples"
    zero_based: bool = False

    def __post_init__(self) -> None:
        if not sparse.issparse(self.X) and not isinstance(self.X, np.ndarray):
            raise ValueError(f"X must be an array or a sparse matrix, not {type(self.X).__name__}")
        if self.X.ndim != 2:
            raise ValueError(f"X must have two dimensions, not {self.X.ndim}")
        for what, values in (("y", self.y), ("query", self.query)):
            if values is not None and values.shape != (len(self),):
                raise ValueError(f"{what} must have shape ({len(self)},), one entry per sample, not {values.shape}")
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ValueError(f"X has {self.n_features} features, but there are {len(self.feature_names)} feature_names")

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return bool(sparse.issparse(self.X))

    def dense(self) -> Any:
        """Return X as an array, or raise a MemoryError if that does not fit into memory."""
        if not self.is_sparse:
            return self.X
        size = f"{len(self):,} samples with {self.n_features:,} features"
        check_memory(8 * len(self) * self.n_features, f"{self.name}: a dense array of {size}",
                     "use LIBSVM format or .npz, which keep data sparse")  # fmt: skip
        return self.X.toarray()

    def take(self, rows: slice | np.ndarray) -> Samples:
        """Return the selected rows."""
        return replace(
            self,
            X=self.X[rows],
            y=None if self.y is None else self.y[rows],
            query=None if self.query is None else self.query[rows],
        )

    def column_names(self) -> tuple[str, ...]:
        """Return the feature names, or the column numbers from 1 if there are none."""
        return self.feature_names or tuple(str(column + 1) for column in range(self.n_features))
