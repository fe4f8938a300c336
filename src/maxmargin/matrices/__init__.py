"""Symmetric operators over sample indices: from a kernel, from an array, with a cache."""

from maxmargin.matrices.cached_matrix import NOT_FINITE, CachedMatrix
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

__all__ = ["NOT_FINITE", "CachedMatrix", "KernelMatrix", "PrecomputedMatrix", "SymmetricMatrix"]
