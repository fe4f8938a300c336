"""Generic solvers of quadratic programs, followed by a crossover to the exact optimum.

quadratic_program         `QuadraticProgramSolver` (public): the dual, with its dense matrix
primal_quadratic_program  `PrimalQuadraticProgramSolver` (public): the primal of the linear kernel
qp_backends               the external packages (Clarabel, OSQP, HiGHS, PIQP, ProxQP), each behind the same function
qp_run                    from a posed program to a solution
crossover                 identify the active bounds, solve the equations of the free variables, correct by pair steps
"""
