from .kernel_blocks import ComputedKernelBlocks, KernelBlocks, PrecomputedKernelBlocks
from .kernel_expansions import KernelExpansions, OneVsRestArgmax
from .landmark_features import LandmarkFeatures
from .linear_functions import LinearFunctions
from .one_vs_one_vote import OneVsOneVote
from .structured.chain_model import ChainModel
from .structured.joint_model import JointModel
from .structured.multi_label_model import MultiLabelModel

__all__ = [
    "ChainModel",
    "ComputedKernelBlocks",
    "JointModel",
    "KernelBlocks",
    "KernelExpansions",
    "LandmarkFeatures",
    "LinearFunctions",
    "MultiLabelModel",
    "OneVsOneVote",
    "OneVsRestArgmax",
    "PrecomputedKernelBlocks",
]
