"""
Quantiles as prediction intervals
=================================

The noise grows with x. Two quantile regressions make an interval that grows with it; ``SVR(noise=True)`` has the same
width everywhere.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR, QuantileSVR

random = np.random.default_rng(0)
X = np.sort(random.uniform(0, 6, (500, 1)), axis=0)
y = np.sin(X[:, 0]) + random.normal(scale=0.05 + 0.12 * X[:, 0])
intervals = {
    "QuantileSVR, 5 % and 95 %": [QuantileSVR(quantile=q, C=1).fit(X, y).predict(X) for q in (0.05, 0.95)],
    "SVR(noise=True)": SVR(noise=True).fit(X, y).predict_interval(X, coverage=0.9).T,
}
figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), sharey=True, layout="constrained")
for (name, (low, high)), ax in zip(intervals.items(), axes, strict=True):
    inside = (low <= y) & (y <= high)
    ax.fill_between(X[:, 0], low, high, color="#0072B2", alpha=0.2)
    ax.scatter(X, y, s=9, c=np.where(inside, "0.5", "#D55E00"))
    thirds = [f"{part.mean():.0%}" for part in np.array_split(inside, 3)]
    ax.set_title(f"{name}: inside by thirds {', '.join(thirds)}")
