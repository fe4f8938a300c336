"""
Badly scaled data and large costs
=================================

Unscaled columns make the problem ill-conditioned, and most solvers stop early. The true violation of the optimality
conditions of two libraries, at the same requested tolerance, computed by the same certificate.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import sklearn.svm
from sklearn.datasets import load_breast_cancer

from maxmargin import SVC, certify
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix

X, y = load_breast_cancer(return_X_y=True)  # columns from 0.001 to 4,000
signs = np.where(y == 1, 1.0, -1.0)
costs = [1e-4, 1e-3, 1e-2, 1e-1]
violations = {"scikit-learn": [], "maxmargin": []}
for C in costs:
    problem = pose(KernelMatrix(Linear(), Points(X)), signs, np.full(len(y), C))
    for name, machine in {"scikit-learn": sklearn.svm.SVC, "maxmargin": SVC}.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a limit on the iterations
            model = machine(kernel="linear", C=C, max_iter=200_000).fit(X, y)
        dual = np.zeros(len(y))
        dual[model.support_] = model.dual_coef_[0]
        violations[name].append(certify(problem, dual).violation)

figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
for (name, values), colour, marker in zip(violations.items(), ("#D55E00", "#0072B2"), "so", strict=True):
    ax.loglog(costs, values, f"-{marker}", color=colour, label=name)
ax.axhline(1e-3, color="#9aa0a8", linestyle="--", label="requested tolerance")
ax.set(xlabel="C", ylabel="violation", title="Unscaled breast cancer data, linear kernel")
ax.legend()
