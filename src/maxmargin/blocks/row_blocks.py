"""Data as blocks of rows: what fits on data larger than memory read, pass after pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats


class RowBlock(NamedTuple):
    """Consecutive rows of a table.

    Attributes
    ----------
    X : array or CSR matrix of shape (rows, features)
        In float32 or float64; an array is C-ordered, CSR has sorted indices without duplicates. All values are finite.
    y : array of shape (rows,) or None
        Labels or targets.
    sample_weight : float array of shape (rows,) or None
    first : int
        The position of the first row in the whole table.
    """

    X: Any
    y: np.ndarray[Any, Any] | None
    sample_weight: Floats | None
    first: int


class RowBlocks(ABC):
    """A table that is read block by block; every iteration is a pass over all rows, in the same order."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the data are called in messages: a file name, or the kind of object."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns of `X`."""

    @property
    @abstractmethod
    def has_labels(self) -> bool:
        """Whether blocks have labels or targets."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of features."""
        return self.n_rows, self.n_features

    @abstractmethod
    def __iter__(self) -> Iterator[RowBlock]:
        """Read all blocks once, in order."""


def is_blocks(X: Any) -> bool:
    """Whether data are blocks of rows."""
    return isinstance(X, RowBlocks)
