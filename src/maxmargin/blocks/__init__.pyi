from .opening import open
from .read_ahead import read_ahead
from .row_blocks import RowBlock, RowBlocks, is_blocks

__all__ = ["RowBlock", "RowBlocks", "is_blocks", "open", "read_ahead"]
