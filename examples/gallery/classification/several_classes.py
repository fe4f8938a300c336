"""
Several classes: four strategies
================================

One-vs-one trains a model for each pair of classes, one-vs-rest one for each class. Crammer–Singer and Weston–Watkins
solve a single problem for all classes. Accuracies are usually close; the regions between the classes differ.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from maxmargin import SVC
from maxmargin.plotting import DecisionRegionsDisplay

iris = load_iris(as_frame=True)
petals, names = iris.data.iloc[:, 2:], iris.target_names[iris.target]
figure, axes = plt.subplots(2, 2, figsize=(11, 9.5), layout="constrained")
for strategy, ax in zip(("ovo", "ovr", "crammer_singer", "weston_watkins"), axes.flat, strict=True):
    model = SVC(C=1, multi_class=strategy).fit(petals, names)
    DecisionRegionsDisplay.from_estimator(model, petals, names, ax=ax)
    ax.set_title(f"{strategy}: {model.score(petals, names):.1%} of the training samples")
