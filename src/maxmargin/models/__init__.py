"""What predicts: expansions in kernel values, and how several of them decide together."""

from maxmargin.models.kernel_blocks import ComputedBlocks, GivenBlocks, KernelBlocks
from maxmargin.models.one_versus_one import OneVersusOne

__all__ = ["ComputedBlocks", "GivenBlocks", "KernelBlocks", "OneVersusOne"]
