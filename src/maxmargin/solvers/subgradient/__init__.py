"""solvers/subgradient."""
