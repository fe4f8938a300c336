"""
Step sizes of the subgradient method
====================================

Large constant steps end near the optimum, small ones converge too slowly; steps that decay too fast do not arrive. The
objective is compared with the optimum of an exact solver.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import PairwiseSolver, StepSize, StoppingRule, SubgradientSolver
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds

STEPS = 1000

X, y = load_breast_cancer(return_X_y=True)
problem = pose(KernelMatrix(Linear(), Points(scale(X))), np.where(y == 1, 1.0, -1.0), np.full(len(y), 0.1))
least = certify(problem, PairwiseSolver(stopping=StoppingRule(violation=1e-8)).solve(problem).dual).dual

RULES = {  # name: rule, colour-blind safe colour, line style
    "constant, large: 0.02": (StepSize.constant(0.02), "#D55E00", "-"),
    "constant, small: 0.001": (StepSize.constant(0.001), "#E69F00", "--"),
    "η/(t + t0) = 0.1/(t + 5)": (StepSize.decaying(0.1, 5.0), "#56B4E9", "-."),
    "1/(λt), that is 1/t": ("inverse_time", "#009E73", ":"),
    "by trial: 1/(t + t0)": ("trial", "#0072B2", "-"),
}

figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
for name, (rule, colour, line) in RULES.items():
    bounds = PrimalBounds(problem, None)
    run = SubgradientSolver(step_size=rule).begin(bounds)
    best = []
    for _ in range(STEPS):
        run.advance()
        best.append(bounds.primal / least - 1.0)
    label = f"{name}, t0 = {run.step.delay:.0f}" if rule == "trial" else name
    axes.loglog(np.arange(1, STEPS + 1), best, line, color=colour, linewidth=2.2, label=label)
    print(f"{label:32} {best[-1]:.1e} above the optimum, certified gap {1 - bounds.dual_value / bounds.primal:.1e}")
axes.set(
    xlabel="step",
    ylabel="best P(w) so far / P* − 1",
    title="Step sizes of the subgradient method, breast cancer, C = 0.1",
)
axes.grid(alpha=0.3)
axes.legend()
