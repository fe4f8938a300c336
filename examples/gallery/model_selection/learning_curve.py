"""
More samples or other parameters?
=================================

Accuracy against the number of training samples. Where the curve of new samples still rises, more data will help; where
both curves are flat and far apart, the model is too flexible.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import LearningCurveDisplay

from maxmargin import SVC

X, y = load_digits(return_X_y=True)
figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), sharey=True, layout="constrained")
for gamma, ax in zip((0.05, 1.0), axes, strict=True):
    LearningCurveDisplay.from_estimator(
        SVC(C=10, gamma=gamma), X / 16, y, cv=3, train_sizes=[0.05, 0.1, 0.2, 0.4, 0.7, 1.0], ax=ax, score_type="both"
    )
    ax.set_title(f"γ = {gamma}")
