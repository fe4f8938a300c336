from .bias_augmented_matrix import BiasAugmentedMatrix
from .cached_matrix import CachedMatrix
from .difference_matrix import DifferenceMatrix
from .float32_row_cache import Float32RowCache, make_row_cache
from .full_kernel_matrix import FullKernelMatrix
from .kernel_matrix import KernelMatrix
from .multiclass_matrix import MulticlassMatrix
from .numerics import NON_FINITE_MESSAGE
from .precomputed_matrix import PrecomputedMatrix
from .repeated_matrix import RepeatedMatrix
from .shared_cache_matrix import SharedCacheMatrix
from .symmetric_matrix import SymmetricMatrix

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
