"""Algorithms: a `DualProblem` in, a `Solution` out. A solver is an object whose fields are its options."""

from maxmargin.solvers.block import BlockSolver
from maxmargin.solvers.coordinate_descent import CoordinateDescentSolver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscentSolver
from maxmargin.solvers.linear_choice import LinearSolver
from maxmargin.solvers.linear_system import LinearSystemSolver
from maxmargin.solvers.pairwise import PairwiseSolver
from maxmargin.solvers.semismooth_newton import SemismoothNewtonSolver
from maxmargin.solvers.step_sizes import StepSize
from maxmargin.solvers.stochastic_subgradient import StochasticSubgradientSolver
from maxmargin.solvers.stopping import Callback, SharedCallback, StoppingRule, Trace
from maxmargin.solvers.subgradient import SubgradientSolver

__all__ = [
    "SOLVERS",
    "BlockSolver",
    "Callback",
    "CoordinateDescentSolver",
    "DualCoordinateAscentSolver",
    "LinearSolver",
    "LinearSystemSolver",
    "PairwiseSolver",
    "SemismoothNewtonSolver",
    "SharedCallback",
    "StepSize",
    "StochasticSubgradientSolver",
    "StoppingRule",
    "SubgradientSolver",
    "Trace",
]

#: The solvers by name.
SOLVERS = {
    "pairwise": PairwiseSolver,
    "block": BlockSolver,
    "linear_system": LinearSystemSolver,  # for machines without bounds, such as `LSSVC`
    "linear": LinearSolver,  # the rest is for the linear kernel
    "dual_coordinate_ascent": DualCoordinateAscentSolver,
    "semismooth_newton": SemismoothNewtonSolver,
    "subgradient": SubgradientSolver,
    "stochastic_subgradient": StochasticSubgradientSolver,
}
