"""
Several targets, and the fit of a surface
=========================================

An estimator with several columns of targets fits one function for each, on one kernel matrix. Here two coordinates of a
closed curve are learned from noisy points along it.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR

random = np.random.default_rng(0)
t = np.sort(random.uniform(0, 2 * np.pi, 150))
curve = np.column_stack([np.cos(t) + 0.5 * np.cos(3 * t), np.sin(t) - 0.3 * np.sin(2 * t)])
noisy = curve + random.normal(scale=0.1, size=curve.shape)
features = np.column_stack([np.cos(t), np.sin(t)])
model = SVR(C=10, epsilon=0.05, gamma=2).fit(features, noisy)
dense = np.linspace(0, 2 * np.pi, 400)
fitted = model.predict(np.column_stack([np.cos(dense), np.sin(dense)]))

figure, ax = plt.subplots(figsize=(6.5, 5), layout="constrained")
ax.scatter(*noisy.T, s=12, color="0.6", label="noisy points")
ax.plot(*curve.T, ":", color="#26292e", label="curve")
ax.plot(*fitted.T, color="#D55E00", linewidth=2, label="SVR with two targets")
ax.set_aspect("equal")
ax.legend()
