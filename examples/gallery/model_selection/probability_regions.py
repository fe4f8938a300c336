"""
A map of probabilities
======================

Decision values have no unit; probabilities have. Near the boundary they are close to ½, and they grow to both sides.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import SVC

X, y = make_moons(300, noise=0.3, random_state=0)
model = SVC(gamma=1.0, probability=True).fit(X, y)
across, up = np.linspace(-2, 3, 200), np.linspace(-1.5, 2, 200)
grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
probability = model.predict_proba(grid)[:, 1].reshape(200, 200)

figure, ax = plt.subplots(figsize=(8, 5.2), layout="constrained")
drawn = ax.contourf(across, up, probability, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.7)
ax.contour(across, up, probability, levels=[0.5], colors="#26292e")
ax.scatter(*X.T, s=12, c=np.where(y == 1, "#b2182b", "#2166ac"), edgecolors="white", linewidths=0.4)
figure.colorbar(drawn, label="probability of the red class")
