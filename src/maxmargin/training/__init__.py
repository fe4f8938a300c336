"""Training: from dual problems to verified models, the same way for all estimators.

    fit_context        kernel, solver options, memory, threads, limits and observers of one fit
    pipeline           solve, verify, resume; several problems on threads, with progress and Ctrl-C
    problem_scale      units in which problems of extreme magnitudes are ordinary
    verification       verification in double precision, of kernel models
    linear_verification  the same of linear models: penalties l2 and l1, all-in-one
    trained_model      the result: dual vector, decision function, certificate
    exact_certificate  bounds on the exact kernel optimum from a machine on landmarks
    adapted_dual       a dual vector for the exact kernel from that of a machine on landmarks
    small_problems     small problems in one native call
    joined_models      problems posed as one, and their models, made when they are read
    transduction       sequences of problems for samples without labels
    kernel_subproblem  subproblems that share the weights of several kernels
    kernel_evaluation  these subproblems, solved with fixed weights
    multiple_kernels   weights of several kernels, learned with the dual vectors
    hard_margin_start  separability and the start of a hard margin

Nothing here imports scikit-learn. Solvers and formulations meet only here.
"""

from maxmargin.training.pipeline import Session, Solver, Subproblem, train, train_problems
from maxmargin.training.trained_model import StoredModel, TrainedLinearModel, TrainedModel

__all__ = [
    "Session",
    "Solver",
    "StoredModel",
    "Subproblem",
    "TrainedLinearModel",
    "TrainedModel",
    "train",
    "train_problems",
]
