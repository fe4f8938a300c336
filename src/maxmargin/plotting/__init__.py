"""Plots of models and fits with matplotlib, as scikit-learn-style displays.

A class method computes the data and draws them (`from_estimator`, `from_trace`, …); the display stores the data, and
its `plot` draws them again on given axes. `CalibrationDisplay` is scikit-learn's own and accepts every classifier with
``probability=True``.

- `decision_regions`, `slack_histogram`, `kernel_matrix`: a fitted model and its samples
- `convergence`, `row_cache`, `animation`: the progress of a solver
- `coefficient_path`, `regularization_path`: linear and kernel machines against C
- `score_grid`: scores of a grid search
- `feature_relevance`: relevance of features to a kernel with a γ for each
- `kernel_weights`: weights of kernels that were learned
- `shares`: bars of shares of a whole
- `margin_positions`: position of each sample relative to the margin
- `style`: colours, axes and SVG output

Public: the names below.
"""

from sklearn.calibration import CalibrationDisplay

from maxmargin.plotting.animation import FitAnimation, animate
from maxmargin.plotting.coefficient_path import CoefficientPathDisplay
from maxmargin.plotting.convergence import ConvergenceDisplay
from maxmargin.plotting.decision_regions import DecisionRegionsDisplay
from maxmargin.plotting.feature_relevance import FeatureRelevanceDisplay
from maxmargin.plotting.kernel_matrix import KernelMatrixDisplay
from maxmargin.plotting.kernel_weights import KernelWeightsDisplay
from maxmargin.plotting.regularization_path import LeaveOneOutDisplay, RegularizationPathDisplay
from maxmargin.plotting.row_cache import CacheDisplay
from maxmargin.plotting.score_grid import ScoreGridDisplay
from maxmargin.plotting.slack_histogram import SlackHistogramDisplay

__all__ = [
    "CacheDisplay",
    "CalibrationDisplay",
    "CoefficientPathDisplay",
    "ConvergenceDisplay",
    "DecisionRegionsDisplay",
    "FeatureRelevanceDisplay",
    "FitAnimation",
    "KernelMatrixDisplay",
    "KernelWeightsDisplay",
    "LeaveOneOutDisplay",
    "RegularizationPathDisplay",
    "ScoreGridDisplay",
    "SlackHistogramDisplay",
    "animate",
]
