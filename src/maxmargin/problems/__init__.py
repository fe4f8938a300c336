"""The one problem, its feasible points, and the certificate that judges them."""

from maxmargin.problems.certificate import Certificate, certify
from maxmargin.problems.dual_problem import DualProblem, InfeasibleProblemError
from maxmargin.problems.feasible_start import feasible_start
from maxmargin.problems.solution import Counters, Progress, Solution, Status
from maxmargin.problems.sparse_certificate import certify_sparse

__all__ = [
    "Certificate",
    "Counters",
    "DualProblem",
    "InfeasibleProblemError",
    "Progress",
    "Solution",
    "Status",
    "certify",
    "certify_sparse",
    "feasible_start",
]
