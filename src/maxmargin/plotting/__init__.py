"""Pictures, with matplotlib, in the manner of scikit-learn's displays.

A class method computes and draws (`from_estimator` and the like), the object keeps what it computed, and its `plot`
draws again, on axes of the caller's choice. `CalibrationDisplay` is scikit-learn's own: it takes any of our
classifiers with ``probability=True``.
"""

from sklearn.calibration import CalibrationDisplay

from maxmargin.plotting.animation import FitAnimation, animate
from maxmargin.plotting.cache import CacheDisplay
from maxmargin.plotting.coefficient_path import CoefficientPathDisplay
from maxmargin.plotting.convergence import ConvergenceDisplay
from maxmargin.plotting.decision_regions import DecisionRegionsDisplay
from maxmargin.plotting.kernel_matrix import KernelMatrixDisplay
from maxmargin.plotting.score_grid import ScoreGridDisplay
from maxmargin.plotting.slack_histogram import SlackHistogramDisplay

__all__ = [
    "CacheDisplay",
    "CalibrationDisplay",
    "CoefficientPathDisplay",
    "ConvergenceDisplay",
    "DecisionRegionsDisplay",
    "FitAnimation",
    "KernelMatrixDisplay",
    "ScoreGridDisplay",
    "SlackHistogramDisplay",
    "animate",
]
