"""Descriptions of kernels that the native loops evaluate: k(x, z) = function(Σ_k term(x_k, z_k)).

The loops keep the sum in registers until the function has been applied; only the kernel value is written to memory.
The enumeration values are those of `native/kernel_loops.hpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from maxmargin._typing import Floats


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


class FeatureGammas:
    """The γ of each feature, function(Σ_k γ_k term(x_k, z_k)), and what this means for the samples.

    Attributes
    ----------
    values : float array
        γ_k, at least 0.
    factors : float array
        The factors of the features that make the sum one without γ: √γ_k for squared differences, γ_k for terms that
        are proportional to the features.
    """

    __slots__ = ("_key", "factors", "values")

    def __init__(self, values: Floats, term: Term) -> None:
        self.values = values
        self.factors = np.sqrt(values) if term is Term.SQUARED else values
        self._key = values.tobytes()

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGammas) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)  # which bytes remember

    @property
    def largest_factor(self) -> float:
        return float(self.factors.max(initial=0.0))


@dataclass(frozen=True)
class KernelFormula:
    """k(x, z) = function(Σ_k term(x_k, z_k)) and the parameters of the function.

    With `gammas`, the terms are those of features multiplied by `gammas.factors`, and γ of the function is 1.
    """

    term: Term
    function: OuterFunction = OuterFunction.IDENTITY
    gamma: float = 0.0
    coef0: float = 0.0
    degree: int = 0
    gammas: FeatureGammas | None = None

    def factors_of(self, features: int) -> Floats:
        """Return the factor of each of so many features; an empty array if all are 1."""
        if self.gammas is None:
            return np.empty(0)
        if len(self.gammas) != features:
            raise ValueError(
                f"gamma has {len(self.gammas)} values, one for each feature, but X has {features} features"
            )
        return self.gammas.factors
