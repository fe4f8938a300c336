"""solvers/qp."""
