"""
ν bounds the fractions of margin errors and of support vectors
==============================================================

``NuSVC`` has a parameter with a meaning: at most a fraction ν of the samples are margin errors, and at least a fraction
ν are support vectors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from maxmargin import NuSVC

X, y = make_moons(300, noise=0.3, random_state=0)
nus = np.linspace(0.05, 0.9, 18)
models = [NuSVC(nu=nu, gamma=1.0).fit(X, y) for nu in nus]
support = [len(model.support_) / len(X) for model in models]
errors = [np.mean(model.geometry_.slack > 1e-6) for model in models]

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.plot(nus, support, "-o", color="#0072B2", label="support vectors")
ax.plot(nus, nus, "--", color="#9aa0a8", label="ν")
ax.plot(nus, errors, "-s", color="#D55E00", label="margin errors")
ax.set(xlabel="ν", ylabel="fraction of the samples", title="ν lies between the two fractions")
ax.legend()
