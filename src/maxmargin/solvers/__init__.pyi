from .block.block_solver import BlockSolver
from .by_name import SOLVERS, make_solver
from .classical.active_set import ActiveSetSolver
from .classical.chunking import ChunkingSolver
from .classical.decomposition import DecompositionSolver
from .classical.gradient_projection import GradientProjectionSolver
from .classical.platt import PlattSolver
from .linear.coordinate_descent import CoordinateDescentSolver
from .linear.dual_coordinate_ascent import DualCoordinateAscentSolver
from .linear.linear_solver import LinearSolver
from .linear.semismooth_newton import SemismoothNewtonSolver
from .linear_system.linear_system_solver import LinearSystemSolver
from .monitor import SharedCallback
from .qp.primal_quadratic_program import PrimalQuadraticProgramSolver
from .qp.quadratic_program import QuadraticProgramSolver
from .ranking.multiplier_newton import MultiplierNewtonSolver
from .smo.pairwise import PairwiseSolver
from .stopping import Callback, StoppingRule
from .subgradient.step_sizes import StepSize
from .subgradient.stochastic_subgradient import StochasticSubgradientSolver
from .subgradient.subgradient import SubgradientSolver
from .trace import Trace

__all__ = [
    "SOLVERS",
    "ActiveSetSolver",
    "BlockSolver",
    "Callback",
    "ChunkingSolver",
    "CoordinateDescentSolver",
    "DecompositionSolver",
    "DualCoordinateAscentSolver",
    "GradientProjectionSolver",
    "LinearSolver",
    "LinearSystemSolver",
    "MultiplierNewtonSolver",
    "PairwiseSolver",
    "PlattSolver",
    "PrimalQuadraticProgramSolver",
    "QuadraticProgramSolver",
    "SemismoothNewtonSolver",
    "SharedCallback",
    "StepSize",
    "StochasticSubgradientSolver",
    "StoppingRule",
    "SubgradientSolver",
    "Trace",
    "make_solver",
]
