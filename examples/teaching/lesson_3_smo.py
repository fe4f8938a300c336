r"""
3. Sequential minimal optimisation, step by step
================================================

The solver of most support vector machines in thirty lines: two variables at a time, each pair in closed form.
"""

# %%
# The problem
# -----------
#
# In the signed variables :math:`\beta_i = y_i \alpha_i` of the dual problem (:doc:`lesson 1 <lesson_1_dual>`):
#
# .. math:: \max_\beta \; D(\beta) = \sum_i y_i \beta_i - \frac{1}{2} \beta \cdot K \beta \quad \text{subject to} \quad
#           \sum_i \beta_i = 0 , \; A_i \leq \beta_i \leq B_i ,
#
# with the box :math:`[0, C]` for positive samples and :math:`[-C, 0]` for negative ones. One variable alone cannot
# move, since the sum is fixed. Two can: one up, one down.
import matplotlib.pyplot as plt
import numpy as np

from maxmargin.datasets import bananas

X, y = bananas(80, seed=0)
y = np.where(y == 1, 1.0, -1.0)
C, gamma = 10.0, 1.0
K = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
lower, upper = np.minimum(0, C * y), np.maximum(0, C * y)

# %%
# One step
# --------
#
# Along :math:`\beta_i + t, \; \beta_j - t` the dual value is a parabola in :math:`t`. With the gradient :math:`g = y -
# K \beta` its slope at 0 is :math:`g_i - g_j`, and its curvature :math:`K_{ii} + K_{jj} - 2 K_{ij}`. The best step is
#
# .. math:: t = \min \left( \frac{g_i - g_j}{K_{ii} + K_{jj} - 2 K_{ij}} , \; B_i - \beta_i , \; \beta_j - A_j \right) .
#
# A step needs :math:`i` with room above, :math:`j` with room below, and :math:`g_i > g_j`. If there is no such pair, no
# step can increase :math:`D`, and that is the optimum. The largest difference
#
# .. math:: \max_{i: \beta_i < B_i} g_i - \min_{j: \beta_j > A_j} g_j
#
# is the *violation*. Stop when it is below a tolerance.


def first_order(g, can_increase, can_decrease):
    """Select the most violating pair."""
    i = np.where(can_increase, g, -np.inf).argmax()
    return i, np.where(can_decrease, g, np.inf).argmin()


def second_order(g, can_increase, can_decrease):
    """Select i as above, and the j with the largest gain (without the box)."""
    i = np.where(can_increase, g, -np.inf).argmax()
    difference = np.maximum(g[i] - g, 0)
    curvature = np.maximum(K[i, i] + np.diag(K) - 2 * K[i], 1e-12)
    return i, np.where(can_decrease, difference**2 / curvature, -1).argmax()


def solve(select, tolerance=1e-3):
    """Solve the problem by pair steps; return the solution, and the violation and dual value after each step."""
    beta, g, path = np.zeros(len(y)), y.copy(), []
    while True:
        can_increase, can_decrease = beta < upper, beta > lower
        violation = g[can_increase].max() - g[can_decrease].min()
        path.append((violation, y @ beta - 0.5 * beta @ K @ beta))
        if violation < tolerance:
            return beta, g, np.array(path)
        i, j = select(g, can_increase, can_decrease)
        step = (g[i] - g[j]) / max(K[i, i] + K[j, j] - 2 * K[i, j], 1e-12)
        step = min(step, upper[i] - beta[i], beta[j] - lower[j])
        beta[i], beta[j] = beta[i] + step, beta[j] - step
        g -= step * (K[i] - K[j])


first, second = solve(first_order), solve(second_order)
for name, (beta, _, path) in {"first order": first, "second order": second}.items():
    support = np.count_nonzero(beta)
    print(f"{name:13} {len(path) - 1:4} steps, dual value {path[-1, 1]:.4f}, {support} support vectors")

# %%
# Which pair?
# -----------
#
# The most violating pair is the steepest direction, but a steep direction with a large curvature gains little. The
# second rule compares the gain :math:`(g_i - g_j)^2 / (2 \cdot \text{curvature})` for all :math:`j`, at the price of
# one more row, which is needed anyway. Inside the box each of its steps gains at least as much; usually there are far
# fewer.
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
for name, (_, _, path), colour in (("first order", first, "#D55E00"), ("second order", second, "#0072B2")):
    left.semilogy(path[:, 0], color=colour, label=name)
    right.semilogy(np.maximum(second[2][-1, 1] - path[:-1, 1], 1e-6), color=colour, label=name)
left.axhline(1e-3, color="0.6", linestyle="--")
left.set(xlabel="step", ylabel="violation")
right.set(xlabel="step", ylabel="distance from the optimal dual value")
right.legend()

# %%
# The violation jumps up and down; the dual value never decreases.
print("the dual value never decreases:", bool(np.all(np.diff(second[2][:, 1]) >= -1e-12)))

# %%
# The intercept, and the gap
# --------------------------
#
# For a variable strictly inside its box the optimality conditions say :math:`g_i = b`. With the intercept, the slack of
# each sample is :math:`\xi_i = \max(0, 1 - y_i f(x_i))`, and the primal value bounds the optimum from above.
beta, g, path = second
free = (beta > lower) & (beta < upper)
b = g[free].mean()
f = K @ beta + b
primal = 0.5 * beta @ K @ beta + C * np.maximum(0, 1 - y * f).sum()
print(f"b = {b:.4f}, primal {primal:.4f}, dual {path[-1, 1]:.4f}, gap {primal - path[-1, 1]:.1e}")

# %%
# The library does the same
# -------------------------
#
# ``maxmargin.trace`` records each step of its pairwise solver: as many as above, with the same solution; on large data
# the library adds a cache for rows of K, leaves out variables that stay at a bound (*shrinking*), and ends with the
# exact equations of the free variables.
import maxmargin
from maxmargin.plotting import DecisionRegionsDisplay

recorded = maxmargin.trace(X, y, C=C, gamma=gamma)
model = maxmargin.SVC(C=C, gamma=gamma).fit(X, y)
print(f"{len(recorded) - 1} steps; the first pair {recorded.working_sets[1]}")
print(model.certificate_)
print(f"largest difference of decision values: {np.abs(model.decision_function(X) - f).max():.4f}")
DecisionRegionsDisplay.from_estimator(model, X, y)

# %%
# Exercises
# ---------
#
# 1. Derive the slope and the curvature of :math:`D` along a pair.
# 2. Count the values of K that a step reads. What does a solver store between steps?
# 3. Duplicate a sample with the opposite label. What is the curvature of that pair, and why is the step still defined?
# 4. Replace the rule by a random violating pair. How many steps does it take?
# 5. Without an intercept the sum is not fixed. What is the step of a single variable?
