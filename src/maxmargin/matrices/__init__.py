"""Symmetric matrices over sample indices, and the feature rows behind linear ones.

- `symmetric_matrix`: the protocols `SymmetricMatrix` and `Float32Columns`, the base class of wrapped matrices
- `kernel_matrix`, `precomputed_matrix`, `full_kernel_matrix`: values from a kernel or an array
- `bias_augmented_matrix`, `centred_matrix`, `signed_matrix`, `scaled_matrix`, `repeated_matrix`, `difference_matrix`,
  `multiclass_matrix`: derived
- `combined_matrix`: a weighted sum of matrices, and the matrices of several kernels
- `cached_matrix`, `lazy_row_cache`, `shared_cache_matrix`, `class_kernel_cache`: row caches within a byte budget
- `float32_row_cache`, `float32_matrix`: float32 rows and values for the block solver
- `features`, `feature_columns`: rows and columns of explicit features
- `group_forms`: quadratic forms, divided by groups of variables
- `numerics`: finite checks and inner products

The names in `__all__` are public.
"""

import lazy_loader as _lazy

# The names are in __init__.pyi and imported when they are first needed: a fit needs few of the matrices.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
