"""
How far outside: probabilities of a one-class machine
=====================================================

With ``probability=True`` the depth inside or outside becomes a number between 0 and 1, ½ on the boundary.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import OneClassSVM
from maxmargin.datasets import outliers

X, y = outliers(500, contamination=0.05, seed=0)
model = OneClassSVM(nu=0.08, gamma=0.5, probability=True).fit(X)
side = np.linspace(-6, 6, 200)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
inside = model.predict_proba(grid)[:, 0].reshape(200, 200)

figure, ax = plt.subplots(figsize=(7, 5.6), layout="constrained")
drawn = ax.contourf(side, side, inside, levels=np.linspace(0, 1, 11), cmap="cividis")
ax.contour(side, side, inside, levels=[0.5], colors="white")
ax.scatter(*X.T, s=8, c=np.where(y > 0, "white", "#D55E00"), edgecolors="#26292e", linewidths=0.4)
figure.colorbar(drawn, label="probability to be inside")
