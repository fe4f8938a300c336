"""
A kernel by landmarks: accuracy against their number
====================================================

``KernelApproximationSVC`` replaces the kernel by features of some landmarks. With more of them the objective approaches
that of the exact machine, and the bounds of ``certify="exact"`` say how closely.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC, KernelApproximationSVC
from maxmargin.datasets import chessboard

X, y = chessboard(2000, noise=0.05, seed=0)
exact = SVC(C=10, gamma=2.0).fit(X, y).certificate_.primal
numbers = [25, 50, 75, 100, 150, 200, 300]
bounds = [
    KernelApproximationSVC(C=10, gamma=2.0, n_components=number, certify="exact", random_state=0)
    .fit(X, y)
    .exact_certificate_
    for number in numbers
]
lower, upper = np.array([(one.dual, one.model_primal) for one in bounds]).T

figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
ax.fill_between(numbers, lower, upper, color="0.9", label="the optimum is in here")
ax.plot(numbers, upper, "-o", color="#0072B2", label="objective of the landmark model")
ax.plot(numbers, lower, "-s", color="#009E73", label="lower bound from the landmark model")
ax.axhline(exact, color="#D55E00", linestyle="--", label="optimum, by the exact machine")
ax.set(xlabel="landmarks", ylabel="objective", title="2,000 samples of a chessboard")
ax.legend()
