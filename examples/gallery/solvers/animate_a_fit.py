"""
A fit, pair step by pair step
=============================

Sequential minimal optimisation changes two dual variables at a time. The size of a sample is its dual variable, the two
rings are the working pair; the gap between primal and dual value closes.
"""

from sklearn.datasets import make_moons

import maxmargin
from maxmargin.plotting import DecisionRegionsDisplay, animate

X, y = make_moons(60, noise=0.2, random_state=0)
fit_trace = maxmargin.trace(X, y, gamma=1.0, C=5.0)
print(f"{len(fit_trace) - 1} steps, the last working set: {fit_trace.working_sets[-1]}")
print(fit_trace.certificate)
animate(fit_trace, max_frames=40, milliseconds=250)

# %%
# The result:
DecisionRegionsDisplay.from_estimator(maxmargin.SVC(gamma=1.0, C=5.0).fit(X, y), X, y)
