"""
Solvers side by side
====================

The same problem, the same tolerance, one certificate for all: what the solvers need, and that they end at the same
optimum.
"""

import matplotlib.pyplot as plt

from maxmargin import compare
from maxmargin.datasets import chessboard
from maxmargin.plotting import ConvergenceDisplay

X, y = chessboard(400, noise=0.1, seed=0)
solvers = ["pairwise", "block", "gradient_projection", "decomposition", "platt"]
comparison = compare((X, y), solvers, gamma=1.0, C=10.0)
for run in comparison.runs:
    print(f"{run.label:20} {run.counters.iterations:7,} iterations, dual value {run.certificate.dual:.4f}")

_, ax = plt.subplots(figsize=(9, 5.4), layout="constrained")
ConvergenceDisplay.from_trace({run.label: run.trace for run in comparison.runs}, ax=ax)
ax.set_xscale("log")
