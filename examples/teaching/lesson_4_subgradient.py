r"""
4. Subgradient steps and coordinate ascent
==========================================

Two ways to train linear machines on many samples: steps on the primal objective with one sample each, and exact steps
on the dual with one variable each.
"""

# %%
# A function with kinks
# ---------------------
#
# Without constraints, the soft-margin problem is the minimisation of
#
# .. math:: P(w) = \frac{\lambda}{2} \|w\|^2 + \frac{1}{n} \sum_i \max(0, 1 - y_i \, w \cdot x_i) ,
#           \qquad \lambda = \frac{1}{n C} .
#
# The hinge has no derivative at 1. A *subgradient* is the slope of any line through the point that lies below the
# function: at the kink all slopes between −1 and 0.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin import SVC

margin = np.linspace(-1, 3, 200)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for slope in (-0.8, -0.5, -0.2):
    ax.plot(margin, slope * (margin - 1), "--", color="#9aa0a8", linewidth=1)
ax.plot(margin, np.maximum(0, 1 - margin), color="#0072B2", linewidth=2.5, label="hinge")
ax.plot(1, 0, "o", color="#D55E00")
ax.set(xlabel="$y \\, w \\cdot x$", ylabel="loss", ylim=(-0.8, 2))
ax.legend()

# %%
# The data: 569 samples with 30 features and a constant one, which takes the place of the intercept.
X, y = load_breast_cancer(return_X_y=True)
X, y = np.column_stack([scale(X), np.ones(len(X))]), np.where(y == 1, 1.0, -1.0)
n, C = len(y), 0.1
regularisation = 1 / (n * C)


def primal(w):
    """Return P(w)."""
    return 0.5 * regularisation * w @ w + np.maximum(0, 1 - y * (X @ w)).mean()


exact = SVC(kernel="linear", C=C, fit_intercept=False, tol=1e-8).fit(X, y)
optimum = exact.certificate_.primal / (n * C)
print(f"optimum {optimum:.6f}, known within a relative gap of {exact.certificate_.relative_gap:.0e}")

# %%
# Stochastic subgradient steps
# ----------------------------
#
# Take one sample at a time, as if it were all. The expected direction is a subgradient of P; with step sizes :math:`1 /
# (\lambda t)` the method converges, and the average of the steps converges more smoothly than the last one.


def stochastic(passes, random):
    """Return the last and the average weights after each pass."""
    w, average, last_of_pass, average_of_pass, t = np.zeros(31), np.zeros(31), [], [], 0
    for _ in range(passes):
        for i in random.permutation(n):
            t += 1
            inside = y[i] * (X[i] @ w) < 1
            w *= 1 - 1 / t
            if inside:
                w += y[i] * X[i] / (regularisation * t)
            average += (w - average) * 2 / (t + 1)  # later steps have larger weights
        last_of_pass.append(w.copy())
        average_of_pass.append(average.copy())
    return last_of_pass, average_of_pass


# %%
# Dual coordinate ascent
# ----------------------
#
# Without an intercept the dual problem has no sum constraint, so that a single variable can move. Its best value has a
# closed form, and with :math:`w = \sum_i \alpha_i y_i x_i` at hand a step costs one inner product, as above. There is
# no step size to choose, and the dual value never decreases.
#
# .. math:: \alpha_i \leftarrow
#           \min \left( C, \max \left( 0, \; \alpha_i + \frac{1 - y_i \, w \cdot x_i}{\|x_i\|^2} \right) \right)


def coordinate_ascent(passes, random):
    """Return the weights and the dual value after each pass."""
    alpha, w, squares, weights, dual = np.zeros(n), np.zeros(31), (X**2).sum(axis=1), [], []
    for _ in range(passes):
        for i in random.permutation(n):
            moved = np.clip(alpha[i] + (1 - y[i] * (X[i] @ w)) / squares[i], 0, C)
            w += (moved - alpha[i]) * y[i] * X[i]
            alpha[i] = moved
        weights.append(w.copy())
        dual.append((alpha.sum() - 0.5 * w @ w) / (n * C))
    return weights, np.array(dual)


# %%
# Compared
# --------
passes = 60
last, average = stochastic(passes, np.random.default_rng(0))
ascent, dual = coordinate_ascent(passes, np.random.default_rng(0))

figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
for name, weights, colour, style in (
    ("stochastic, last step", last, "#56B4E9", ":"),
    ("stochastic, average", average, "#0072B2", "-"),
    ("dual coordinate ascent", ascent, "#009E73", "-."),
):
    errors = [primal(w) / optimum - 1 for w in weights]
    ax.loglog(np.arange(1, passes + 1), errors, style, color=colour, linewidth=2, label=name)
    print(f"{name:24} {errors[0]:.1e} above the optimum after one pass, {errors[-1]:.1e} after {passes}")
ax.set(xlabel="passes over the data", ylabel="P(w) / optimum − 1")
ax.legend()

# %%
# Coordinate ascent has a second advantage: it knows a lower bound. The gap between both values is a proof; the
# stochastic method has none, and no natural place to stop.
gap = np.array([primal(w) for w in ascent]) - dual
print("the dual value never decreases:", bool(np.all(np.diff(dual) >= -1e-12)))
print(f"after 10 passes, proved: at most {gap[9] / dual[9]:.1e} above the optimum")
print(f"after 10 passes, true:   {primal(ascent[9]) / optimum - 1:.1e} above the optimum")

# %%
# Exercises
# ---------
#
# 1. Show that the mean of the stochastic directions over all samples is a subgradient of P.
# 2. Derive the coordinate step. Which two cases does the clipping cover?
# 3. Use a constant step size of 0.01, then 0.0001. Where do the curves end?
# 4. Do the samples in the same order in each pass. Which method suffers?
# 5. The squared hinge has a derivative. What changes in both methods?
