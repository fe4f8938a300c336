"""Algorithms: a `DualProblem` in, a `Solution` out. A solver is an object whose fields are its options."""

from maxmargin.solvers.active_set import ActiveSetSolver
from maxmargin.solvers.block import BlockSolver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscentSolver
from maxmargin.solvers.gradient_projection import GradientProjectionSolver
from maxmargin.solvers.linear_choice import LinearSolver
from maxmargin.solvers.linear_system import LinearSystemSolver
from maxmargin.solvers.pairwise import PairwiseSolver
from maxmargin.solvers.platt import PlattSolver
from maxmargin.solvers.semismooth_newton import SemismoothNewtonSolver
from maxmargin.solvers.step_sizes import StepSize
from maxmargin.solvers.stochastic_subgradient import StochasticSubgradientSolver
from maxmargin.solvers.stopping import Callback, SharedCallback, StoppingRule, Trace
from maxmargin.solvers.subgradient import SubgradientSolver

__all__ = [
    "SOLVERS",
    "ActiveSetSolver",
    "BlockSolver",
    "Callback",
    "DualCoordinateAscentSolver",
    "GradientProjectionSolver",
    "LinearSolver",
    "LinearSystemSolver",
    "PairwiseSolver",
    "PlattSolver",
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
    "platt": PlattSolver,
    "gradient_projection": GradientProjectionSolver,
    "active_set": ActiveSetSolver,
    "linear_system": LinearSystemSolver,  # for machines without bounds, such as `LSSVC`
    "linear": LinearSolver,  # the rest is for the linear kernel
    "dual_coordinate_ascent": DualCoordinateAscentSolver,
    "semismooth_newton": SemismoothNewtonSolver,
    "subgradient": SubgradientSolver,
    "stochastic_subgradient": StochasticSubgradientSolver,
}
