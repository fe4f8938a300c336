"""
A γ for each feature
====================

Two of eight features decide. Gradient steps on a held-out loss find a γ for each: those of the other features become
small or 0, and the accuracy on new samples rises.
"""

import numpy as np

from maxmargin import SVC, SVCCV, gradient_search
from maxmargin.plotting import FeatureRelevanceDisplay

random = np.random.default_rng(0)
X = random.normal(size=(700, 8))
y = X[:, 1] * X[:, 4] > 0
X_train, X_test, y_train, y_test = X[:300], X[300:], y[:300], y[300:]

result = gradient_search(X_train, y_train, SVC(), max_iter=15, starts=1)
FeatureRelevanceDisplay.from_search(result)
one = SVCCV().fit(X_train, y_train)
print(f"one γ for all features: {one.score(X_test, y_test):.1%} of new samples")
print(f"a γ for each feature:   {result.best_estimator.fit(X_train, y_train).score(X_test, y_test):.1%}")
