"""Least squares classification (LS-SVM): squared deviations from the edges of the margin, on both sides of them.

    primal   minimise ½‖w‖² + ½ Σ C_i ξ_i²   where   y_i (w·Φ(x_i) + b) = 1 − ξ_i
    dual     linear = y,  no bounds,  ridge 1/C_i,  one group of total 0

(Suykens & Vandewalle 1999.) Because y_i² = 1 this is least squares regression on the labels ±1; ξ_i is negative for a
sample beyond its edge, with the same loss as inside the margin. At the optimum b_i = C_i y_i ξ_i.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import bias_of, margin_of
from maxmargin.formulations.least_squares_regression import expand, pose
from maxmargin.problems import Certificate, DualProblem

__all__ = ["ScatterGeometry", "expand", "pose", "read"]


@dataclass(frozen=True)
class ScatterGeometry:
    """Geometry of a solved least squares classification.

    Attributes
    ----------
    margin : float
        1/‖w‖, the distance from the decision boundary to the planes f = ±1, to which the classes are fitted.
    squared_norm : float
        ‖w‖².
    offset : float
        b of the decision function.
    samples : int array
        The training samples of this model (all, or in one-vs-one those of its two classes).
    slack : float array
        ξ of each of `samples`: negative beyond its plane, above 1 on the wrong side of the boundary.
    """

    margin: float
    squared_norm: float
    offset: float
    samples: Indices = field(repr=False)
    slack: Floats = field(repr=False)


def read(problem: DualProblem, dual: Floats, certificate: Certificate, samples: Indices) -> ScatterGeometry:
    """Return the geometry of a solution of the problem that `pose` made of the training rows `samples`."""
    return ScatterGeometry(
        margin=margin_of(certificate.squared_norm),
        squared_norm=certificate.squared_norm,
        offset=bias_of(problem, certificate.offset),
        samples=samples,
        slack=problem.linear * certificate.slack,
    )
