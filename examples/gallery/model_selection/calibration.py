"""
Probabilities and how often they are right
==========================================

Of the samples with a predicted probability of 70 %, about 70 % should be of the class. The sigmoid of
``probability=True`` is fitted to cross-validated decision values.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.plotting import CalibrationDisplay

X, y = make_moons(1000, noise=0.35, random_state=0)
X_new, y_new = make_moons(4000, noise=0.35, random_state=1)
model = SVC(gamma=1.0, probability=True).fit(X, y)
_, ax = plt.subplots(figsize=(6.4, 5), layout="constrained")
CalibrationDisplay.from_estimator(model, X_new, y_new, n_bins=10, ax=ax)
