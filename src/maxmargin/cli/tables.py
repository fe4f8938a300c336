"""Files that are read block by block."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from maxmargin.cli import data
from maxmargin.resources import available_memory

if TYPE_CHECKING:
    from maxmargin.blocks import RowBlocks

#: Suffixes of files that are read block by block if they are larger than this fraction of the available memory.
SUFFIXES, MAX_FRACTION = (".npy", ".npz", ".parquet", ".arrow", ".feather"), 0.5


def is_read_in_blocks(options: argparse.Namespace) -> bool:
    """Whether a file is read block by block: if that is asked for, or if it does not fit into memory."""
    path = Path(options.data)
    if getattr(options, "out_of_core", False):
        return True
    if not path.is_file() or path.suffix not in SUFFIXES:
        return False
    return path.stat().st_size > MAX_FRACTION * available_memory()


def open_table(options: argparse.Namespace) -> RowBlocks:
    """Return the table of DATA."""
    from maxmargin import blocks

    unsupported = {
        "--query": options.query,
        "--samples": options.samples,
        "--columns": getattr(options, "columns", None),
    }
    for name, value in unsupported.items():
        if value is not None:
            raise ValueError(f"{name} needs the data in memory; omit it or --out-of-core")
    if not Path(options.data).exists():
        raise ValueError(f"there is no file {options.data}")
    return blocks.open(
        options.data,
        format=options.format,
        label=options.label,
        ignore=options.ignore,
        zero_based=data.FIRST_INDICES[options.first_index],
        convert=getattr(options, "convert", False),  # of train
    )
