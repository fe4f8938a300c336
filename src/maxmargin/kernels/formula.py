"""Descriptions of kernels that the native loops evaluate: k(x, z) = function(Σ_k term(x_k, z_k)).

The loops keep the sum in registers until the function has been applied; only the kernel value is written to memory.
The enumeration values are those of `native/kernel_loops.hpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Term(IntEnum):
    """The contribution of one feature of two samples to the sum."""

    PRODUCT = 0  #: x z
    SQUARED = 1  #: (x − z)²
    ABSOLUTE = 2  #: |x − z|
    CHI_SQUARED = 3  #: (x − z)² / (x + z)


class OuterFunction(IntEnum):
    """The function applied to the sum s."""

    IDENTITY = 0  #: s
    POWER = 1  #: (γ s + coef0)^degree
    EXPONENTIAL = 2  #: exp(−γ s)
    TANGENT = 3  #: tanh(γ s + coef0)
    GAUSSIAN_OF_PRODUCT = 4  #: exp(γ (s − ½‖x‖² − ½‖z‖²)), dense samples only


@dataclass(frozen=True)
class KernelFormula:
    """k(x, z) = function(Σ_k term(x_k, z_k)) and the parameters of the function."""

    term: Term
    function: OuterFunction = OuterFunction.IDENTITY
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 0
