"""Solve one dual problem with three selection rules, without an estimator, and certify the solutions."""

import numpy as np

from maxmargin import certify
from maxmargin.datasets import chessboard
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.solvers import PairwiseSolver, StoppingRule

X, y = chessboard(1000, noise=0.05)
signs = np.where(y == 1, 1.0, -1.0)
problem = pose(KernelMatrix(Gaussian(1.0), Points(X)), signs, costs=np.full(len(X), 100.0))

for rule in ("most_violating_pair", "second_order", "maximum_gain"):
    solver = PairwiseSolver(selection=rule, stopping=StoppingRule(violation=1e-4), finish_below=0)
    solution = solver.solve(problem)
    print(f"{rule:20} {solution.counters.iterations:7,} steps  {certify(problem, solution.dual)}")
