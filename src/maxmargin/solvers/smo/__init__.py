"""Sequential minimal optimisation: steps along pairs of dual variables, in double precision.

pairwise             `PairwiseSolver` (public): working-set selection, shrinking, row cache, exact finish
smo_state            dual, gradient, box and cached rows in working order; the calls of the native loop
exact_finish         the linear equations of the free variables, to double precision
small_problem_batch  many small problems on one matrix in memory, solved in one native call
"""
