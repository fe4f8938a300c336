"""
The row cache
=============

A solver asks for the same rows of the kernel matrix again and again. With a cache for a tenth of the rows most requests
are hits; the solution is the same.
"""

import numpy as np

from maxmargin.datasets import chessboard
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.plotting import CacheDisplay

X, y = chessboard(300)
problem = pose(KernelMatrix(Gaussian(1.0), Points(X)), 2.0 * y - 1.0, costs=np.full(300, 10.0))
CacheDisplay.from_problem(problem, fractions=[0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
