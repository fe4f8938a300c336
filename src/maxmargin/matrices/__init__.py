"""Symmetric operators over sample indices: from a kernel, from an array, with a cache."""

from maxmargin.matrices.bias_augmented_matrix import BiasAugmentedMatrix
from maxmargin.matrices.cached_matrix import CachedMatrix
from maxmargin.matrices.class_rows import row_store
from maxmargin.matrices.difference_matrix import DifferenceMatrix
from maxmargin.matrices.full_kernel_matrix import FullKernelMatrix
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.multiclass_matrix import MulticlassMatrix
from maxmargin.matrices.numerics import NON_FINITE_MESSAGE
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.matrices.row_store import RowStore
from maxmargin.matrices.shared_cache_matrix import SharedCacheMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

__all__ = [
    "NON_FINITE_MESSAGE",
    "BiasAugmentedMatrix",
    "CachedMatrix",
    "DifferenceMatrix",
    "FullKernelMatrix",
    "KernelMatrix",
    "MulticlassMatrix",
    "PrecomputedMatrix",
    "RepeatedMatrix",
    "RowStore",
    "SharedCacheMatrix",
    "SymmetricMatrix",
    "row_store",
]
