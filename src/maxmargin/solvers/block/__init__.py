"""solvers/block."""
