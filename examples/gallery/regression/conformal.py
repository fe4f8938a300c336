"""
Conformal intervals with MAPIE
==============================

An interval of quantile regression covers the fraction of new samples that it should only if the quantiles are right.
`MAPIE <https://mapie.readthedocs.io>`_ widens or narrows it by what samples that were put aside show: then it covers at
least this fraction on average, whatever the machine and the distribution (split conformal prediction). The machine here
has too large a cost, so that its quantiles follow the training samples, and the interval is too narrow.
"""

import matplotlib.pyplot as plt
import numpy as np
from mapie.regression import ConformalizedQuantileRegressor

from maxmargin import QuantileSVR

random = np.random.default_rng(0)
X = random.uniform(0, 6, (1500, 1))
y = np.sin(X[:, 0]) + random.normal(scale=0.05 + 0.12 * X[:, 0])
training, aside, new = slice(0, 300), slice(300, 700), slice(700, None)
levels = (0.05, 0.95, 0.5)
machines = [QuantileSVR(quantile=level, C=100, gamma=5.0).fit(X[training], y[training]) for level in levels]
conformal = ConformalizedQuantileRegressor(machines, confidence_level=0.9, prefit=True)
conformal.conformalize(X[aside], y[aside])

places = np.linspace(0, 6, 300)[:, None]
bounds = {
    "QuantileSVR, 5 % and 95 %": lambda samples: np.sort(
        [machine.predict(samples) for machine in machines[:2]], axis=0
    ),
    "with MAPIE": lambda samples: conformal.predict_interval(samples)[1][:, :, 0].T,
}
figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), sharey=True, layout="constrained")
for (name, bound), ax in zip(bounds.items(), axes, strict=True):
    low, high = bound(X[new])
    inside = (low <= y[new]) & (y[new] <= high)
    ax.fill_between(places[:, 0], *bound(places), color="#0072B2", alpha=0.2)
    ax.scatter(X[new, 0], y[new], s=7, c=np.where(inside, "0.5", "#D55E00"))
    ax.set_title(f"{name}: {inside.mean():.0%} of new samples inside, 90 % wanted")
