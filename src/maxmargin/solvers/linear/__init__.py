"""Solvers for the linear kernel, which keep the weights w = Fᵀ b instead of kernel rows.

Public, through `maxmargin.solvers`:

- `linear_solver`: `LinearSolver`, the default, which chooses between the two below by estimated cost
- `dual_coordinate_ascent`: `DualCoordinateAscentSolver`, for many features or sparse data
- `semismooth_newton`: `SemismoothNewtonSolver`, for few features or few support vectors
- `coordinate_descent`: `CoordinateDescentSolver`, for the L1 penalty

Internal:

- `linear_point`: pairs of weights and a dual vector, with their objective values and gap
- `smoothed_primal`, `newton_equations`, `kink_samples`: the smoothed problem, system and steps of Newton's method
- `cholesky`: factorisation without the interpreter lock
- `l1_model`: the quadratic subproblem of the L1 penalty
"""
