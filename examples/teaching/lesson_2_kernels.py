r"""
2. Kernels
==========

A linear machine in a space of features that is never computed.
"""

# %%
# Other features, same machine
# ----------------------------
#
# No line separates a disc from the ring around it. With the squares of the coordinates as features one does: a linear
# function of :math:`x_1^2` and :math:`x_2^2` is an ellipse in the plane.
import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC

random = np.random.default_rng(0)
radius = np.concatenate([random.uniform(0, 1, 60), random.uniform(1.3, 2, 60)])
angle = random.uniform(0, 2 * np.pi, 120)
X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
y = np.repeat([-1, 1], 60)
colour = np.where(y > 0, "#D55E00", "#0072B2")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
left.scatter(*X.T, s=16, c=colour)
left.set(xlabel="$x_1$", ylabel="$x_2$")
left.set_aspect("equal")
right.scatter(*(X**2).T, s=16, c=colour)
right.set(xlabel="$x_1^2$", ylabel="$x_2^2$")
print(f"linear in x: {SVC(kernel='linear', C=10).fit(X, y).score(X, y):.0%} correct")
print(f"linear in the squares: {SVC(kernel='linear', C=10).fit(X**2, y).score(X**2, y):.0%} correct")

# %%
# The kernel trick
# ----------------
#
# The dual problem of :doc:`lesson 1 <lesson_1_dual>` contains the samples in inner products only. If :math:`\Phi(x)`
# are the features, all that is needed is the *kernel* :math:`k(x, z) = \Phi(x) \cdot \Phi(z)`. For all products of two
# coordinates,
#
# .. math:: \Phi(x) = \left( x_1^2, \; \sqrt{2} \, x_1 x_2, \; x_2^2 \right) , \qquad
#           \Phi(x) \cdot \Phi(z) = (x \cdot z)^2 ,
#
# the kernel costs one inner product and one multiplication. With 100 coordinates and degree 5, there are 92 million
# features, and the kernel still costs one inner product.


def features(X):
    """Return all products of two coordinates."""
    return np.column_stack([X[:, 0] ** 2, np.sqrt(2) * X[:, 0] * X[:, 1], X[:, 1] ** 2])


print("largest difference:", np.abs(features(X) @ features(X).T - (X @ X.T) ** 2).max().round(12))
with_features = SVC(kernel="linear", C=10).fit(features(X), y)
with_kernel = SVC(kernel="poly", degree=2, gamma=1, coef0=0, C=10).fit(X, y)
difference = np.abs(with_features.decision_function(features(X)) - with_kernel.decision_function(X)).max()
print(f"difference of the two machines: {difference:.0e}")

# %%
# A sum of bumps
# --------------
#
# The solution :math:`w = \sum_i \beta_i \Phi(x_i)` is not computed either. The decision function is a sum over the
# support vectors,
#
# .. math:: f(x) = \sum_i \beta_i \, k(x_i, x) + b .
#
# For the Gaussian kernel :math:`k(x, z) = \exp(-\gamma \|x - z\|^2)` it is a sum of bumps, one at each support vector,
# upwards for one class and downwards for the other. Its feature space has infinitely many dimensions.
line = np.linspace(-3, 3, 400)[:, None]
points = np.array([-2, -1.2, -0.3, 0.4, 1.1, 2.0])[:, None]
labels = np.array([-1, 1, 1, -1, -1, 1])
model = SVC(gamma=2.0, C=3).fit(points, labels)
bumps = model.dual_coef_[0] * np.exp(-2.0 * (line - model.support_vectors_.T) ** 2)

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(line, bumps, color="0.7", linewidth=1)
ax.plot(line, bumps.sum(axis=1) + model.intercept_, color="#26292e", linewidth=2.2, label="$f$, the sum")
ax.axhline(0, color="0.5", linewidth=0.8)
ax.scatter(points, np.zeros(6), s=50, c=np.where(labels > 0, "#D55E00", "#0072B2"), zorder=3)
ax.set(xlabel="x", ylabel="f(x)")
ax.legend()

# %%
# What is a kernel?
# -----------------
#
# A function is an inner product of some features exactly if all its matrices :math:`K_{ij} = k(x_i, x_j)` are *positive
# semi-definite*: no eigenvalue is negative. Sums and products of kernels are kernels. The hyperbolic tangent, once
# popular, is not one:
samples = random.normal(size=(60, 2))
squares = ((samples[:, None] - samples) ** 2).sum(axis=2)
matrices = {
    "Gaussian": np.exp(-squares),
    "linear": samples @ samples.T,
    "Gaussian × linear": np.exp(-squares) * (samples @ samples.T),
    "tanh(x·z − 1)": np.tanh(samples @ samples.T - 1),
}
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
for (name, K), marker in zip(matrices.items(), "osd^", strict=True):
    eigenvalues = np.linalg.eigvalsh(K)[::-1]
    ax.plot(eigenvalues, f"-{marker}", markersize=4, label=f"{name}: smallest {eigenvalues[-1]:.1g}")
ax.axhline(0, color="0.5", linewidth=0.8)
ax.set(xlabel="number", ylabel="eigenvalue", yscale="symlog")
ax.legend()

# %%
# A kernel need not be of vectors
# -------------------------------
#
# Any similarity that is an inner product will do. Sets, compared by the number of common elements:
recipes = [{"flour", "sugar", "egg"}, {"flour", "sugar", "butter"}, {"sugar", "egg", "milk"}]
recipes += [{"tomato", "garlic", "oil"}, {"tomato", "basil", "oil"}, {"garlic", "oil", "pepper"}]
kind = ["cake"] * 3 + ["sauce"] * 3


def common(A, B):
    """Count common elements, one row per set of A, one column per set of B."""
    return np.array([[float(len(a & b)) for b in B] for a in A])


cook = SVC(kernel=common, C=10).fit(recipes, kind)
print(cook.predict([{"flour", "milk", "egg"}, {"oil", "basil", "pepper"}]))

# %%
# Exercises
# ---------
#
# 1. Which features belong to the kernel :math:`(x \cdot z + 1)^2`?
# 2. Write the number of common elements of two sets as an inner product.
# 3. Let γ of the Gaussian kernel grow in the figure of bumps. Where does f go between the samples?
# 4. Show that a kernel times a positive number, and the sum of two kernels, are kernels.
