from .kernel_blocks import ComputedKernelBlocks, KernelBlocks, PrecomputedKernelBlocks
from .kernel_expansions import KernelExpansions, OneVsRestArgmax
from .landmark_features import LandmarkFeatures
from .linear_functions import LinearFunctions
from .one_vs_one_vote import OneVsOneVote

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
