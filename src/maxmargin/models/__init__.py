"""What predicts: expansions in kernel values, and how several of them decide together."""

from maxmargin.models.kernel_blocks import ComputedKernelBlocks, KernelBlocks, PrecomputedKernelBlocks
from maxmargin.models.kernel_expansions import KernelExpansions, OneVsRestArgmax
from maxmargin.models.landmark_features import LandmarkFeatures
from maxmargin.models.linear_functions import LinearFunctions
from maxmargin.models.one_vs_one_vote import OneVsOneVote

__all__ = [
    "ComputedKernelBlocks",
    "KernelBlocks",
    "KernelExpansions",
    "LandmarkFeatures",
    "LinearFunctions",
    "OneVsOneVote",
    "OneVsRestArgmax",
    "PrecomputedKernelBlocks",
]
