"""
The region of most samples, for three widths
============================================

All three regions leave at most a tenth of the training samples outside. Which one is right the training samples do not
say: see the next example.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from maxmargin import OneClassSVM
from maxmargin.plotting import DecisionRegionsDisplay

X, _ = make_moons(300, noise=0.1, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
for gamma, ax in zip((0.1, 3, 100), axes, strict=True):
    model = OneClassSVM(nu=0.1, gamma=gamma).fit(X)
    DecisionRegionsDisplay.from_estimator(model, X, ax=ax)
    ax.set_title(f"γ = {gamma}: {(model.predict(X) < 0).mean():.0%} outside, {len(model.support_)} support vectors")
