"""Which samples to label next, for any classifier with a ``decision_function``."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_random_state

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.active.class_values import class_values
from maxmargin.estimators.active.incremental_learner import count_rows
from maxmargin.estimators.validation.parameters import check_count
from maxmargin.estimators.validation.training_data import as_objects, is_table
from maxmargin.kernels.points import rows_of
from maxmargin.online.selection import STRATEGIES, Candidates, Strategy

#: Of how many samples decision values are computed together: their rows are copied.
TOGETHER = 2**15


def query(
    estimator: Any, X: Any, n: int = 1, *, strategy: Any = "margin", y: Any = None, random_state: Any = None
) -> Indices:
    """Return the samples of `X` that a fitted classifier would learn most from.

    Parameters
    ----------
    estimator : fitted classifier
        With ``decision_function``: one of ours, or scikit-learn's ``SVC``, ``SGDClassifier``, ``LogisticRegression``, …
        The margin of a sample is the size of f(x), or half the difference of the two largest decision values if there
        are more than two classes. The votes that ``SVC`` returns for many classes say little about the margin: give it
        ``decision_function_shape="ovo"``, or one of ours ``multi_class="ovr"``.
    X : array-like, sparse matrix, or frame
        Samples without a label.
    n : int, default=1
        How many to return, fewer if there are not so many.
    strategy : {"random", "gradient", "margin", "margin_of_candidates", "auto_active"} or object, default="margin"
        See `ActiveLearner`.
    y : array-like, optional
        The labels, if they are known and only the time to learn them is dear: then "gradient" goes by the violation
        that these have.
    random_state : int, RandomState or None, default=None
        Of the candidates, and of the order among equals.

    Returns
    -------
    int array
        Rows of `X`, the most wanted first.

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
    """Return samples so that rows can be taken."""
    if is_table(X):
        return X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    return as_objects(X)


def find_strategy(strategy: Any) -> Strategy:
    """Return the strategy of a name, or a strategy object as it is."""
    found = STRATEGIES.get(strategy) if isinstance(strategy, str) else strategy
    if not isinstance(found, Strategy):
        names = ", ".join(map(repr, STRATEGIES))
        raise ValueError(f"strategy must be one of {names}, or an object from maxmargin.online, not {strategy!r}")
    return found


def candidates_of(model: Any, X: Any, rows: Indices, y: Any = None) -> Candidates:
    """Return some rows of `X` as candidates; `y` holds the labels of all rows, if they are known."""

    def decide(numbers: Indices) -> Floats:
        parts = np.array_split(rows[numbers], range(TOGETHER, len(numbers), TOGETHER))
        return np.concatenate([class_values(model, rows_of(X, part)) for part in parts])

    return Candidates(len(rows), decide, None if y is None else _numbers_of(y, count_rows(X), model.classes_)[rows])


def _numbers_of(y: Any, count: int, classes: Any) -> Indices:
    y = np.asarray(y)
    if y.shape != (count,):
        raise ValueError(f"y must have one label for each of the {count} samples, but has the shape {y.shape}")
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return np.where(classes[places] == y, places, -1).astype(np.int64)
