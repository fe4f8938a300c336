"""Tolerances for the rounding errors of double precision, each under the name of what it bounds.

A tolerance is relative unless it says otherwise. Tolerances that a user sets (`StoppingRule`) are not here.
"""

from __future__ import annotations

import numpy as np

#: The distance from 1 to the next double, 2.2e-16.
DOUBLE_EPSILON = float(np.finfo(np.float64).eps)

#: The largest relative error of one rounding to double, 1.1e-16.
UNIT_ROUNDOFF = 0.5 * DOUBLE_EPSILON

#: The smallest normal double; a denominator at least this large does not overflow a quotient of ordinary numbers.
SMALLEST_DOUBLE = float(np.finfo(np.float64).tiny)

#: Distance from a bound, relative to the bound, below which a variable is set exactly to it. The same value as
#: `kRounding` in native/pairwise.hpp.
BOUND_TOLERANCE = 1e-14

#: Deviation of a group's sum from its total, relative to the terms of the sum, that counts as rounding.
GROUP_SUM_TOLERANCE = 1e-12

#: Change of an objective value, relative to it, that cannot be distinguished from rounding.
OBJECTIVE_TOLERANCE = 1e-14

#: Curvature along a direction, relative to the terms that were added up, below which it counts as zero.
ZERO_CURVATURE = 1e-15

#: Curvature along a direction, relative to the terms that were added up, below whose negative the matrix is indefinite.
NEGATIVE_CURVATURE = 1e-12

#: Eigenvalue or quadratic form, relative to the largest value, below whose negative the matrix is indefinite.
NEGATIVE_EIGENVALUE = 1e-9

#: Decision value of a novelty detector, relative to its terms, below which the sample lies on the boundary.
DECISION_TOLERANCE = 1e-10
