"""
Trend and season: a sum of kernels
==================================

A series with a trend and a yearly season, as a sum of a wide Gaussian kernel and a periodic one. The sum extrapolates
the season; the Gaussian kernel alone does not know that there is one.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR

random = np.random.default_rng(0)
years = np.linspace(0, 8, 200)[:, None]
values = 0.15 * years[:, 0] ** 1.5 + np.sin(2 * np.pi * years[:, 0]) + random.normal(scale=0.2, size=200)
later = np.linspace(0, 11, 600)[:, None]


def wide(A, B):
    """Evaluate a Gaussian kernel of ten years."""
    return np.exp(-0.5 * ((A - B.T) / 10) ** 2)


def wide_and_periodic(A, B):
    """Evaluate a Gaussian kernel of ten years plus a kernel of period one year."""
    return 10 * wide(A, B) + np.exp(-2 * np.sin(np.pi * (A - B.T)) ** 2)


figure, ax = plt.subplots(figsize=(9, 4.8), layout="constrained")
ax.scatter(years, values, s=10, color="0.5", label="observed")
for name, kernel, colour in (
    ("trend and season", wide_and_periodic, "#D55E00"),
    ("trend alone", wide, "#0072B2"),
):
    model = SVR(kernel=kernel, C=100, epsilon=0.1).fit(years, values)
    ax.plot(later, model.predict(later), color=colour, linewidth=2, label=name)
ax.axvline(8, color="0.8")
ax.set(xlabel="years", ylabel="value", title="The last three years are extrapolated")
ax.legend()
