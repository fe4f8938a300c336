"""Subgradient methods on the primal problem with the linear kernel.

Public, through `maxmargin.solvers`:

- `subgradient`: `SubgradientSolver`, the batch method
- `stochastic_subgradient`: `StochasticSubgradientSolver` (Pegasos and variants), also for streams
- `step_sizes`: `StepSize`, step size rules

Internal: `primal_bounds` (bounds on the optimum and the main loop of both methods) and `stochastic_state` (the state of
the stochastic method, which a stream of batches updates).
"""
