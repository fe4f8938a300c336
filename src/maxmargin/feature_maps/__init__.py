"""Explicit feature maps for linear estimators, as scikit-learn transformers.

- `polar_coordinates`: radius and angles around a centre
- `polynomial_map`: monomials whose inner products equal the polynomial kernel
- `distance_map`: distances to prototypes, or Gaussians of them
- `function_map`: the output of a function, a fitted estimator or a torch module (`torch_features` runs the module)
- `nystroem_map`: Nyström approximation of a kernel
- `feature_map`: the base class with the input validation

Public: the five maps below.
"""

from maxmargin.feature_maps.distance_map import DistanceMap
from maxmargin.feature_maps.function_map import FunctionMap
from maxmargin.feature_maps.nystroem_map import NystroemMap
from maxmargin.feature_maps.polar_coordinates import PolarCoordinates
from maxmargin.feature_maps.polynomial_map import PolynomialMap

__all__ = ["DistanceMap", "FunctionMap", "NystroemMap", "PolarCoordinates", "PolynomialMap"]
