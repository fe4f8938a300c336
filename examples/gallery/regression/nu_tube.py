"""
ν-regression: the width of the tube as a result
===============================================

``NuSVR`` takes the fraction of samples that may lie outside the tube, and finds ε. With more noise the tube is wider,
while the fraction outside remains.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import NuSVR

random = np.random.default_rng(0)
X = np.sort(random.uniform(0, 6, (200, 1)), axis=0)
noise = random.normal(size=200)
figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), sharey=True, layout="constrained")
for scale, ax in zip((0.1, 0.3, 0.6), axes, strict=True):
    y = np.sin(X[:, 0]) + scale * noise
    model = NuSVR(nu=0.2, C=10).fit(X, y)
    f, epsilon = model.predict(X), model.geometry_.epsilon
    ax.fill_between(X[:, 0], f - epsilon, f + epsilon, color="#009E73", alpha=0.2)
    ax.plot(X, f, color="#009E73", linewidth=2)
    ax.scatter(X, y, s=10, color="0.5")
    ax.set_title(f"noise {scale}: ε = {epsilon:.2f}, outside {len(model.geometry_.outside) / len(X):.0%}")
