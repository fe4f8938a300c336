"""
Hard margin: the widest street between two classes
==================================================

With ``C=inf`` no sample may lie inside the margin. The boundary is determined by the samples on its edges alone; if the
classes cannot be separated, ``fit`` says so.
"""

import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import SVC
from maxmargin.plotting import DecisionRegionsDisplay

X, y = make_blobs(60, centers=[[0, 0], [4, 3]], random_state=5)
model = SVC(kernel="linear", C=np.inf).fit(X, y)
DecisionRegionsDisplay.from_estimator(model, X, y)
print(f"margin {model.geometry_.margin:.3f}, that is 1/‖w‖ = {1 / np.linalg.norm(model.coef_):.3f}")
print("samples on its edges:", model.support_)

# %%
# One sample among the others makes it impossible.
y_wrong = y.copy()
y_wrong[np.argmin(X[:, 0])] = 1
try:
    SVC(kernel="linear", C=np.inf).fit(X, y_wrong)
except ValueError as error:
    print(error)
