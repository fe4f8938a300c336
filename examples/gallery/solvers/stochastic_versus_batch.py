"""
Stochastic and batch steps, and coordinate ascent
=================================================

By passes over the data: one stochastic pass achieves more than a hundred passes of batch steps, the average of the
steps is better than the last one, and dual coordinate ascent is better than both after many passes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import StochasticSubgradientSolver, StoppingRule, SubgradientSolver
from maxmargin.solvers.linear.dual_coordinate_ascent import CoordinateAscentRun, DualCoordinateAscentSolver
from maxmargin.solvers.linear.linear_point import LinearPoint
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds

PASSES = 100

X, digit = load_digits(return_X_y=True)
X, signs = X / 16.0, np.where(digit % 2, 1.0, -1.0)
problem = pose(KernelMatrix(Linear(), Points(X)), signs, np.full(len(X), 0.1), fit_intercept=False)

ascent = DualCoordinateAscentSolver(stopping=StoppingRule(violation=1e-8, max_iterations=5000)).solve(problem)
least = certify(problem, ascent.dual).dual
reference = PrimalBounds(problem, None)


def error(weights: np.ndarray) -> float:
    return reference.evaluate(weights).primal / least - 1.0


last, average, passes = [], [], np.arange(1, PASSES + 1)
run = StochasticSubgradientSolver().begin(PrimalBounds(problem, None))
for _ in passes:
    run.advance()
    last.append(error(run.state.weights))
    average.append(error(run.state.average()[0]))

batch = []
run = SubgradientSolver().begin(PrimalBounds(problem, None))
for _ in range(PASSES // 2):  # a step takes two passes
    run.advance()
    batch.append(run.bounds.primal / least - 1.0)

coordinate, rule, rows = [], StoppingRule(violation=1e-12), problem.matrix.features()
run = CoordinateAscentRun(problem, rows, LinearPoint.start(problem, rows, None, rule), Monitor(rule))
for _ in passes:
    run.take_pass()
    run.evaluate()
    coordinate.append(error(run.weights))

figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
axes.loglog(
    2 * np.arange(1, PASSES // 2 + 1), batch, "--", color="#D55E00", linewidth=2, label="batch, best step so far"
)
axes.loglog(passes, last, ":", color="#56B4E9", linewidth=2, label="stochastic, last step")
axes.loglog(passes, average, "-", color="#0072B2", linewidth=2.5, label="stochastic, average")
axes.loglog(passes, coordinate, "-.", color="#009E73", linewidth=2, label="dual coordinate ascent")
axes.set(xlabel="passes over the data", ylabel="P(w) / P* − 1", title="Odd or even digit? C = 0.1, no intercept")
axes.grid(alpha=0.3)
axes.legend()
for name, errors in {"batch": batch, "last": last, "average": average, "dual coordinates": coordinate}.items():
    print(f"{name:17} after one pass or step {errors[0]:.1e}, at the end {errors[-1]:.1e}")
