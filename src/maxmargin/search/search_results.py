"""The results of a search in the layout of scikit-learn's `GridSearchCV`, and the choice of the best point.

The points have the order of scikit-learn's ``ParameterGrid`` and ties go to the first of them, so that names, columns,
ranks and choices are those of `GridSearchCV`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from maxmargin._typing import Floats
from maxmargin.search.grid_search_result import GridSearchResult


def cv_results(result: GridSearchResult) -> dict[str, Any]:
    """Return scores, ranks and times by point, which pandas can take as a table; nan where a trial is unfinished.

    Of a search that drops points, "pruned" says which ones.
    """
    table: dict[str, Any] = {}
    for name in ("fit_time", "score_time"):
        times = _by_point_and_split(result, lambda trial, field=f"{name[:-5]}_seconds": getattr(trial, field))  # type: ignore[misc]
        table[f"mean_{name}"], table[f"std_{name}"] = times.mean(axis=1), times.std(axis=1)
    points = result.points
    for name in sorted(result.values):
        table[f"param_{name}"] = _column([getattr(point, name) for point in points])
    table["params"] = [point.parameters for point in points]
    if result.pruned is not None:
        dropped = set(result.pruned)
        table["pruned"] = np.array([point in dropped for point in points])
    for name in _score_names(result):
        scores = _by_point_and_split(
            result,
            lambda trial, name=name: result.error_score if trial.error is not None else trial.scores[name],  # type: ignore[misc]
        )
        for split in range(result.folds):
            table[f"split{split}_{name}"] = scores[:, split]
        means = np.average(scores, axis=1)
        # As in scikit-learn, operation by operation: equal numbers get equal ranks.
        table[f"mean_{name}"] = means
        table[f"std_{name}"] = np.sqrt(np.average((scores - means[:, np.newaxis]) ** 2, axis=1))
        if name.startswith("test_"):
            table[f"rank_{name}"] = _ranks(means)
    return table


def _column(values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    """Return values as a column; those that are tuples, with a number for each feature, as objects."""
    if not any(isinstance(value, tuple) for value in values):
        return np.ma.MaskedArray(values, mask=False)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return np.ma.MaskedArray(column, mask=False)


def _score_names(result: GridSearchResult) -> list[str]:
    """Return the names of the scores of the trials: test scores, each followed by the score of the training samples."""
    found = next((trial.scores for trial in result.trials if trial.error is None), {f"test_{result.metric}": 0.0})
    tests = [name for name in found if name.startswith("test_")]
    return [name for test in tests for name in (test, f"train_{test[5:]}") if name in found]


def _by_point_and_split(result: GridSearchResult, value: Callable[[Any], float]) -> Floats:
    """Return a value of each trial: a row for each point, a column for each split."""
    values = np.full((len(result.points), result.folds), np.nan)
    for row, trials in enumerate(result.by_point.values()):
        for split, trial in trials.items():
            values[row, split] = value(trial)
    return values


def _ranks(means: Floats) -> np.ndarray:
    """Return the rank of each point, 1 for the best; equal scores have equal ranks, and nan is the worst."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    ranks: np.ndarray = rankdata(-np.nan_to_num(means, nan=np.nanmin(means) - 1), method="min").astype(np.int32)
    return ranks


def best_index(results: dict[str, Any], refit: Any, metric: str) -> int:
    """Return the number of the best point: the first of the best scores, or what a function `refit` returns."""
    if not callable(refit):
        return int(results[f"rank_test_{metric}"].argmin())
    index = refit(results)
    if not isinstance(index, Integral) or isinstance(index, bool):
        raise TypeError(f"the function refit must return the index of a point, an integer, not {index!r}")
    if not 0 <= int(index) < len(results["params"]):
        raise IndexError(f"the function refit returned {index}, but there are {len(results['params'])} points")
    return int(index)


def warn_about_scores(result: GridSearchResult, name: str) -> None:
    """Warn of trials that raised exceptions, and of scores that are not finite."""
    failed = Counter(trial.error for trials in result.by_point.values() for trial in trials.values() if trial.error)
    if failed:
        causes = "\n".join(f"{count} times: {message}" for message, count in failed.most_common())
        total = sum(map(len, result.by_point.values()))
        warnings.warn(
            f"{failed.total()} of {total} trials of {name} failed; their score is {result.error_score}. To see where, "
            f"set error_score='raise'. The errors:\n{causes}",
            FitFailedWarning,
            stacklevel=4,
        )
    means = [score.mean for score in result.scores]
    if not np.isfinite(means).all():
        warnings.warn(f"One or more of the test scores are non-finite: {np.array(means)}", UserWarning, stacklevel=4)
