"""solvers/linear."""
