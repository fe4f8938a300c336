"""
Class weights for imbalanced classes
====================================

Ten samples of one class and two hundred of the other: without weights the rare class is nearly ignored. ``"balanced"``
gives both classes the same total cost.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_blobs
from sklearn.metrics import balanced_accuracy_score

from maxmargin import SVC
from maxmargin.plotting import DecisionRegionsDisplay

X, y = make_blobs([200, 10], centers=[[0, 0], [1.8, 1.2]], cluster_std=1.0, random_state=2)
X_new, y_new = make_blobs([1000, 1000], centers=[[0, 0], [1.8, 1.2]], cluster_std=1.0, random_state=3)
figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for weights, ax in zip((None, "balanced"), axes, strict=True):
    model = SVC(kernel="linear", class_weight=weights).fit(X, y)
    DecisionRegionsDisplay.from_estimator(model, X, y, ax=ax)
    balanced = balanced_accuracy_score(y_new, model.predict(X_new))
    ax.set_title(f"class_weight={weights!r}: balanced accuracy {balanced:.0%}")
