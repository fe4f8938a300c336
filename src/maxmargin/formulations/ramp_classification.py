"""Classification with unlabelled samples: a step of the concave–convex procedure for the ramp loss.

    primal   minimise ½‖w‖² + Σ C_i H(y_i f(x_i)) + Σ_u C_u [H(f(x_u)) + H(−f(x_u))] − Σ_u a_u f(x_u)
             subject to  Σ_u share_u f(x_u) = r          (u: without a label; H(z) = max(0, 1 − z))
    dual     in b − a, the coefficients b minus those a of the linear term: linear = y − r − M a,
             bounds [0, C_i] where y_i = +1, [−C_i, 0] where y_i = −1;  kink 1 and bounds [−C_u, C_u] without a label

(Collobert, Sinz, Weston & Bottou 2006.) The ramp loss of an unlabelled sample is H, cut off at 1 − s, for both labels.
It is the difference of two hinges, of which the second, where y f(x) < s, is linearised: that is a. The two variables
of the paper, one for each label, have the same row of the matrix; their sum has a kink, like ε-regression with ε = 1.
The constraint on the mean keeps unlabelled samples from becoming one class. It is fulfilled by f(x) = w·(Φ(x) − μ) + r
with the mean μ = Σ share_u Φ(x_u), so M is the matrix around μ (`matrices.centred_matrix`), and there is no group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.c_classification import MarginGeometry
from maxmargin.formulations.formulation import KernelExpansion, bias_constraint, margin_of
from maxmargin.matrices import PrecomputedMatrix, SymmetricMatrix
from maxmargin.matrices.centred_matrix import CentredMatrix
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Certificate, DualProblem


@dataclass(frozen=True)
class RampClassification:
    """The numbers of one step.

    Attributes
    ----------
    signs : float array
        The label of each sample, ±1, or 0 without one.
    shares : float array
        The share of each sample in the mean μ; they sum to one.
    mean : float
        r, the mean of the decision values.
    linearised : float array
        a, the coefficients of the linear term.
    product : float array
        M a.
    """

    signs: Floats
    shares: Floats
    mean: float
    linearised: Floats
    product: Floats

    def pose(self, matrix: SymmetricMatrix, costs: Floats) -> DualProblem:
        """Return the dual problem on the matrix around μ, with the cost of each sample."""
        return DualProblem(
            matrix=matrix,
            linear=self.signs - self.mean - self.product,
            lower=np.where(self.signs > 0, 0.0, -costs),
            upper=np.where(self.signs < 0, 0.0, costs),
            kink=np.where(self.signs == 0, 1.0, 0.0),
            linear_error=matrix.product_error(self.linearised).double,
            **bias_constraint(matrix.size, False),
        )

    def values(self, gradient: Floats) -> Floats:
        """Return f(x) of each sample from the gradient of the dual problem."""
        return self.signs - gradient

    def expand(self, problem: DualProblem, dual: Floats, offset: Floats) -> KernelExpansion:
        """Return the decision function, in which μ is an expansion of its samples."""
        coefficients = self.linearised + dual
        coefficients = coefficients - float(coefficients.sum()) * self.shares
        matrix = problem.matrix.origin if isinstance(problem.matrix, PrecomputedMatrix) else problem.matrix
        assert isinstance(matrix, CentredMatrix)
        # w·μ: the coefficients sum to 0, and the shifts are ⟨Φ(x_i), μ⟩ minus a constant.
        return KernelExpansion(coefficients, self.mean - inner(coefficients, matrix.shift))

    def read(self, problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> MarginGeometry:
        """Return the geometry of a solution; the slack of an unlabelled sample is that of its predicted label."""
        values = self.values(certificate.slack)  # which is the gradient: there is no offset
        coefficients = self.linearised + dual
        squared_norm = inner(coefficients, values - self.mean)
        free = (problem.lower < dual) & (dual < problem.upper) & (dual != 0)
        support = coefficients != 0
        offset = float(self.expand(problem, dual, certificate.offset).offset)
        return MarginGeometry(
            margin=margin_of(squared_norm),
            squared_norm=squared_norm,
            offset=offset,
            offset_interval=(offset, offset),
            free=samples[free & support],
            bounded=samples[support & ~free],
            non_support=samples[~support],
            samples=samples,
            slack=np.maximum(0.0, 1.0 - np.where(self.signs == 0, np.abs(values), self.signs * values)),
        )
