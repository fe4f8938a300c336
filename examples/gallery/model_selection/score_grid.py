"""
C and γ by cross-validation
===========================

``SVCCV`` scores a grid of C and γ while it fits, refines it around the best point, and trains the best one. Small cells
are refinements; the line leads to the choice.
"""

from maxmargin import SVCCV
from maxmargin.datasets import chessboard
from maxmargin.plotting import ScoreGridDisplay

X, y = chessboard(500, noise=0.1, seed=1)
model = SVCCV(refine=2).fit(X, y)
ScoreGridDisplay.from_estimator(model)
print({name: round(float(value), 3) for name, value in model.best_params_.items()})
print(f"cross-validation {model.best_score_:.3f}, new samples {model.score(*chessboard(3000, noise=0.1, seed=2)):.3f}")
