"""Models: decision functions from fitted coefficients, multi-class decisions, and calibration.

- `kernel_expansions`: `KernelExpansions`, several decision functions, and `OneVsRestArgmax`
- `one_vs_one_vote`: `OneVsOneVote`, binary models of all pairs of classes and their vote
- `linear_functions`: `LinearFunctions`, decision functions with explicit weights
- `kernel_blocks`: kernel values of samples and support vectors in blocks, on several threads
- `landmark_features`: `LandmarkFeatures`, the Nyström approximation of a kernel
- `residual_bound`: a bound on quadratic forms of the exact kernel from it
- `overflow`: decision values beyond the range of float64
- `calibration`: Platt sigmoids, pairwise coupling, density marks and Laplace intervals
- `concordance`: the fraction of correctly ordered pairs, the score of a ranking
- `structured`: `JointModel`, `ChainModel` and `MultiLabelModel`, joint features and maximisers of structured outputs

The names in `__all__` are public.
"""

import lazy_loader as _lazy

# The names are in __init__.pyi and imported when they are first needed: most programs predict with one kind of model.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
