"""
The subgradient method is not a descent method
==============================================

It converges although steps may increase the objective: on a function with kinks a subgradient need not point downhill.
The path crosses a valley, and almost every second step is a step up.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import PairwiseSolver, StepSize, StoppingRule, SubgradientSolver
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds

BLUE, ORANGE, BLACK = "#0072B2", "#D55E00", "#222222"

random = np.random.default_rng(1)
signs = np.where(np.arange(6) % 2, 1.0, -1.0)
X = random.normal(size=(6, 2)) * [1.0, 0.3] + 0.7 * signs[:, None] * [1.0, 0.3]
problem = pose(KernelMatrix(Linear(), Points(X)), signs, np.ones(6), fit_intercept=False)

best = PairwiseSolver(stopping=StoppingRule(violation=1e-9)).solve(problem).dual
least, optimum = certify(problem, best).dual, X.T @ best

run = SubgradientSolver(step_size=StepSize.decaying(1.0, 2.0)).begin(PrimalBounds(problem, None))
path, values = [run.weights[:2]], [run.primal]
for _ in range(60):
    run.advance()
    path.append(run.weights[:2])
    values.append(run.primal)
path, errors = np.array(path), np.array(values) / least - 1.0

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
(low_x, low_y), (high_x, high_y) = [0.72, 0.2], [1.32, 0.74]  # the valley; the first step comes from (0, 0)
grid = np.stack(np.meshgrid(np.linspace(low_x, high_x, 200), np.linspace(low_y, high_y, 200)), axis=-1)
loss = np.maximum(0.0, 1.0 - grid @ (X * signs[:, None]).T).sum(axis=-1)
primal = 0.5 * (grid**2).sum(axis=-1) + loss
left.contour(grid[..., 0], grid[..., 1], primal, levels=least * (1 + np.geomspace(0.0015, 1, 18)), colors="0.75")
left.plot(*path.T, "-o", color=BLUE, markersize=3.5, linewidth=1, label="$w_t$")
left.plot(*optimum, "*", color=ORANGE, markersize=16, label="optimum")
left.set(
    xlabel="$w_1$", ylabel="$w_2$", xlim=(low_x, high_x), ylim=(low_y, high_y), title="The path crosses the valley"
)
left.legend(loc="upper left")

right.semilogy(errors, "-o", color=BLUE, markersize=3.5, linewidth=1, label="this step")
right.semilogy(np.minimum.accumulate(errors), color=ORANGE, linewidth=2.5, label="best so far")
rising = np.flatnonzero(np.diff(errors) > 0) + 1
right.semilogy(rising, errors[rising], "^", color=BLACK, markersize=6, label=f"increase ({len(rising)} of 60)")
right.set(xlabel="step", ylabel="P(w) / P* − 1", title="The objective is not monotone")
right.legend()
print(f"{len(rising)} of 60 steps raised the objective; the best is {errors.min():.1e} above the optimum")
