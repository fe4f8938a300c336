"""The gaussian (radial basis function) kernel k(x, z) = exp(−γ‖x − z‖²): the default of most users.

Distances are summed from differences, not from ‖x‖² + ‖z‖² − 2x·z: columns with a large offset (years, time
stamps, metres above sea level) lose no digits, and the kernel of a sample with itself is exactly 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from maxmargin.kernels.formula import Term
from maxmargin.kernels.radial import Radial


@dataclass(frozen=True)
class Gaussian(Radial):
    """k(x, z) = exp(−gamma ‖x − z‖²)."""

    distance = Term.SQUARED
