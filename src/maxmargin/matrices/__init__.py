"""Symmetric operators over sample indices: from a kernel, from an array, with a cache."""

from maxmargin.matrices.cached_matrix import CachedMatrix
from maxmargin.matrices.class_matrix import ClassMatrix
from maxmargin.matrices.class_rows import row_store
from maxmargin.matrices.difference_matrix import DifferenceMatrix
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.matrices.row_store import RowStore
from maxmargin.matrices.shared_rows import SharedRows
from maxmargin.matrices.shifted_matrix import ShiftedMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.matrices.values import NOT_FINITE
from maxmargin.matrices.whole_kernel import WholeKernel

__all__ = [
    "NOT_FINITE",
    "CachedMatrix",
    "ClassMatrix",
    "DifferenceMatrix",
    "KernelMatrix",
    "PrecomputedMatrix",
    "RepeatedMatrix",
    "RowStore",
    "SharedRows",
    "ShiftedMatrix",
    "SymmetricMatrix",
    "WholeKernel",
    "row_store",
]
