"""An estimator that is updated label by label: by ``partial_fit`` if it has one, otherwise by a new fit.

All labels are kept, because they are expensive. They are recorded before an update, so that an interruption loses none;
an estimator that was interrupted during ``partial_fit`` is replaced by one trained on all labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from maxmargin import _sparse as sparse
from maxmargin.machines.validation.parameters import check_choice


class IncrementalLearner:
    """An estimator and its labelled samples.

    Parameters
    ----------
    estimator : estimator
        Cloned, never modified.
    learning : {"auto", "partial_fit", "fit"}
        How it is updated; "auto" is ``partial_fit`` if the estimator has one.
    classes : array-like, optional
        All labels that may occur. Without them a new label restarts ``partial_fit``.
    start : int
        The number of labels in the first batch of ``partial_fit``, from which some estimators derive scales.
    """

    def __init__(self, estimator: Any, learning: str, classes: Any, start: int) -> None:
        check_choice("learning", learning, ("auto", "partial_fit", "fit"))
        has_partial_fit = hasattr(estimator, "partial_fit")
        if learning == "partial_fit" and not has_partial_fit:
            raise ValueError(f"{type(estimator).__name__} has no partial_fit; use learning='fit'")
        self.estimator = estimator
        self.uses_partial_fit = has_partial_fit if learning == "auto" else learning == "partial_fit"
        self.classes = None if classes is None else np.unique(classes)
        self.start = max(1, start)
        self.model: Any = None
        self.rows: list[Any] = []
        self.labels: list[Any] = []
        self._n_learned = 0  # labels in the model

    @property
    def ready(self) -> bool:
        """Whether there is a model, which requires labels of two classes."""
        return self.model is not None

    def record(self, rows: Any, labels: Any) -> None:
        """Keep samples with their labels, or raise if a label is invalid."""
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

    def update(self) -> None:
        """Update the model with the labels recorded since the last update."""
        labels = np.asarray(self.labels)
        seen = np.unique(labels)
        if len(seen) < 2 or self._n_learned == len(labels):
            return
        classes = seen if self.classes is None else self.classes
        if not self.uses_partial_fit:
            self.model = clone(self.estimator).fit(stack(self.rows), labels)
        elif self._n_learned < self.start or not np.isin(labels[self._n_learned :], self.model.classes_).all():
            self.model = clone(self.estimator).partial_fit(stack(self.rows), labels, classes=classes)
        else:
            start, self._n_learned = self._n_learned, 0  # the model is undefined until partial_fit returns
            self.model.partial_fit(stack(self._rows_since(start)), labels[start:])
        self._n_learned = len(labels)

    def _rows_since(self, start: int) -> list[Any]:
        """Return the samples after the first `start`; an update ends between two calls of `record`."""
        newest, missing = len(self.rows), len(self.labels) - start
        while missing > 0:
            newest -= 1
            missing -= count_rows(self.rows[newest])
        return self.rows[newest:]


def count_rows(rows: Any) -> int:
    """Return the number of samples."""
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def stack(parts: list[Any]) -> Any:
    """Return the concatenation of samples of any kind."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack(parts, format="csr")
    if hasattr(parts[0], "iloc"):
        import pandas

        return pandas.concat(parts)
    return np.concatenate(parts)
