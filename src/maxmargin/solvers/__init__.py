"""Solvers of the dual problem: objects whose fields are their options, with `solve`: a `DualProblem` → a `Solution`.

smo/            sequential minimal optimisation
block/          block decomposition on single-precision rows, the default for larger problems
linear/         solvers for the linear kernel
subgradient/    stochastic and batch subgradient methods on the primal of the linear kernel
linear_system/  least-squares problems
ranking/        pairwise ranking
classical/      the methods of the literature: Platt, gradient projection, active set, decomposition, chunking
qp/             generic solvers of quadratic programs
stopping        `StoppingRule`, `Callback` (public); trace: `Trace` (public); monitor: limits and progress reports
dual_point      a point with its gradient; stall_detector, unbounded_dual: why a solver ends without converging

Public are the solver classes, `SOLVERS` by name, `make_solver`, `StoppingRule`, `Callback`, `SharedCallback`, `Trace`.
"""

from dataclasses import fields
from typing import Any

from maxmargin.solvers.block.block_solver import BlockSolver
from maxmargin.solvers.classical.active_set import ActiveSetSolver
from maxmargin.solvers.classical.chunking import ChunkingSolver
from maxmargin.solvers.classical.decomposition import DecompositionSolver
from maxmargin.solvers.classical.gradient_projection import GradientProjectionSolver
from maxmargin.solvers.classical.platt import PlattSolver
from maxmargin.solvers.linear.coordinate_descent import CoordinateDescentSolver
from maxmargin.solvers.linear.dual_coordinate_ascent import DualCoordinateAscentSolver
from maxmargin.solvers.linear.linear_solver import LinearSolver
from maxmargin.solvers.linear.semismooth_newton import SemismoothNewtonSolver
from maxmargin.solvers.linear_system.linear_system_solver import LinearSystemSolver
from maxmargin.solvers.monitor import SharedCallback
from maxmargin.solvers.qp.primal_quadratic_program import PrimalQuadraticProgramSolver
from maxmargin.solvers.qp.quadratic_program import QuadraticProgramSolver
from maxmargin.solvers.ranking.multiplier_newton import MultiplierNewtonSolver
from maxmargin.solvers.smo.pairwise import PairwiseSolver
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.subgradient.step_sizes import StepSize
from maxmargin.solvers.subgradient.stochastic_subgradient import StochasticSubgradientSolver
from maxmargin.solvers.subgradient.subgradient import SubgradientSolver
from maxmargin.solvers.trace import Trace

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

#: The solvers by name.
SOLVERS = {
    "pairwise": PairwiseSolver,
    "block": BlockSolver,
    "platt": PlattSolver,
    "gradient_projection": GradientProjectionSolver,
    "active_set": ActiveSetSolver,
    "linear_system": LinearSystemSolver,  # for problems without bounds, such as those of `LSSVC`
    "multiplier_newton": MultiplierNewtonSolver,  # for rankings
    "quadratic_program": QuadraticProgramSolver,
    "chunking": ChunkingSolver,
    "decomposition": DecompositionSolver,
    "linear": LinearSolver,  # from here on for the linear kernel
    "dual_coordinate_ascent": DualCoordinateAscentSolver,
    "semismooth_newton": SemismoothNewtonSolver,
    "subgradient": SubgradientSolver,
    "stochastic_subgradient": StochasticSubgradientSolver,
    "primal_quadratic_program": PrimalQuadraticProgramSolver,
}


def make_solver(name: str, **options: Any) -> Any:
    """Return a solver by name, with those of the options that are among its fields."""
    kind: Any = SOLVERS[name]
    known = {field.name for field in fields(kind)}
    return kind(**{key: value for key, value in options.items() if key in known})
