"""Algorithms: a `DualProblem` in, a `Solution` out. A solver is an object whose fields are its options."""

from maxmargin.solvers.block import BlockSolver
from maxmargin.solvers.pairwise import PairwiseSolver
from maxmargin.solvers.stopping import Callback, SharedCallback, StoppingRule

__all__ = ["SOLVERS", "BlockSolver", "Callback", "PairwiseSolver", "SharedCallback", "StoppingRule"]

#: The names that `SVC(solver=...)` knows.
SOLVERS = {"pairwise": PairwiseSolver, "block": BlockSolver}
