"""What predicts: expansions in kernel values, and how several of them decide together."""

from maxmargin.models.expansions import Expansions
from maxmargin.models.kernel_blocks import ComputedBlocks, GivenBlocks, KernelBlocks
from maxmargin.models.landmark_features import LandmarkFeatures
from maxmargin.models.linear_functions import LinearFunctions
from maxmargin.models.one_versus_rest import OneVersusRest
from maxmargin.models.pairwise_vote import OneVersusOne

__all__ = [
    "ComputedBlocks",
    "Expansions",
    "GivenBlocks",
    "KernelBlocks",
    "LandmarkFeatures",
    "LinearFunctions",
    "OneVersusOne",
    "OneVersusRest",
]
