"""solvers/classical."""
