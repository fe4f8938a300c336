"""`query`: the samples to label next, for any classifier with a ``decision_function``."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_random_state

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.active.incremental_learner import count_rows
from maxmargin.kernels.points import rows_of
from maxmargin.machines.validation.parameters import check_count
from maxmargin.machines.validation.training_data import as_objects, is_table
from maxmargin.online.selection import QUERY_STRATEGIES, Candidates, QueryStrategy

#: Samples whose decision values are computed together, because their rows are copied.
CHUNK_ROWS = 2**15


def query(
    estimator: Any, X: Any, n: int = 1, *, strategy: Any = "margin", y: Any = None, random_state: Any = None
) -> Indices:
    """Return the samples of `X` that are most informative for a fitted classifier.

    Parameters
    ----------
    estimator : fitted classifier
        With ``decision_function``: one of this package, or scikit-learn's ``SVC``, ``LogisticRegression``, … The margin
        of a sample is |f(x)|, or half the difference of the two largest decision values for more than two classes. The
        votes that scikit-learn's ``SVC`` returns for several classes are hardly related to the margin: use
        ``decision_function_shape="ovo"``, or ``multi_class="ovr"`` in this package.
    X : array-like, sparse matrix, or frame
        Unlabelled samples.
    n : int, default=1
        The number of samples to return, at most all.
    strategy : {"random", "gradient", "margin", "margin_of_candidates", "auto_active"} or object, default="margin"
        See `ActiveLearner`.
    y : array-like, optional
        The labels, if they are known and only training is expensive: then "gradient" uses their violations.
    random_state : int, RandomState or None, default=None
        Seed of the candidates and of the order of ties.

    Returns
    -------
    int array
        Rows of `X`, the highest priority first.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from maxmargin import query
    >>> model = LogisticRegression().fit([[0], [1], [3], [4]], [0, 0, 1, 1])
    >>> query(model, [[-1], [0.5], [2.1], [5], [1.2]], n=2)
    array([2, 4])
    """
    check_is_fitted(estimator)
    X = samples_of(X)
    rows = np.arange(count_rows(X))
    chosen = find_strategy(strategy).choose(
        candidates_of(estimator, X, rows, y), check_count("n", n, 1), check_random_state(random_state)
    )
    return rows[chosen]


def samples_of(X: Any) -> Any:
    """Return samples in a form that supports row indexing."""
    if is_table(X):
        return X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    return as_objects(X)


def find_strategy(strategy: Any) -> QueryStrategy:
    """Return the strategy of a name, or a strategy object unchanged."""
    found = QUERY_STRATEGIES.get(strategy) if isinstance(strategy, str) else strategy
    if not isinstance(found, QueryStrategy):
        names = ", ".join(map(repr, QUERY_STRATEGIES))
        raise ValueError(f"strategy must be one of {names}, or an object from maxmargin.online, not {strategy!r}")
    return found


def candidates_of(model: Any, X: Any, rows: Indices, y: Any = None) -> Candidates:
    """Return some rows of `X` as candidates; `y` holds the labels of all rows, if they are known."""

    def decide(numbers: Indices) -> Floats:
        parts = np.array_split(rows[numbers], range(CHUNK_ROWS, len(numbers), CHUNK_ROWS))
        return np.concatenate([class_values(model, rows_of(X, part)) for part in parts])

    return Candidates(len(rows), decide, None if y is None else _numbers_of(y, count_rows(X), model.classes_)[rows])


def _numbers_of(y: Any, count: int, classes: Any) -> Indices:
    y = np.asarray(y)
    if y.shape != (count,):
        raise ValueError(f"y must have one label for each of the {count} samples, not the shape {y.shape}")
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[places] == y, places, -1).astype(np.int64)


def class_values(estimator: Any, X: Any) -> Floats:
    """Return the decision values of samples, one column for each class; (−f, f) for two classes.

    Values of pairs of classes (``decision_function_shape="ovo"``) are converted: the winner of the vote has the value
    0, and the others −2 times the value by which they lose against it. Half the difference of the two largest is then
    the decision value of the closest pair with the winner.
    """
    if not hasattr(estimator, "decision_function"):
        raise TypeError(f"{type(estimator).__name__} has no decision_function; without one use strategy='random'")
    values = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"the decision_function of {type(estimator).__name__} returned values that are not finite")
    if values.ndim == 1 or values.shape[1] == 1:
        return np.column_stack([-values.ravel(), values.ravel()])
    return _from_pairs(values, len(estimator.classes_)) if _has_pair_columns(estimator, values.shape[1]) else values


def _has_pair_columns(estimator: Any, columns: int) -> bool:
    classes = len(estimator.classes_)
    if columns != classes * (classes - 1) // 2:
        return False
    if columns != classes:
        return True
    # Three classes have three pairs; the parameters of the estimator, or of one inside it, resolve the ambiguity.
    shapes = [value for name, value in estimator.get_params().items() if name.endswith("decision_function_shape")]
    return "ovo" in shapes


def _from_pairs(values: Floats, classes: int) -> Floats:
    against = np.zeros((len(values), classes, classes))
    for column, (a, b) in enumerate(combinations(range(classes), 2)):
        against[:, a, b], against[:, b, a] = values[:, column], -values[:, column]
    winners = (against > 0).sum(axis=2).argmax(axis=1)
    return np.asarray(-2.0 * np.maximum(against[np.arange(len(values)), winners], 0.0))
