"""Solvers of the dual problem: objects whose fields are their options, with `solve`: a `DualProblem` → a `Solution`.

smo/            sequential minimal optimisation
block/          block decomposition on single-precision rows, the default for larger problems
linear/         solvers for the linear kernel
subgradient/    stochastic and batch subgradient methods on the primal of the linear kernel
linear_system/  least-squares problems
ranking/        pairwise ranking
kernel_weights/ steps on the weights of several kernels
classical/      the methods of the literature: Platt, gradient projection, active set, decomposition, chunking
qp/             generic solvers of quadratic programs
stopping        `StoppingRule`, `Callback` (public); trace: `Trace` (public); monitor: limits and progress reports
by_name         `SOLVERS`, `make_solver` (public)
split_form      problems with kinks for solvers without; translated_callback: observers of an equivalent problem
dual_point      a point with its gradient; stall_detector, unbounded_dual: why a solver ends without converging

Public are the solver classes, `SOLVERS` by name, `make_solver`, `StoppingRule`, `Callback`, `SharedCallback`, `Trace`.
"""

import lazy_loader as _lazy

# The names are in __init__.pyi and imported when they are first needed: a fit needs few of the solvers.
__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
