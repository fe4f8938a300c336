"""Classical solvers of the dual problem: the methods by which support vector machines were first trained.

platt                `PlattSolver` (public): sequential minimal optimisation as Platt wrote it
gradient_projection  `GradientProjectionSolver` (public): all violating variables move together
active_set           `ActiveSetSolver` (public): exact solution on the free variables, one variable at a time
decomposition        `DecompositionSolver` (public): working sets of fixed size, each solved by another solver
chunking             `ChunkingSolver` (public): a working set that grows until it contains the support vectors
dual_ascent          base of the first three: a feasible point whose dual value rises
decomposition_run    base of the last two: selection, restriction and update of working sets
reduced_cholesky     the factor of the reduced Hessian of the active-set method
"""
