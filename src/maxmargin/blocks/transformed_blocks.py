"""Tables whose rows are transformed block by block, as by a scaling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.blocks.block_checks import Place, check_block
from maxmargin.blocks.row_blocks import RowBlock, RowBlocks
from maxmargin.blocks.sources import float_type


def transform(table: RowBlocks, transformer: Any) -> RowBlocks:
    """Return a table whose blocks are transformed when they are read, in every pass.

    Parameters
    ----------
    table : RowBlocks
    transformer : object or function
        A fitted transformer with a method ``transform`` as in scikit-learn, a `maxmargin.datasets.Scaling`, or a
        function; from the samples of a block to as many rows. The rows of a result must not depend on how the table
        is cut into blocks. Labels and weights are kept.

    Returns
    -------
    blocks : RowBlocks
        The first block is transformed at once, to find width and type.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import blocks
    >>> from maxmargin.datasets import Scaling
    >>> table = blocks.open(np.arange(10.0).reshape(5, 2), block_rows=2)
    >>> scaled = blocks.transform(table, Scaling.fit(table))
    >>> [block.X.tolist() for block in scaled][-1]
    [[1.0, 1.0]]
    """
    if not isinstance(table, RowBlocks):
        raise TypeError(f"table must be what blocks.open returns, not of type {type(table).__name__}")
    return TransformedBlocks(table, _function_of(transformer))


class TransformedBlocks(RowBlocks):
    """A table whose blocks are results of a function of those of another one."""

    def __init__(self, table: RowBlocks, function: Callable[[Any], Any]) -> None:
        self._table, self._function = table, function
        with closing(iter(table)) as rows:  # type: ignore[type-var]
            first = self._transformed(next(rows), Place(self.name, 0, 0))
        self._n_features = int(first.shape[1])
        self.dtype: np.dtype[Any] = float_type(first.dtype, f"the transformation of {self.name}")
        self.is_sparse = bool(sparse.issparse(first))

    @property
    def name(self) -> str:
        return self._table.name

    @property
    def n_rows(self) -> int:
        return self._table.n_rows

    @property
    def n_features(self) -> int:
        return self._n_features

    @property
    def has_labels(self) -> bool:
        return self._table.has_labels

    def __repr__(self) -> str:
        return f"<RowBlocks of {self.name}, transformed: {self.n_rows:,} rows, {self.n_features:,} columns>"

    def __iter__(self) -> Iterator[RowBlock]:
        with closing(iter(self._table)) as blocks:  # type: ignore[type-var]
            for number, block in enumerate(blocks):
                place = Place(self.name, number, block.first)
                X = check_block(self._transformed(block, place), self.n_features, self.dtype, self.is_sparse, place)
                yield block._replace(X=X)
                del block, X  # they must not stay in memory while the next ones are read

    def _transformed(self, block: RowBlock, place: Place) -> Any:
        try:
            found = self._function(block.X)
            table = found.tocsr() if sparse.issparse(found) else np.asarray(found)
        except (ValueError, TypeError, ArithmeticError) as error:
            raise place.error(f"the transformation failed: {error}") from error
        if table.ndim != 2:
            raise place.error(
                "the transformation must return a table of numbers or a sparse matrix, not "
                f"{type(found).__name__} of shape {table.shape}"
            )
        if table.shape[0] != block.X.shape[0]:
            raise place.error(f"the transformation of {block.X.shape[0]} rows has {table.shape[0]}")
        return table


def _function_of(transformer: Any) -> Callable[[Any], Any]:
    """Return the function of a transformer."""
    if isinstance(transformer, type):
        raise TypeError(f"transformer must be fitted, not the class {transformer.__name__}")
    for method in ("transform", "apply"):
        if callable(function := getattr(transformer, method, None)):
            return function  # type: ignore[no-any-return]
    if not callable(transformer):
        raise TypeError(
            f"transformer must be a function or have a method transform, which {type(transformer).__name__} has not"
        )
    return transformer  # type: ignore[no-any-return]
