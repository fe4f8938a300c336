"""
The smallest ball around the data
=================================

``SVDD`` with the linear kernel is the smallest ball that contains all but a fraction ν of the samples. Its centre and
radius are in the units of the data.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVDD

random = np.random.default_rng(0)
X = np.vstack([random.normal([5, -3], 1, (300, 2)), random.uniform(-1, 11, (12, 2)) - [0, 8]])
figure, ax = plt.subplots(figsize=(6.5, 6), layout="constrained")
ax.scatter(*X.T, s=12, color="0.5")
for nu, colour in ((0.01, "#0072B2"), (0.05, "#009E73"), (0.3, "#D55E00")):
    model = SVDD(nu=nu, kernel="linear").fit(X)
    centre, radius = 0.5 * model.coef_[0], model.geometry_.radius
    ax.add_patch(plt.Circle(centre, radius, fill=False, color=colour, linewidth=2, label=f"ν = {nu}: {radius:.1f}"))
    ax.plot(*centre, "+", color=colour, markersize=12)
ax.set_aspect("equal")
ax.legend(title="radius")
