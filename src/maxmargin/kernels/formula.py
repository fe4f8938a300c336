"""Kernels as data: a function of a sum over features, which the native loops compute in one pass.

Every kernel of the literature that is fast to compute has this shape, k(x, z) = function(Σ_k term(x_k, z_k)): the
sum stays in registers until the function has been applied, and only the value is written to memory.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.kernels.fused_columns import fill_in_stretches
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points, as_points

#: The side of the square blocks whose diagonals make up the diagonal.
SQUARE = 32


class Term(IntEnum):
    """What one feature of two samples adds to the sum; the numbers are those of `native/loops.hpp`."""

    PRODUCT = 0  #: x z
    SQUARED = 1  #: (x − z)²
    ABSOLUTE = 2  #: |x − z|
    CHI_SQUARED = 3  #: (x − z)² / (x + z)


class Function(IntEnum):
    """What becomes of the sum s; the numbers are those of `native/loops.hpp`."""

    IDENTITY = 0  #: s
    POWER = 1  #: (γ s + coef0)^degree
    EXPONENTIAL = 2  #: exp(−γ s)
    TANGENT = 3  #: tanh(γ s + coef0)
    GAUSSIAN_OF_PRODUCT = 4  #: exp(γ (s − ½‖x‖² − ½‖z‖²)), dense samples only


@dataclass(frozen=True)
class Formula:
    """function(Σ_k term(x_k, z_k))."""

    term: Term
    function: Function = Function.IDENTITY
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 0


class FormulaKernel(Kernel):
    """A kernel that is a formula: evaluated natively, densely or sparsely, in single or double precision."""

    @property
    @abstractmethod
    def formula(self) -> Formula:
        """What to compute."""

    def evaluate(self, left: Points, right: Points, threads: int = 1) -> Floats:
        return fill_in_stretches(self.formula, left, right, threads)

    def diagonal(self, points: Any) -> Floats:
        chosen = as_points(points)
        parts = [chosen.take(slice(start, start + SQUARE)) for start in range(0, len(chosen), SQUARE)]
        return np.concatenate([np.diag(self.evaluate(part, part)) for part in parts]) if parts else np.empty(0)
