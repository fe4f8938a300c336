"""Sparse tables in folders of .npy files, which are read block by block.

A folder has data.npy, indices.npy and indptr.npy, the arrays of a CSR matrix; shape.npy, its rows and columns; and
optionally y.npy and sample_weight.npy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.blocks.csr_sources import CsrSource
from maxmargin.blocks.file_arrays import FileArray
from maxmargin.blocks.npy_writer import NpyWriter
from maxmargin.blocks.row_blocks import RowBlock
from maxmargin.datasets.compressed_rows import CompressedRows
from maxmargin.datasets.errors import DataFileError
from maxmargin.storage.output_files import atomic_folder, flush_file, naming

#: The files that make a folder a sparse table.
ARRAYS = ("data", "indices", "indptr")

#: Number of values that are inspected at once.
PIECE = 2**22


def is_csr_folder(path: Path) -> bool:
    """Return whether a folder holds a sparse table."""
    return any((path / f"{part}.npy").is_file() for part in ARRAYS)


def open_csr_folder(path: Path, n_features: int | None = None, name: str | None = None) -> CsrSource:
    """Return the source of a folder; without shape.npy, its width is that of the largest index."""
    for part in ARRAYS:
        if not (path / f"{part}.npy").is_file():
            raise FileNotFoundError(f"{path}: {part}.npy is missing; a CSR matrix has data, indices and indptr")
    data, indices, indptr = (FileArray(path / f"{part}.npy") for part in ARRAYS)
    optional = ((path / f"{part}.npy") for part in ("y", "sample_weight"))
    y, weight = (FileArray(file) if file.is_file() else None for file in optional)
    rows, columns = _shape(path, indices, indptr)
    if n_features is not None and columns > n_features:
        raise DataFileError(path, f"it has {columns} columns, more than n_features={n_features}")
    return CsrSource(data, indices, indptr, (rows, n_features or columns), name or str(path), y, weight)


def write_csr(folder: str | os.PathLike[str], blocks: Iterable[RowBlock]) -> None:
    """Write a table as a folder of CSR arrays, which `open` reads without parsing.

    Parameters
    ----------
    folder : path
        It is created, and complete or absent whatever happens; it must not exist, or be empty.
    blocks : RowBlocks or iterable of RowBlock
        Arrays or CSR matrices; one block is in memory at a time.
    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} exists; remove it, or choose another folder")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"cannot write {target}: the folder {target.absolute().parent} does not exist")
    with atomic_folder(target) as temporary:
        write_arrays(temporary, target, blocks)


def write_arrays(folder: Path, target: Path, blocks: Iterable[RowBlock]) -> None:
    """Write the arrays of a table into a folder that will have the name `target`."""
    width = 0
    with ExitStack() as stack:
        writers: dict[str, NpyWriter] = {}

        def append(part: str, values: np.ndarray[Any, Any]) -> None:
            file = f"{part}.npy"
            if part not in writers:
                writers[part] = stack.enter_context(NpyWriter(folder / file, target / file, values.dtype))
            writers[part].append(values)

        append("indptr", np.zeros(1, np.int64))
        for block in blocks:
            if not isinstance(block, RowBlock):
                raise ValueError(
                    f"blocks must be RowBlock, not {type(block).__name__}; pass maxmargin.blocks.open(X, y)"
                )
            rows = CompressedRows.of(block.X)
            starts = np.asarray(rows.starts, np.int64)
            append("data", rows.values[starts[0] : starts[-1]])
            append("indices", rows.columns[starts[0] : starts[-1]])
            append("indptr", starts[1:] + (writers["data"].count - starts[-1]))
            for part, values in (("y", block.y), ("sample_weight", block.sample_weight)):
                if values is not None:
                    append(part, values)
            width = max(width, rows.width)
        count = writers["indptr"].count - 1
        if not count:
            raise ValueError(f"{target}: there are no rows to write")
    with naming(target / "shape.npy"):
        np.save(folder / "shape.npy", np.array([count, width], np.int64))
        flush_file(folder / "shape.npy")


def _shape(path: Path, indices: FileArray, indptr: FileArray) -> tuple[int, int]:
    file = path / "shape.npy"
    if file.is_file():
        stored = FileArray(file)
        if stored.shape != (2,) or stored.dtype.kind not in "iu":
            raise DataFileError(file, "the shape must be two whole numbers, rows and columns")
        rows, columns = stored[:].tolist()
        return rows, columns
    pieces = (indices[first : first + PIECE] for first in range(0, len(indices), PIECE))
    return len(indptr) - 1, max((int(piece.max()) for piece in pieces), default=-1) + 1
