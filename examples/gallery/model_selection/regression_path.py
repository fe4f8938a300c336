"""
C and ε of a regression
=======================

``SVRCV`` chooses C, γ and ε together. The map shows C and γ at the best ε.
"""

import matplotlib.pyplot as plt

from maxmargin import SVRCV
from maxmargin.datasets import sinc
from maxmargin.plotting import ScoreGridDisplay

X, y = sinc(200, noise=0.15, seed=0)
model = SVRCV().fit(X, y)
print({name: round(float(value), 3) for name, value in model.best_params_.items()})

figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
ScoreGridDisplay.from_estimator(model, ax=left)
order = X[:, 0].argsort()
right.scatter(X, y, s=12, color="0.6")
right.plot(X[order], model.predict(X[order]), color="#D55E00", linewidth=2)
right.set(title=f"R² in cross-validation {model.best_score_:.2f}", xlabel="x", ylabel="y")
