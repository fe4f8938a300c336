"""All-in-one classification of k classes: one problem with a weight vector w_c for each class.

    primal   minimise ½ Σ_c ‖w_c‖² + Σ_i C_i loss_i,   loss_i from the margins w_y·Φ(x_i) − w_c·Φ(x_i) ≥ 1, c ≠ y_i
    dual     a variable b_ic for each sample and class, w_c = Σ_i b_ic Φ(x_i); linear = 1 where c = y_i, else 0;
             b_ic ≥ 0 where c = y_i, else ≤ 0; one group for each sample, of total 0; matrix K ⊗ I

The box constraints determine the loss (`weston_watkins`, `crammer_singer`). The offset ρ_i of a group is a multiplier:
at its optimal value, conjugate(z) summed over the classes of a sample is C_i times its loss.

An unregularised bias for each class would couple the variables of all samples. So the bias is regularised, the weight
of a feature that is 1 everywhere: K + 1 in place of K, b_c = Σ_i b_ic (Hsu & Lin 2002). The weights and biases of all
classes sum to 0, because every group does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import KernelExpansion
from maxmargin.matrices import BiasAugmentedMatrix, MulticlassMatrix
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem

#: Variables within this distance of a bound, relative to the width of the box, are set to it: two variables of a group
#: may reach their bounds in one step.
BOUND_TOLERANCE = 1e-12


def pose(
    matrix: SymmetricMatrix, labels: Indices, classes: int, costs: Floats, own_factor: float, fit_intercept: bool
) -> DualProblem:
    """Return the dual problem of samples with class indices `labels`; 0 ≤ b_iy ≤ own_factor C_i for the own class y."""
    count = matrix.size
    own = np.zeros((count, classes), dtype=bool)
    own[np.arange(count), labels] = True
    base = BiasAugmentedMatrix(matrix) if fit_intercept else matrix
    return DualProblem(
        matrix=MulticlassMatrix.for_classes(base, classes),
        linear=own.astype(np.float64).ravel(),
        lower=np.where(own, 0.0, -costs[:, None]).ravel(),
        upper=np.where(own, own_factor * costs[:, None], 0.0).ravel(),
        group=np.repeat(np.arange(count, dtype=np.int32), classes),
        total=np.zeros(count),
    )


def expand(problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
    """Return the decision functions: a column of coefficients and a bias for each class."""
    coefficients = by_class(problem, snap_to_bounds(problem, dual))
    return KernelExpansion(coefficients, _bias(problem, coefficients))


def snap_to_bounds(problem: DualProblem, dual: Floats) -> Floats:
    """Return the variables, with those at a bound up to rounding set exactly to it."""
    tolerance = BOUND_TOLERANCE * (problem.upper - problem.lower)
    on_upper, on_lower = problem.upper - dual <= tolerance, dual - problem.lower <= tolerance
    return np.where(on_upper, problem.upper, np.where(on_lower, problem.lower, dual))


def by_class(problem: DualProblem, values: Floats) -> Floats:
    """Return values of variables as a table of samples and classes."""
    return values.reshape(problem.groups, -1)


def _bias(problem: DualProblem, coefficients: Floats) -> Floats:
    matrix = problem.matrix
    assert isinstance(matrix, MulticlassMatrix)
    constant = matrix.base.constant if isinstance(matrix.base, BiasAugmentedMatrix) else 0.0
    bias: Floats = constant * coefficients.sum(axis=0)
    return bias


@dataclass(frozen=True)
class ClassGeometry:
    """Geometry of a solved all-in-one classification in feature space.

    Attributes
    ----------
    squared_norm : float
        Σ_c ‖w_c‖², with the squared biases.
    offset : float array
        The bias of each class.
    free, bounded, non_support : int arrays
        Training samples with a coefficient strictly between its bounds, samples whose non-zero coefficients are all at
        the bound of the cost, and samples without non-zero coefficients; indices of the rows given to ``fit``.
    samples : int array
        The training samples.
    slack : float array of shape (samples, classes)
        ξ of each sample and class, max(0, 1 − (w_y·Φ(x) − w_c·Φ(x))); 0 for its own class.
    """

    squared_norm: float
    offset: Floats = field(repr=False)
    free: Indices = field(repr=False)
    bounded: Indices = field(repr=False)
    non_support: Indices = field(repr=False)
    samples: Indices = field(repr=False)
    slack: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> ClassGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    dual = snap_to_bounds(problem, dual)
    own = by_class(problem, problem.linear) > 0
    residual = by_class(problem, certificate.slack)  # up to the offset of the sample, which cancels in the difference
    slack = np.maximum(0.0, residual[own][:, None] - residual)
    slack[own] = 0.0
    off_bounds = (problem.lower < dual) & (dual < problem.upper)
    free = off_bounds.reshape(problem.groups, -1).any(axis=1)
    used = by_class(problem, dual).any(axis=1)
    return ClassGeometry(
        squared_norm=certificate.squared_norm,
        offset=_bias(problem, by_class(problem, dual)),
        free=samples[free],
        bounded=samples[used & ~free],
        non_support=samples[~used],
        samples=samples,
        slack=slack,
    )
