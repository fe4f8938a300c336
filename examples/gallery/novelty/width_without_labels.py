"""
The width, chosen without labels
================================

``OneClassSVMCV`` takes the region that contains the held-out samples and little else. The map shows its score over ν
and γ.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import OneClassSVMCV
from maxmargin.plotting import DecisionRegionsDisplay, ScoreGridDisplay

moons, _ = make_moons(300, noise=0.1, random_state=0)
X = np.vstack([moons, np.random.default_rng(0).uniform(-2, 3, (15, 2))])
model = OneClassSVMCV().fit(X)
print({name: round(float(value), 3) for name, value in model.best_params_.items()})

figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), layout="constrained")
ScoreGridDisplay.from_estimator(model, ax=left)
DecisionRegionsDisplay.from_estimator(model, X, ax=right)
