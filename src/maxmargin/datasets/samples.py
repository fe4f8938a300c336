"""Samples as they come from a file: a table of features, labels if there are any, and what they are called."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

#: Whole numbers as labels are classes if there are at most so many …
FEW_CLASSES = 10

#: … or at most so many, each with this many samples on average and none alone.
MANY_CLASSES, SAMPLES_EACH = 100, 10

#: What is wrong with whole numbers that are the same as float64.
TOO_LARGE = "which are the same to a computer's numbers of 53 bits; use smaller numbers, or words"


def are_classes(y: np.ndarray) -> bool:
    """Tell whether labels look like classes, not like numbers to predict: words, or few whole numbers."""
    if y.dtype.kind not in "fiu":
        return True
    if not np.array_equal(y, np.rint(y)):
        return False
    counts = np.unique(y, return_counts=True)[1]
    enough = len(y) >= SAMPLES_EACH * len(counts) and counts.min(initial=2) >= 2  # ages have lonely ends, letters none
    return len(counts) <= FEW_CLASSES or (len(counts) <= MANY_CLASSES and bool(enough))


def merged(whole: Iterable[int]) -> tuple[int, int] | None:
    """Return two whole numbers that are the same as float64, if there are such, as beyond 2⁵³ there may be."""
    different = sorted(set(whole))
    return next(((a, b) for a, b in pairwise(different) if float(a) == float(b)), None)


def checksum(*parts: Any) -> str:
    """Return what tells these matrices and arrays from others: every number, every word and every shape counts."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        for array in (part.data, part.indices, part.indptr) if sparse.issparse(part) else (np.asarray(part),):
            digest.update(str((array.dtype.kind, array.shape)).encode())
            words = array.dtype.kind in "OUS"
            digest.update(repr(array.tolist()).encode() if words else np.ascontiguousarray(array).data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Samples:
    """Samples in rows, and what a file says of them.

    Attributes
    ----------
    X : float64 array or CSR matrix of shape (n_samples, n_features)
        All values are finite.
    y : array of shape (n_samples,) or None
        Labels or targets: float64 if all are numbers, else words. None if there are none.
    query : array of shape (n_samples,) or None
        Which samples belong together, for ranking.
    feature_names : tuple of str or None
        One for each column of X, where a file has them.
    label_name : str or None
        What the file calls the labels.
    categories : mapping of str to tuple of str
        The words of columns that were words in the file: each word has a column of X that is 1 where it stood.
    name : str
        What to call the samples in messages.
    zero_based : bool
        Whether the file is LIBSVM text whose indices count from 0: other files about the same features do so too,
        though a 0 may not be there to show it.
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
            raise ValueError(f"X must be a table with two dimensions, not {self.X.ndim}")
        for what, values in (("y", self.y), ("query", self.query)):
            if values is not None and values.shape != (len(self),):
                raise ValueError(f"{what} must have a value for each of {len(self)} samples, not shape {values.shape}")
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise ValueError(f"{len(self.feature_names)} names for {self.n_features} features")

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """How many columns X has."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether zeros are left out."""
        return bool(sparse.issparse(self.X))

    def take(self, rows: slice | np.ndarray) -> Samples:
        """Return some of the samples."""
        return replace(
            self,
            X=self.X[rows],
            y=None if self.y is None else self.y[rows],
            query=None if self.query is None else self.query[rows],
        )

    def column_names(self) -> tuple[str, ...]:
        """Return a name for each feature: its own, or its number, counted from 1."""
        return self.feature_names or tuple(str(column + 1) for column in range(self.n_features))
