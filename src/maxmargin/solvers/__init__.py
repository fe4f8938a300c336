"""Algorithms: a `DualProblem` in, a `Solution` out. A solver is an object whose fields are its options."""

from dataclasses import fields
from typing import Any

from maxmargin.solvers.active_set import ActiveSetSolver
from maxmargin.solvers.block import BlockSolver
from maxmargin.solvers.chunking import ChunkingSolver
from maxmargin.solvers.coordinate_descent import CoordinateDescentSolver
from maxmargin.solvers.decomposition import DecompositionSolver
from maxmargin.solvers.dual_coordinate_ascent import DualCoordinateAscentSolver
from maxmargin.solvers.gradient_projection import GradientProjectionSolver
from maxmargin.solvers.linear_choice import LinearSolver
from maxmargin.solvers.linear_system import LinearSystemSolver
from maxmargin.solvers.pairwise import PairwiseSolver
from maxmargin.solvers.platt import PlattSolver
from maxmargin.solvers.primal_quadratic_program import PrimalQuadraticProgramSolver
from maxmargin.solvers.quadratic_program import QuadraticProgramSolver
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
    "ChunkingSolver",
    "CoordinateDescentSolver",
    "DecompositionSolver",
    "DualCoordinateAscentSolver",
    "GradientProjectionSolver",
    "LinearSolver",
    "LinearSystemSolver",
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

#: The solvers by name.
SOLVERS = {
    "pairwise": PairwiseSolver,
    "block": BlockSolver,
    "platt": PlattSolver,
    "gradient_projection": GradientProjectionSolver,
    "active_set": ActiveSetSolver,
    "linear_system": LinearSystemSolver,  # for machines without bounds, such as `LSSVC`
    "quadratic_program": QuadraticProgramSolver,
    "chunking": ChunkingSolver,
    "decomposition": DecompositionSolver,
    "linear": LinearSolver,  # the rest is for the linear kernel
    "dual_coordinate_ascent": DualCoordinateAscentSolver,
    "semismooth_newton": SemismoothNewtonSolver,
    "subgradient": SubgradientSolver,
    "stochastic_subgradient": StochasticSubgradientSolver,
    "primal_quadratic_program": PrimalQuadraticProgramSolver,
}


def make_solver(name: str, **options: Any) -> Any:
    """Return a solver by name, with those of the options that it has."""
    kind: Any = SOLVERS[name]
    known = {field.name for field in fields(kind)}
    return kind(**{key: value for key, value in options.items() if key in known})
