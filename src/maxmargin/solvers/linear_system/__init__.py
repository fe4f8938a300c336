"""Least-squares problems as linear systems.

linear_system_solver  `LinearSystemSolver` (public): conjugate gradients on problems without bounds
preconditioners       Cholesky factors of the whole matrix or of a few columns
"""
