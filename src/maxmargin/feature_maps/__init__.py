"""Maps from samples to features, for linear machines: transformers of scikit-learn's kind."""

from maxmargin.feature_maps.distance_map import DistanceMap
from maxmargin.feature_maps.function_map import FunctionMap
from maxmargin.feature_maps.nystroem_map import NystroemMap
from maxmargin.feature_maps.polar_coordinates import PolarCoordinates
from maxmargin.feature_maps.polynomial_map import PolynomialMap

__all__ = ["DistanceMap", "FunctionMap", "NystroemMap", "PolarCoordinates", "PolynomialMap"]
