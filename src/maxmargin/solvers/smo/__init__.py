"""solvers/smo."""
