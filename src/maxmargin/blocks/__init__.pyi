from .conversions import clear_cache
from .csr_folders import write_csr
from .opening import open
from .read_ahead import read_ahead
from .row_blocks import RowBlock, RowBlocks, is_blocks
from .transformed_blocks import transform

__all__ = ["RowBlock", "RowBlocks", "clear_cache", "is_blocks", "open", "read_ahead", "transform", "write_csr"]
