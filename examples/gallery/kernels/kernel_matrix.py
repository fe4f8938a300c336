"""
The kernel matrix, sorted
=========================

All that a support vector machine knows of its samples. Blocks along the diagonal are groups of similar samples; their
brightness depends on γ.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from maxmargin.kernels import Gaussian
from maxmargin.plotting import KernelMatrixDisplay

X, y = load_wine(return_X_y=True)
figure, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
for gamma, ax in zip((0.005, 0.05, 0.5), axes, strict=True):
    KernelMatrixDisplay.from_kernel(Gaussian(gamma), scale(X), y, sort_by="cluster", ax=ax)
    ax.set_title(f"γ = {gamma}")
