"""
The cost C: from a smooth boundary to one that follows the data
===============================================================

C is the price of a sample inside the margin. With a small C the margin is wide and contains many samples; with a large
one the boundary follows single samples.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.plotting import DecisionRegionsDisplay

X, y = make_moons(150, noise=0.3, random_state=0)
X_new, y_new = make_moons(2000, noise=0.3, random_state=1)
figure, axes = plt.subplots(1, 3, figsize=(13, 5), layout="constrained")
for C, ax in zip((0.1, 3, 1000), axes, strict=True):
    model = SVC(C=C, gamma=1.0).fit(X, y)
    DecisionRegionsDisplay.from_estimator(model, X, y, ax=ax)
    correct = f"{model.score(X_new, y_new):.0%} of new samples correct"
    ax.set_title(f"C = {C}: {len(model.support_)} support vectors,\n{correct}")
