"""
Exact leave-one-out for all C
=============================

Each sample predicted by the model that is trained on all others, without training as many models: most follow from one
fit. The error against C, with two bounds that need no further fit at all.
"""

from sklearn.datasets import make_moons

from maxmargin import SVC, leave_one_out, regularization_path
from maxmargin.plotting import LeaveOneOutDisplay

X, y = make_moons(80, noise=0.35, random_state=0)
path = regularization_path(X, y, estimator=SVC(gamma=2.0), C_min=0.03, C_max=1000)
LeaveOneOutDisplay.from_path(path)

# %%
# Of a single model:
print(leave_one_out(SVC(gamma=2.0).fit(X, y)))
