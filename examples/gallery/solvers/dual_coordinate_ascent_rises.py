"""
Dual coordinate ascent
======================

The dual value increases with every pass over the data. The primal value does not decrease monotonically, but both
converge to the optimum between them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import StoppingRule
from maxmargin.solvers.linear.dual_coordinate_ascent import CoordinateAscentRun
from maxmargin.solvers.linear.linear_point import LinearPoint
from maxmargin.solvers.monitor import Monitor

PASSES = 40

X, y = load_breast_cancer(return_X_y=True)
signs = np.where(y == 1, 1.0, -1.0)
problem = pose(KernelMatrix(Linear(), Points(scale(X))), signs, np.full(len(y), 1.0), fit_intercept=False)

rule, rows = StoppingRule(violation=1e-12), problem.matrix.features()
run = CoordinateAscentRun(problem, rows, LinearPoint.start(problem, rows, None, rule), Monitor(rule))
certificates = [certify(problem, run.dual)]
for _ in range(PASSES):
    run.take_pass()
    run.evaluate()  # reactivates samples that were shrunk too early
    certificates.append(certify(problem, run.dual))
primal, dual = np.array([(certificate.primal, certificate.dual) for certificate in certificates]).T

figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
axes.fill_between(np.arange(PASSES + 1), dual, primal, color="0.92", label="duality gap, which contains the optimum")
axes.plot(primal, "--s", color="#D55E00", markersize=4, label="P(w), with w = Σ b x")
axes.plot(dual, "-o", color="#0072B2", markersize=4, linewidth=2, label="D(b), non-decreasing")
axes.set(xlabel="pass over the data", ylabel="objective", ylim=(0, 3.2 * dual[-1]))
axes.set_title("Dual coordinate ascent, breast cancer, C = 1, no intercept")
axes.legend()
print(f"smallest increase of the dual value {np.diff(dual).min():.1e}; primal increases: {(np.diff(primal) > 0).sum()}")
