"""Formulations: each module poses one kind of SVM as a `DualProblem` and interprets its solution.

- classification: `c_classification`, `squared_hinge`, `least_squares_classification`, `nu_classification`
- all-in-one multi-class: `weston_watkins`, `crammer_singer`, which share `all_in_one`
- regression: `epsilon_regression`, `squared_epsilon_regression`, `nu_regression`, `quantile_regression`,
  `least_squares_regression`
- one-class: `one_class`, `data_description`; ranking: `pairwise_ranking`, and `order_ranking` where its
  pairs are not listed
- `formulation`: the protocol and shared functions

Every module provides `pose(...)`, which returns the dual problem, `expand(...)`, which returns the coefficients of the
decision function, and `read(...)`, which returns the geometry of the solution. These three are public.
"""
