"""Algorithms: a `DualProblem` in, a `Solution` out. A solver is an object whose fields are its options."""

from maxmargin.solvers.block import BlockSolver
from maxmargin.solvers.linear_system import LinearSystemSolver
from maxmargin.solvers.pairwise import PairwiseSolver
from maxmargin.solvers.stopping import Callback, SharedCallback, StoppingRule

__all__ = [
    "SOLVERS",
    "BlockSolver",
    "Callback",
    "LinearSystemSolver",
    "PairwiseSolver",
    "SharedCallback",
    "StoppingRule",
]

#: The solvers by name. The last is for machines without bounds, such as `LSSVC`.
SOLVERS = {"pairwise": PairwiseSolver, "block": BlockSolver, "linear_system": LinearSystemSolver}
