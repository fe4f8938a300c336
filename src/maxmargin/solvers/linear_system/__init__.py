"""solvers/linear_system."""
