"""
Training samples from elsewhere
===============================

The training samples are not distributed like those to be predicted. Weights p_test / p_train make the fit good where it
is needed; a linear model cannot be good everywhere.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR, importance_weights

random = np.random.default_rng(0)
X_train, X_test = random.normal(-1, 0.9, (300, 1)), random.normal(1.2, 0.4, (300, 1))
truth = lambda X: np.sin(1.5 * X[:, 0])
y_train = truth(X_train) + random.normal(scale=0.1, size=300)
weights = importance_weights(X_train, X_test)

figure, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
ax.scatter(X_train, y_train, s=6 + 12 * np.minimum(weights, 8), color="#0072B2", alpha=0.5, label="training, by weight")
ax.plot(X_test, np.full(300, -1.6), "|", color="#D55E00", label="to be predicted")
line = np.linspace(-3, 2.5, 50)[:, None]
for name, given, style in (("equal weights", None, "--"), ("importance weights", weights, "-")):
    model = SVR(kernel="linear", C=10).fit(X_train, y_train, sample_weight=given)
    error = np.abs(model.predict(X_test) - truth(X_test)).mean()
    ax.plot(line, model.predict(line), style, color="#26292e", label=f"{name}: mean error {error:.2f}")
ax.set(ylim=(-2, 2), xlabel="x", ylabel="y")
ax.legend(fontsize="small")
