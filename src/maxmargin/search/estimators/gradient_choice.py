"""``gammas="ard"``: C, ε and a γ for each feature by gradients, in place of a grid.

The search ends with two points, the best with one γ in units of the features and the best with a γ for each. Both are
scored like the points of a grid, and the better one is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Floats
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.gradient_search import gradient_search
from maxmargin.search.gradient_search_result import Evaluation, GradientSearchResult
from maxmargin.search.grid import Point
from maxmargin.search.grid_search_result import COMPLETE, INTERRUPTED, STOPPED

#: The value of `gammas` that stands for automatic relevance determination.
BY_FEATURE = "ard"

#: The fraction of the time of a search for the gradients; the rest is for the scores of the two points.
GRADIENT_FRACTION = 0.7


def check_parameters(estimator: Any) -> None:
    """Raise if parameters of an estimator are those of a grid, or of leave-one-out cross-validation."""
    name = type(estimator).__name__
    if "Cs" not in estimator._searched or "gammas" not in estimator._searched:
        raise ValueError(f"{name} has no gammas='ard', only SVCCV and SVRCV; give numbers")
    for plural in ("Cs", "epsilons"):
        if not isinstance(getattr(estimator, plural, 1), int | np.integer):
            raise ValueError(f"gammas='ard' chooses {plural[:-1]} by gradients, not from values: leave out {plural}")
    if estimator.refine:
        raise ValueError("refine is for a grid, gammas='ard' has none; use refine=0")
    if isinstance(estimator.cv, str):
        raise ValueError(f"gammas='ard' needs splits into training and test samples, not cv={estimator.cv!r}")
    if estimator.checkpoint is not None:
        raise ValueError("a checkpoint is for a grid, gammas='ard' has none; use checkpoint=None")


def search_by_gradient(
    data: FoldScorer,
    weights: Floats,
    names: list[str],
    random_state: Any,
    max_seconds: float | None,
    n_jobs: int | None,
    callback: Callable[[Any], object] | None,
) -> GradientSearchResult:
    """Return the result of the search by gradients on the splits of a search."""
    samples = data.X.shape[0]
    splits = [(split.training_rows(samples), split.test) for split in data.splits]
    seconds = None if max_seconds is None else GRADIENT_FRACTION * max_seconds
    found = gradient_search(
        data.X, data.y, data.estimator, folds=splits, sample_weight=weights, random_state=random_state or 0,
        max_seconds=seconds, n_jobs=n_jobs, callback=callback,
    )  # fmt: skip
    return replace(found, feature_names=names or found.feature_names)


def report_limits(result: GradientSearchResult, name: str) -> None:
    """Raise after Ctrl-C and where nothing was found, warn if a limit ended the search."""
    if result.status == INTERRUPTED:
        raise KeyboardInterrupt(f"{name} was interrupted: see gradient_search_; no model was trained")
    if not result.common:
        raise ValueError(f"{name} found no parameters: {result.status}; give it more time (max_seconds)")
    if result.status != COMPLETE:
        cause = "the callback asked to stop" if result.status == STOPPED else "max_seconds was reached"
        warnings.warn(
            f"{name} stopped the steps along gradients because {cause}; the best parameters so far are used",
            ConvergenceWarning,
            stacklevel=6,
        )


def points_of(result: GradientSearchResult) -> tuple[Point, ...]:
    """Return the best point with one γ in units of the features, and the best with a γ for each."""
    both = [min(found, key=lambda one: one.objective) for found in (result.common, result.by_feature) if found]
    return tuple(dict.fromkeys(map(_point, both)))


def _point(evaluation: Evaluation) -> Point:
    return Point(evaluation.C, tuple(np.asarray(evaluation.gamma).tolist()), evaluation.epsilon)
