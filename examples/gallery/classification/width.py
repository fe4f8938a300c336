"""
The width of the RBF kernel
===========================

γ is the inverse of a squared length. With a small γ the boundary is nearly a line, with a large one every sample has an
island of its own.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.plotting import DecisionRegionsDisplay

X, y = make_moons(150, noise=0.3, random_state=0)
X_new, y_new = make_moons(2000, noise=0.3, random_state=1)
figure, axes = plt.subplots(1, 3, figsize=(13, 5), layout="constrained")
for gamma, ax in zip((0.02, 1, 50), axes, strict=True):
    model = SVC(C=3, gamma=gamma).fit(X, y)
    DecisionRegionsDisplay.from_estimator(model, X, y, ax=ax)
    correct = f"{model.score(X_new, y_new):.0%} of new samples correct"
    ax.set_title(f"γ = {gamma}: {len(model.support_)} support vectors,\n{correct}")
