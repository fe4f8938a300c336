"""
Coefficients against C
======================

Linear models along C, each from the solution of the one before. With little cost of errors all coefficients are small;
the largest ones are labelled.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin import LinearSVC, linear_path
from maxmargin.plotting import CoefficientPathDisplay

cancer = load_breast_cancer()
X, y = scale(cancer.data), cancer.target
figure, axes = plt.subplots(1, 2, figsize=(14, 5), layout="constrained")
for penalty, ax in zip(("l2", "l1"), axes, strict=True):
    path = linear_path(X, y, Cs=np.logspace(-4, 0, 25), estimator=LinearSVC(penalty=penalty))
    CoefficientPathDisplay.from_path(path, feature_names=cancer.feature_names, ax=ax)
    ax.set_title(f"penalty {penalty}")
