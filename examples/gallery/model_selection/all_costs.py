"""
The solutions for all C
=======================

The dual variables of a support vector machine are piecewise linear in C. ``regularization_path`` follows them from one
breakpoint to the next: all solutions at about the cost of a few fits.
"""

from sklearn.datasets import make_moons

from maxmargin import SVC, regularization_path
from maxmargin.plotting import RegularizationPathDisplay

X, y = make_moons(160, noise=0.35, random_state=0)
path = regularization_path(X[:80], y[:80], estimator=SVC(gamma=2.0), C_min=0.03, C_max=1000)
RegularizationPathDisplay.from_path(path, X[80:], y[80:])
