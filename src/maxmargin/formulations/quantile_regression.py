"""Quantile regression: the function below which a fraction τ of the targets lies.

    primal   minimise ½‖w‖² + Σ C_i ρ_τ(t_i − w·Φ(x_i) − b),   ρ_τ(e) = τ e where e > 0, else (τ − 1) e
    dual     linear = t,  bounds [−C_i (1 − τ), C_i τ],  one group of total 0

(Takeuchi et al. 2006; the pinball loss.) τ = ½ is the median: ε-regression with ε = 0 and half the cost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.c_classification import expand
from maxmargin.formulations.formulation import bias_constraint, bias_of
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem

__all__ = ["QuantileGeometry", "expand", "pose", "read"]


def pose(
    matrix: SymmetricMatrix, targets: Floats, costs: Floats, quantile: float, fit_intercept: bool = True
) -> DualProblem:
    """Return the dual problem of samples with `targets` and costs C_i."""
    return DualProblem(
        matrix=matrix,
        linear=targets,
        lower=-(1.0 - quantile) * costs,
        upper=quantile * costs,
        **bias_constraint(matrix.size, fit_intercept),
    )


@dataclass(frozen=True)
class QuantileGeometry:
    """Geometry of a solved quantile regression.

    Attributes
    ----------
    squared_norm : float
        ‖w‖².
    offset : float
        b of the function.
    above, below, on : int arrays
        Training samples whose targets lie above the function, below it and on it.
    samples : int array
        The training samples.
    error : float array
        Residual of each sample: target minus function.
    """

    squared_norm: float
    offset: float
    above: Indices = field(repr=False)
    below: Indices = field(repr=False)
    on: Indices = field(repr=False)
    samples: Indices = field(repr=False)
    error: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> QuantileGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    above, below = dual == problem.upper, dual == problem.lower
    return QuantileGeometry(
        squared_norm=certificate.squared_norm,
        offset=bias_of(problem, certificate.offset),
        above=samples[above],
        below=samples[below],
        on=samples[~above & ~below],
        samples=samples,
        error=certificate.slack,
    )
