"""
Decision regions and support vectors
====================================

A chessboard with 5 % of its labels flipped. Support vectors lie on the margin (rings), inside it or on the wrong side.
The other samples could be removed without any effect on the model.
"""

from maxmargin import SVC
from maxmargin.datasets import chessboard
from maxmargin.plotting import DecisionRegionsDisplay

X, y = chessboard(600, noise=0.05, seed=0)
model = SVC(C=10, gamma=1.0).fit(X, y)
DecisionRegionsDisplay.from_estimator(model, X, y)
print(f"{len(model.support_)} of {len(X)} samples are support vectors")
print(model.certificate_)

# %%
# Trained on the support vectors alone, it is the same model.
same = SVC(C=10, gamma=1.0).fit(X[model.support_], y[model.support_])
print(
    "largest difference of decision values:", abs(same.decision_function(X) - model.decision_function(X)).max().round(3)
)
