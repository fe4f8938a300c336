"""
ν bounds the fraction of outliers
=================================

Of the training samples at most a fraction ν is outside, and of new samples of the same distribution nearly the same
fraction: ν is the rate of false alarms.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import OneClassSVM

random = np.random.default_rng(0)
X, X_new = random.normal(size=(500, 2)), random.normal(size=(5000, 2))
nus = np.linspace(0.02, 0.5, 13)
models = [OneClassSVM(nu=nu, gamma=0.2).fit(X) for nu in nus]

figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
ax.plot(nus, nus, "--", color="#9aa0a8", label="ν")
ax.plot(nus, [len(model.support_) / len(X) for model in models], "-o", color="#0072B2", label="support vectors")
ax.plot(nus, [np.mean(model.predict(X) < 0) for model in models], "-s", color="#D55E00", label="outside, training")
ax.plot(
    nus, [np.mean(model.predict(X_new) < 0) for model in models], "-^", color="#009E73", label="outside, new samples"
)
ax.set(xlabel="ν", ylabel="fraction")
ax.legend()
