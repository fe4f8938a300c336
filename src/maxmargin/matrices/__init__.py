"""Symmetric matrices over sample indices, and the feature rows behind linear ones.

- `symmetric_matrix`: the protocols `SymmetricMatrix` and `Float32Columns`, the base class of wrapped matrices
- `kernel_matrix`, `precomputed_matrix`, `full_kernel_matrix`: values from a kernel or an array
- `bias_augmented_matrix`, `signed_matrix`, `scaled_matrix`, `repeated_matrix`, `difference_matrix`,
  `multiclass_matrix`: derived
- `cached_matrix`, `lazy_row_cache`, `shared_cache_matrix`, `class_kernel_cache`: row caches within a byte budget
- `float32_row_cache`, `float32_matrix`: float32 rows and values for the block solver
- `features`, `feature_columns`: rows and columns of explicit features
- `numerics`: finite checks and inner products

The names in `__all__` are public.
"""

from maxmargin.matrices.bias_augmented_matrix import BiasAugmentedMatrix
from maxmargin.matrices.cached_matrix import CachedMatrix
from maxmargin.matrices.difference_matrix import DifferenceMatrix
from maxmargin.matrices.float32_row_cache import Float32RowCache, make_row_cache
from maxmargin.matrices.full_kernel_matrix import FullKernelMatrix
from maxmargin.matrices.kernel_matrix import KernelMatrix
from maxmargin.matrices.multiclass_matrix import MulticlassMatrix
from maxmargin.matrices.numerics import NON_FINITE_MESSAGE
from maxmargin.matrices.precomputed_matrix import PrecomputedMatrix
from maxmargin.matrices.repeated_matrix import RepeatedMatrix
from maxmargin.matrices.shared_cache_matrix import SharedCacheMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix

__all__ = [
    "NON_FINITE_MESSAGE",
    "BiasAugmentedMatrix",
    "CachedMatrix",
    "DifferenceMatrix",
    "Float32RowCache",
    "FullKernelMatrix",
    "KernelMatrix",
    "MulticlassMatrix",
    "PrecomputedMatrix",
    "RepeatedMatrix",
    "SharedCacheMatrix",
    "SymmetricMatrix",
    "make_row_cache",
]
