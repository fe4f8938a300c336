"""Data that need not fit into memory, as blocks of rows.

- `row_blocks`: the interface, `RowBlocks` and `RowBlock`.
"""

from maxmargin.blocks.row_blocks import RowBlock, RowBlocks, is_blocks

__all__ = ["RowBlock", "RowBlocks", "is_blocks"]
