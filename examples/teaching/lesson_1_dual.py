r"""
1. The dual problem
===================

From the widest street between two classes to a problem with one unknown per sample, and why the two have the same
optimum.
"""

# %%
# The widest street
# -----------------
#
# A hyperplane :math:`w \cdot x + b = 0` separates two classes if :math:`y_i (w \cdot x_i + b) > 0` for all samples,
# with labels :math:`y_i = \pm 1`. Multiplying :math:`w` and :math:`b` by a number does not change the hyperplane, so we
# may ask that the closest samples have the value 1. Their distance from the hyperplane is then :math:`1 / \|w\|`, and
# the widest street is the solution of
#
# .. math:: \min_{w, b} \; \frac{1}{2} \|w\|^2 \quad \text{subject to} \quad y_i (w \cdot x_i + b) \geq 1 .
#
# Eight samples, and this problem as it stands, given to a general solver:
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

X = np.array([[0, 0], [1, 0.5], [0.5, 1.5], [-1, 1], [3, 2.5], [2.5, 4], [4, 2], [4, 4]], dtype=float)
y = np.array([-1, -1, -1, -1, 1, 1, 1, 1], dtype=float)

primal = minimize(
    lambda v: 0.5 * v[:2] @ v[:2],
    x0=[1, 1, 0],
    constraints={"type": "ineq", "fun": lambda v: y * (X @ v[:2] + v[2]) - 1},
)
w, b = primal.x[:2], primal.x[2]
print(f"w = {w.round(3)}, b = {b:.3f}, objective {primal.fun:.4f}, margin {1 / np.linalg.norm(w):.3f}")

# %%
# A price for each constraint
# ---------------------------
#
# Replace each constraint by a price :math:`\alpha_i \geq 0` for violating it. For any prices, the Lagrangian
#
# .. math:: L(w, b, \alpha) = \frac{1}{2} \|w\|^2 + \sum_i \alpha_i \left( 1 - y_i (w \cdot x_i + b) \right)
#
# is at most :math:`\frac{1}{2} \|w\|^2` where the constraints hold. Its minimum over :math:`w` and :math:`b` is thus a
# lower bound on the optimum: *weak duality*. The minimum is where the derivatives vanish,
#
# .. math:: w = \sum_i \alpha_i y_i x_i , \qquad \sum_i \alpha_i y_i = 0 ,
#
# and its value is a function of the prices alone,
#
# .. math:: D(\alpha) = \sum_i \alpha_i - \frac{1}{2} \sum_{i,j} \alpha_i \alpha_j y_i y_j \, x_i \cdot x_j .
#
# The *dual problem* asks for the best lower bound: maximise :math:`D` subject to :math:`\alpha \geq 0` and
# :math:`\sum_i \alpha_i y_i = 0`.
K = X @ X.T
Q = y[:, None] * K * y


def dual_value(alpha):
    """Return the dual value of prices."""
    return alpha.sum() - 0.5 * alpha @ Q @ alpha


dual = minimize(
    lambda alpha: -dual_value(alpha),
    x0=np.zeros(8),
    bounds=[(0, None)] * 8,
    constraints={"type": "eq", "fun": lambda alpha: alpha @ y},
)
alpha = dual.x
print("prices:", alpha.round(3))
print(f"best lower bound {dual_value(alpha):.4f}, primal objective {primal.fun:.4f}")

# %%
# Every feasible point is a bound
# -------------------------------
#
# Random prices that satisfy the constraints, and random hyperplanes that separate the classes: all dual values are
# below all primal values. The optimum is where they meet.
random = np.random.default_rng(0)
lower, upper = [], []
for _ in range(300):
    prices = alpha * random.uniform(0, 2, 8) + random.exponential(0.03, 8)
    prices[y > 0] *= prices[y < 0].sum() / prices[y > 0].sum()
    lower.append(dual_value(prices))
    direction, shift = w + random.normal(scale=0.15, size=2), b + random.normal(scale=0.3)
    smallest = (y * (X @ direction + shift)).min()
    if smallest > 0:
        upper.append(0.5 * direction @ direction / smallest**2)

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(lower, random.uniform(size=len(lower)), ".", color="#0072B2", label="dual values")
ax.plot(upper, random.uniform(size=len(upper)), ".", color="#D55E00", label="primal values")
ax.axvline(primal.fun, color="#26292e", label="optimum")
ax.set(xlim=(-0.4, 1.6), yticks=[], xlabel="objective")
ax.legend(loc="upper right")

# %%
# What the prices mean
# --------------------
#
# At the optimum a price is positive only where its constraint holds with equality: *complementary slackness*. Such
# samples are the *support vectors*; all others could be removed without changing the solution. The size of a sample in
# the figure is its price.
for price, margin in zip(alpha.round(3), (y * (X @ w + b)).round(3), strict=True):
    print(f"price {price:5.3f}   y f(x) = {margin:.3f}   {'support vector' if price else ''}")

figure, ax = plt.subplots(figsize=(5.4, 4.8), layout="constrained")
ends = np.array([-1.5, 4.5])
for level, style in ((0, "-"), (1, "--"), (-1, "--")):
    ax.plot(ends, (level - b - w[0] * ends) / w[1], style, color="#26292e", linewidth=1.2)
ax.scatter(*X.T, s=30 + 900 * alpha, c=np.where(y > 0, "#D55E00", "#0072B2"))
ax.set(xlim=(-1.5, 4.5), ylim=(-0.6, 4.6), xlabel="$x_1$", ylabel="$x_2$")
ax.set_aspect("equal")

# %%
# Overlapping classes
# -------------------
#
# If no hyperplane separates the classes, samples may violate their constraint by a slack :math:`\xi_i`, at a cost
# :math:`C` each. Then a price above :math:`C` makes no sense, since the slack is cheaper: the only change to the dual
# problem is the *box* :math:`0 \leq \alpha_i \leq C`.
#
# .. math:: \min_{w, b, \xi} \; \frac{1}{2} \|w\|^2 + C \sum_i \xi_i
#           \quad \text{subject to} \quad y_i (w \cdot x_i + b) \geq 1 - \xi_i , \; \xi_i \geq 0 .
#
# The library solves this dual problem, in the variables :math:`\beta_i = y_i \alpha_i`. Its certificate has both
# values; their difference is how far the solution is from the optimum at most.
from maxmargin import SVC

hard = SVC(kernel="linear", C=np.inf).fit(X, y)
print("hard margin:", hard.certificate_)
print("the same prices:", np.abs(hard.dual_coef_[0]).round(3), "of samples", hard.support_)

wrong = y.copy()
wrong[1] = 1.0  # a sample with the wrong label
for C in (0.1, 1, 10):
    soft = SVC(kernel="linear", C=C).fit(X, wrong)
    at_bound = np.isclose(np.abs(soft.dual_coef_[0]), C).sum()
    print(f"C = {C:4}: {len(soft.support_)} support vectors, {at_bound} of them at the price C")

# %%
# Exercises
# ---------
#
# 1. Remove a sample with price 0 and solve again. Then remove a support vector. What changes?
# 2. Derive the dual problem without the intercept :math:`b`. Which constraint disappears?
# 3. Show that the sum of all prices at the optimum is :math:`\|w\|^2`, and check it with the numbers above.
# 4. With the squared loss :math:`C \sum_i \xi_i^2` the box disappears. What appears instead?
