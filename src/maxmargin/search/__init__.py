"""Model selection by cross-validation.

Public: `grid_search`, `GridSearchResult`, `PointScore`, `Point`, `powers`, `choose_estimator`, `ModelChoice`,
`gradient_search`, `GradientSearchResult`, `hyperparameter_gradient`.

- `grid`: values of parameters, and the points they form.
- `fold_scoring`: splits into training and test samples, and the scores of an estimator on a split.
- `leave_one_out`: the same for leave-one-out cross-validation.
- `cross_validated_search`: `grid_search`: rounds of trials, limits, the journal.
- `trial_threads`: trials in parallel threads.
- `path_trials`, `scored_values`: trials that are trained together on the CPU, and which scores allow it.
- `device_trials`: trials on a GPU, which share the samples.
- `grid_search_result`: the scores of all points, and the best one.
- `gradient_search`, `gradient_search_result`: C, ε and a γ for each feature by the gradient of a held-out loss.
- `held_out_loss`, `hyperparameter_gradient`, `feature_spread`: the loss, its derivatives, and units of γ.
- `search_results`: the same in the layout of scikit-learn's GridSearchCV.
- `pruning`: which points of a search can no longer be the best.
- `journal`: a file of finished trials, from which an interrupted search resumes.
- `estimators`: `SVCCV` and others, which choose their parameters while they fit.
- `parameter_ranges`: the values they search.
- `novelty_score`: a score of novelty detectors without labels.
- `search_progress`: the progress line of a search.
- `data_summary`: size, density and labels of a data set, recommended scaling, default γ.
- `selection_plan`: what a model selection tries, from the summary of the data.
- `model_selection`: `choose_estimator`, which selects an estimator and its parameters within a time limit.
- `score_colormap`: colours and text of scores in tables and figures.
"""

from maxmargin.search.cross_validated_search import grid_search
from maxmargin.search.gradient_search import gradient_search
from maxmargin.search.gradient_search_result import GradientSearchResult
from maxmargin.search.grid import Point, powers
from maxmargin.search.grid_search_result import GridSearchResult, PointScore
from maxmargin.search.hyperparameter_gradient import HyperparameterGradient, hyperparameter_gradient
from maxmargin.search.model_selection import ModelChoice, choose_estimator

__all__ = [
    "GradientSearchResult",
    "GridSearchResult",
    "HyperparameterGradient",
    "ModelChoice",
    "Point",
    "PointScore",
    "choose_estimator",
    "gradient_search",
    "grid_search",
    "hyperparameter_gradient",
    "powers",
]
