"""Open a table of any kind as blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.blocks.array_sources import ArraySource
from maxmargin.blocks.checked_blocks import CheckedBlocks
from maxmargin.blocks.csr_sources import CsrSource
from maxmargin.blocks.file_sources import FileOptions, open_files
from maxmargin.blocks.iterable_source import IterableSource
from maxmargin.blocks.row_blocks import RowBlocks
from maxmargin.blocks.sources import JoinedSource, Source
from maxmargin.datasets.categorical_columns import Categorical
from maxmargin.datasets.column_roles import ColumnSelection
from maxmargin.datasets.libsvm_reader import ZeroBased


def open(
    source: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    block_rows: int | None = None,
    format: str | None = None,
    label: str | int | None = "auto",
    weight: str | int | None = None,
    ignore: Sequence[str | int] = (),
    categorical: Categorical = "error",
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    cache_dir: str | os.PathLike[str] | None = None,
    convert: bool = False,
) -> RowBlocks:
    """Open a table as blocks of rows, which need not fit into memory together.

    Parameters
    ----------
    source : array, sparse matrix, path, list of those, Dask collection, iterable or function
        - an array or ``np.memmap``; a SciPy sparse matrix;
        - the path of an .npy, .npz, Parquet, Arrow or LIBSVM file; of a folder of Parquet or Arrow files; or of a
          folder that `write_csr` has written;
        - a list of arrays, sparse matrices and paths, whose rows follow one another;
        - a Dask array or data frame, whose partitions are computed one after another, in every pass;
        - an object that yields (X, y), (X, y, sample_weight) or `RowBlock` anew at each iteration, or a function
          without arguments that returns such an iterator. Its rows are counted in a first pass, unless it has `shape`,
          or `n_rows` and `n_features`.
    y, sample_weight : array, path of an .npy file, list of those, Dask collection, or None
        One value for each row, instead of those of the source.
    block_rows : int, optional
        Number of rows of a block; by default about 32 MB of values.
    format : {"npy", "npz", "parquet", "arrow", "libsvm"} or None
        Of files; by default detected by the suffix, otherwise by the content.
    label : str, int or None
        Label column of Parquet and Arrow files, and of Dask data frames: "auto" (the column named label, target or
        class, otherwise the last one), "first", "last", a name, or an index. "auto" with `y`: all columns are
        features. None: the labels of any source are ignored.
    weight : str, int or None
        Column of sample weights of Parquet and Arrow files, and of Dask data frames.
    ignore : sequence of str or int
        Columns of Parquet and Arrow files, and of Dask data frames, to ignore.
    categorical : {"error", "one-hot"} or mapping of str to sequence of str
        Treatment of columns of strings in Parquet and Arrow files, as in `maxmargin.datasets.read_samples`.
    n_features : int or None
        Number of columns; LIBSVM files and folders without shape.npy may have fewer.
    zero_based : bool or "auto"
        Whether indices in LIBSVM files start at 0; "auto": if index 0 occurs.
    cache_dir : path, optional
        Folder for converted files; by default maxmargin in the cache folder of the user.
    convert : bool
        Whether Parquet and Arrow files are decoded once, into the folder for converted files, instead of in every pass.
        LIBSVM files always are.

    Returns
    -------
    blocks : RowBlocks

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import blocks
    >>> table = blocks.open(np.arange(10.0).reshape(5, 2), y=[0, 1, 0, 1, 1], block_rows=2)
    >>> table.shape
    (5, 2)
    >>> [(block.first, block.X.shape) for block in table]
    [(0, (2, 2)), (2, (2, 2)), (4, (1, 2))]
    """
    if block_rows is not None and not (isinstance(block_rows, Integral) and block_rows >= 1):
        raise ValueError(f"block_rows must be a whole number of at least 1, or None, not {block_rows!r}")
    if isinstance(source, RowBlocks) and y is None and sample_weight is None and block_rows is None:
        return source
    if y is not None and label not in ("auto", None):
        raise ValueError(f"labels are given twice: as y, and as the column label={label!r}; choose one")
    if sample_weight is not None and weight is not None:
        raise ValueError(f"sample weights are given twice: as sample_weight, and as weight={weight!r}; choose one")
    options = FileOptions(
        format, label if y is None else None, weight, ignore, categorical, n_features, zero_based, cache_dir, convert
    )
    if hasattr(source, "__dask_graph__"):
        from maxmargin.blocks.dask_source import open_dask  # needs Dask, as the source does

        opened: Source
        opened, y, sample_weight = open_dask(source, y, sample_weight, _selection(options), weight)
    else:
        opened = _source(source, options)
    if n_features is not None and opened.n_features != n_features:
        raise ValueError(f"{opened.name} has {opened.n_features} columns, but n_features={n_features}")
    opened.has_labels &= label is not None
    return CheckedBlocks(opened, y, sample_weight, None if block_rows is None else int(block_rows))


def _selection(options: FileOptions) -> ColumnSelection:
    return ColumnSelection(options.label, None, options.ignore, n_features=options.n_features)


def _source(given: Any, options: FileOptions) -> Source:
    if isinstance(given, str | os.PathLike):
        return JoinedSource(open_files([Path(given)], options))
    if isinstance(given, np.ndarray):
        return ArraySource(given, "the array")
    if sparse.issparse(given):
        return CsrSource.of(given, "the sparse matrix")
    if isinstance(given, Sequence):
        return _joined(given, options)
    if hasattr(given, "to_numpy"):
        raise ValueError("a data frame in memory is opened as an array: frame.to_numpy(), and its labels as y")
    if hasattr(given, "__iter__") or callable(given):
        return IterableSource(given)
    raise ValueError(f"a table cannot be read from {type(given).__name__}")


def _joined(given: Sequence[Any], options: FileOptions) -> Source:
    if not given:
        raise ValueError("the list of tables is empty")
    for number, part in enumerate(given):
        if not (isinstance(part, str | os.PathLike | np.ndarray) or sparse.issparse(part)):
            raise ValueError(
                "a list of tables must hold arrays, sparse matrices or paths, but item "
                f"{number} is of type {type(part).__name__}; a single table of numbers is np.asarray(rows)"
            )
    if all(isinstance(part, str | os.PathLike) for part in given):
        return JoinedSource(open_files([Path(part) for part in given], options))
    return JoinedSource([_source(part, options) for part in given])
