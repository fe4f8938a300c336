from .opening import open
from .read_ahead import read_ahead
from .row_blocks import RowBlock, RowBlocks

__all__ = ["RowBlock", "RowBlocks", "open", "read_ahead"]
