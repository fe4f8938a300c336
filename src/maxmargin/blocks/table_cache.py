"""Parquet and Arrow files that are decoded once, into a folder of .npy files, while they are the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.blocks.array_sources import ArraySource
from maxmargin.blocks.arrow_source import ArrowSource
from maxmargin.blocks.checked_blocks import CheckedBlocks
from maxmargin.blocks.conversions import conversion_folder, convert
from maxmargin.blocks.file_arrays import FileArray
from maxmargin.blocks.npy_writer import NpyWriter

#: Version of the folders; part of their names.
VERSION = 1

#: The files of a folder.
PARTS = ("X", "y", "sample_weight")


def converted(
    source: ArrowSource, paths: Sequence[Path], options: str, cache_dir: str | os.PathLike[str] | None = None
) -> ArraySource:
    """Return the rows of a source from the cache, into which they are written if it has not got them."""
    folder = conversion_folder(paths, source.stamps, f"{options} {VERSION}", "rows", cache_dir)
    found = _cached(folder, source)
    if found is None:
        convert(folder, lambda temporary: _write(temporary, folder, source))
        found = _cached(folder, source)
        if found is None:
            raise OSError(f"{folder}: the converted rows of {source.name} cannot be read back; clear the cache")
    found.origin = source.stamps
    return found


def _cached(folder: Path, source: ArrowSource) -> ArraySource | None:
    """Return what a source was converted to, None if it was not; a folder that cannot be read is removed."""
    if not folder.is_dir():
        return None
    try:
        X, y, weight = (
            FileArray(folder / f"{part}.npy") if wanted else None
            for part, wanted in zip(PARTS, (True, source.has_labels, source.has_weights), strict=True)
        )
        assert X is not None
        if X.shape != (source.n_rows, source.n_features) or X.dtype != source.dtype:
            raise ValueError(f"{folder} has another shape or type")
        return ArraySource(X, source.name, y, weight)
    except (OSError, ValueError):
        shutil.rmtree(folder)
        return None


def _write(temporary: Path, folder: Path, source: ArrowSource) -> None:
    """Write the validated rows of a source."""
    with ExitStack() as stack:
        writers: dict[str, NpyWriter] = {}

        def append(part: str, values: np.ndarray[Any, Any], width: int | None = None) -> None:
            file = f"{part}.npy"
            if part not in writers:
                writers[part] = stack.enter_context(NpyWriter(temporary / file, folder / file, values.dtype, width))
            writers[part].append(values)

        for block in CheckedBlocks(source):
            append("X", block.X.reshape(-1), source.n_features)
            for part, values in (("y", block.y), ("sample_weight", block.sample_weight)):
                if values is not None:
                    append(part, values)
