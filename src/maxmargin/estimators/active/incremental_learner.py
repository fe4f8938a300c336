"""An estimator that is taught label by label: by ``partial_fit`` where it has that, by a new fit where not.

What was told is kept, for labels are dear. It is recorded before anything is learnt from it, so that an interruption
loses no label; an estimator that was interrupted in the middle of ``partial_fit`` is replaced by one that learns all
anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from maxmargin.estimators.validation.parameters import check_choice


class Pupil:
    """An estimator and what it was told.

    Parameters
    ----------
    estimator : estimator
        Copied, never changed.
    learning : {"auto", "partial_fit", "fit"}
        How it learns; "auto" is ``partial_fit`` where there is one.
    classes : array-like, optional
        All labels that will occur. Without them a new label starts ``partial_fit`` anew.
    start : int
        Until so many labels are there ``partial_fit`` takes all of them as one first batch: some estimators set their
        scales by that.
    """

    def __init__(self, estimator: Any, learning: str, classes: Any, start: int) -> None:
        check_choice("learning", learning, ("auto", "partial_fit", "fit"))
        can_stream = hasattr(estimator, "partial_fit")
        if learning == "partial_fit" and not can_stream:
            raise ValueError(f"{type(estimator).__name__} has no partial_fit; learning='fit' fits it anew each time")
        self.estimator = estimator
        self.in_steps = can_stream if learning == "auto" else learning == "partial_fit"
        self.classes = None if classes is None else np.unique(classes)
        self.start = max(1, start)
        self.model: Any = None
        self.rows: list[Any] = []
        self.labels: list[Any] = []
        self._learnt = 0  # how many of them the model knows

    @property
    def ready(self) -> bool:
        """Whether there is a model, which needs labels of two classes."""
        return self.model is not None

    def record(self, rows: Any, labels: Any) -> None:
        """Keep samples with their labels, or raise if a label cannot be one."""
        known = [] if self.classes is None else self.classes.tolist()
        for label in labels:
            if label is None or label != label:
                raise ValueError("a label must not be missing")
            if known and label not in known:
                raise ValueError(f"the label {label!r} is not in classes, {known}")
            if self.labels and isinstance(label, str) != isinstance(self.labels[0], str):
                raise ValueError(f"labels must be all strings or all numbers: {label!r} came after {self.labels[0]!r}")
        self.rows.append(rows)
        self.labels.extend(labels)

    def study(self) -> None:
        """Learn what was recorded since the last time."""
        labels = np.asarray(self.labels)
        seen = np.unique(labels)
        if len(seen) < 2 or self._learnt == len(labels):
            return
        classes = seen if self.classes is None else self.classes
        if not self.in_steps:
            self.model = clone(self.estimator).fit(stack(self.rows), labels)
        elif self._learnt < self.start or not np.isin(labels[self._learnt :], self.model.classes_).all():
            self.model = clone(self.estimator).partial_fit(stack(self.rows), labels, classes=classes)
        else:
            start, self._learnt = self._learnt, 0  # until this is done nobody knows what the model knows
            self.model.partial_fit(stack(self._rows_since(start)), labels[start:])
        self._learnt = len(labels)

    def _rows_since(self, start: int) -> list[Any]:
        """Return the samples after the first `start`; `study` always ends between two recordings."""
        newest, missing = len(self.rows), len(self.labels) - start
        while missing > 0:
            newest -= 1
            missing -= count_rows(self.rows[newest])
        return self.rows[newest:]


def count_rows(rows: Any) -> int:
    """Return how many samples there are."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def stack(parts: list[Any]) -> Any:
    """Return samples of any kind one after the other."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "iloc"):
        import pandas

        return pandas.concat(parts)
    return np.concatenate(parts)
