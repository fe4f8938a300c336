"""
A fit that is stopped has a certificate as well
===============================================

Limits on the iterations of the solver: the shorter the fit, the wider the interval that contains the optimum. It is
never wrong.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC
from maxmargin.datasets import chessboard

X, y = chessboard(1000, noise=0.05, seed=0)
X_new, y_new = chessboard(2000, seed=1)
limits = [200, 300, 400, 600, 800, 1200, 1600]
models = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for limit in limits:
        models.append(SVC(C=10, gamma=1.0, solver="pairwise", max_iter=limit).fit(X, y))
primal, dual = np.array([(model.certificate_.primal, model.certificate_.dual) for model in models]).T

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
left.fill_between(limits, dual, primal, color="0.9", label="the optimum is in here")
left.plot(limits, primal, "-o", color="#D55E00", label="primal value")
left.plot(limits, dual, "-s", color="#0072B2", label="dual value")
left.set(xscale="log", yscale="log", xlabel="limit on the iterations", ylabel="objective")
left.legend()
right.plot(limits, [model.score(X_new, y_new) for model in models], "-o", color="#009E73")
right.set(xscale="log", xlabel="limit on the iterations", ylabel="accuracy on new samples")
