"""
Which features, which γ? Weights of many kernels
================================================

Two of eight features decide. Each feature has three Gaussian kernels of its own, and ``MKLSVC`` finds the weights of
all 24 together with the classifier. With norm 1 few kernels have a weight; with norm 2 all have some.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import MKLSVC, SVC
from maxmargin.plotting import KernelWeightsDisplay

random = np.random.default_rng(0)
X = random.normal(size=(700, 8))
y = np.sin(2 * X[:, 1]) + X[:, 4] ** 2 + 0.3 * random.normal(size=700) > 1
X_train, X_test, y_train, y_test = X[:300], X[300:], y[:300], y[300:]

kernels = [{"kernel": "rbf", "gamma": [0.1, 0.5, 2.0], "features": "each"}]
figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
for norm, ax in zip((1, 2), axes, strict=True):
    model = MKLSVC(kernels, C=1, norm=norm).fit(X_train, y_train)
    KernelWeightsDisplay.from_estimator(model, max_kernels=12, ax=ax)
    print(f"norm {norm}: {model.score(X_test, y_test):.1%} of new samples")
print(f"SVC:    {SVC(C=10).fit(X_train, y_train).score(X_test, y_test):.1%}")
