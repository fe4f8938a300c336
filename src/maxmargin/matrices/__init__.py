"""Symmetric operators over sample indices: from a kernel, from an array, with a cache."""

from maxmargin.matrices.cached_matrix import CachedMatrix
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.matrices.row_store import RowStore
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.matrices.values import NOT_FINITE
from maxmargin.matrices.whole_kernel import WholeKernel

__all__ = [
    "NOT_FINITE",
    "CachedMatrix",
    "KernelMatrix",
    "PrecomputedMatrix",
    "RepeatedMatrix",
    "RowStore",
    "SymmetricMatrix",
    "WholeKernel",
]
