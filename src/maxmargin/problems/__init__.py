"""The dual problem that every estimator is posed as, feasible points of it, and the certificate of optimality.

dual_problem        `DualProblem`, `InfeasibleProblemError` (public): the quadratic program
solution            `Solution`, `Status`, `Counters`, `Progress` (public): what solvers return and report
certificate         `certify`, `Certificate` (public): primal, dual, duality gap and violation of a dual vector
products            the products with the matrix that a certificate needs, with bounds on their errors
objective_bounds    rigorous bounds on both objective values of a point
dual_bound          a lower bound on the optimum from a dual vector and its squared norm alone
losses              the loss of a sample, its derivative and its share of the gap
l1_certificate      `certify_l1` (public): the same for the penalty Σ |w_j|
combination_certificate  `certify_combination`: the same for weights of several kernels together with dual vectors
feasible_start      `feasible_start`, `recorded_start` (public): a feasible point close to a given one
kinks               the two sides of the slope where the objective has a kink at zero
split_problem       `SplitProblem`: a problem with kinks as one with two variables in place of one
gradient_extremes   extremes of the gradient per group, and the violation and offset intervals that follow
order_ranking       `OrderRanking`: a ranking and its certificate without a list of its pairs
offsets             the offset of least loss for given weights
"""

from maxmargin.problems.certificate import Certificate, certify
from maxmargin.problems.dual_problem import DualProblem, InfeasibleProblemError
from maxmargin.problems.feasible_start import feasible_start, recorded_start
from maxmargin.problems.l1_certificate import certify_l1
from maxmargin.problems.solution import Counters, Progress, Solution, Status

__all__ = [
    "Certificate",
    "Counters",
    "DualProblem",
    "InfeasibleProblemError",
    "Progress",
    "Solution",
    "Status",
    "certify",
    "certify_l1",
    "feasible_start",
    "recorded_start",
]
