"""The blocks of a source, validated in every pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from maxmargin.blocks.block_checks import Place, check_block, check_labels, check_weights
from maxmargin.blocks.columns import Column
from maxmargin.blocks.row_blocks import RowBlock, RowBlocks
from maxmargin.blocks.sources import RowError, Rows, Source


class CheckedBlocks(RowBlocks):
    """A table that is read block by block from a source; every block is validated when it is read.

    Parameters
    ----------
    source : Source
    y, sample_weight : array, path of an .npy file, list of those, or None
        Instead of those of the source.
    block_rows : int or None
        Rows of a block; by default about 32 MB of values.
    """

    def __init__(self, source: Source, y: Any = None, sample_weight: Any = None, block_rows: int | None = None) -> None:
        self._source = source
        self._y = None if y is None else Column(y, "y", source.n_rows, source.name)
        self._weight = (
            None if sample_weight is None else Column(sample_weight, "sample_weight", source.n_rows, source.name)
        )
        self._block_rows = block_rows

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def n_rows(self) -> int:
        return self._source.n_rows

    @property
    def n_features(self) -> int:
        return self._source.n_features

    @property
    def has_labels(self) -> bool:
        return self._y is not None or self._source.has_labels

    @property
    def has_weights(self) -> bool:
        """Whether blocks have sample weights."""
        return self._weight is not None or self._source.has_weights

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values, float32 or float64."""
        return self._source.dtype

    @property
    def is_sparse(self) -> bool:
        """Whether blocks are CSR matrices."""
        return self._source.is_sparse

    def __repr__(self) -> str:
        return f"<RowBlocks of {self.name}: {self.n_rows:,} rows, {self.n_features:,} columns>"

    def __iter__(self) -> Iterator[RowBlock]:
        self._check_unchanged()
        first = number = 0
        try:
            with closing(self._source.read(self._block_rows)) as parts:  # type: ignore[type-var]
                for rows in parts:
                    count = rows.X.shape[0]
                    if first + count > self.n_rows:
                        raise self._changed(f"at least {first + count}")
                    if count:  # an object of the user may yield blocks without rows
                        yield self._checked(rows, count, Place(rows.part, number, first))
                        first, number = first + count, number + 1
                    del rows  # it must not stay in memory while the next ones are read
        except RowError as error:
            raise Place(error.part, number, first).error(error.problem, error.row) from error
        if first != self.n_rows:
            raise self._changed(str(first))
        self._check_unchanged()

    def _checked(self, rows: Rows, count: int, place: Place) -> RowBlock:
        X = check_block(rows.X, self.n_features, self.dtype, self.is_sparse, place)
        y = rows.y if self._y is None else self._y.rows(place.first, place.first + count)
        weight = rows.sample_weight if self._weight is None else self._weight.rows(place.first, place.first + count)
        return RowBlock(
            X,
            check_labels(y, count, place) if self.has_labels else None,
            check_weights(weight, count, place) if self.has_weights else None,
            place.first,
        )

    def _check_unchanged(self) -> None:
        self._source.check_unchanged()
        for column in (self._y, self._weight):
            if column is not None:
                column.check_unchanged()

    def _changed(self, found: str) -> ValueError:
        return ValueError(
            f"{self.name} has {found} rows in this pass, but {self.n_rows} when it was opened; every pass must "
            "give the same rows"
        )
