"""Metrics of classification, regression, novelty detection and ranking, by name, as values that JSON can hold.

Metrics that the data do not define, such as the area under the ROC curve of a single class, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


def classification_metrics(
    y: Any, predicted: Any, classes: Any, scores: Any = None, probabilities: Any = None
) -> dict[str, Any]:
    """Return the metrics of a classifier.

    Parameters
    ----------
    y, predicted : arrays of labels
    classes : array of labels
        In the order of the columns of `scores` and `probabilities`.
    scores : array of shape (n_samples,) or (n_samples, n_classes), optional
        Decision values; of two classes for the second one.
    probabilities : array of shape (n_samples, n_classes), optional
    """
    from sklearn import metrics

    labels = np.union1d(y, classes) if np.setdiff1d(y, classes).size else np.asarray(classes)
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        y, predicted, labels=labels, zero_division=0.0
    )
    present = support > 0
    result: dict[str, Any] = {
        "samples": len(y),
        "accuracy": float(np.mean(y == predicted)),
        "correct": int(np.sum(y == predicted)),
        "balanced_accuracy": float(recall[present].mean()),
        "macro_f1": float(f1[present].mean()),
        "classes": [
            {"label": label, "precision": p, "recall": r, "f1": f, "samples": n}
            for label, p, r, f, n in zip(
                labels.tolist(), precision.tolist(), recall.tolist(), f1.tolist(), support.tolist(), strict=True
            )
        ],
        "confusion_matrix": metrics.confusion_matrix(y, predicted, labels=labels).tolist(),
    }
    known = np.isin(y, classes)
    if scores is not None:
        areas = areas_under_roc(y[known], np.asarray(scores)[known], classes)
        if areas:
            result["roc_auc"] = float(np.mean(list(areas.values())))
    if probabilities is not None and known.any():
        column = np.searchsorted(classes, y[known])
        chosen = np.asarray(probabilities)[known, column]
        result["log_loss"] = float(-np.log(np.maximum(chosen, np.finfo(float).tiny)).mean())
        indicator = np.eye(len(classes))[column]
        result["brier_score"] = float(((np.asarray(probabilities)[known] - indicator) ** 2).sum(axis=1).mean())
    return result


def areas_under_roc(y: Any, scores: Any, classes: Any) -> dict[Any, float]:
    """Return the area under the ROC curve by class: of two classes for the second, of more one-vs-rest."""
    from sklearn.metrics import roc_auc_score

    areas = {}
    for label, column in roc_columns(scores, classes):
        positive = y == label
        if positive.any() and not positive.all():
            areas[label] = float(roc_auc_score(positive, column))
    return areas


def roc_columns(scores: Any, classes: Any) -> list[tuple[Any, Any]]:
    """Return the classes with a ROC curve, and their scores."""
    if scores.ndim == 1:
        return [(classes[-1], scores)]
    return [(label, scores[:, number]) for number, label in enumerate(classes)]


def regression_metrics(y: Any, predicted: Any) -> dict[str, Any]:
    """Return the metrics of a regression."""
    errors = predicted - y
    result = {
        "samples": len(y),
        "mean_squared_error": float(np.mean(errors**2)),
        "root_mean_squared_error": float(np.sqrt(np.mean(errors**2))),
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        "median_absolute_error": float(np.median(np.abs(errors))),
    }
    variance = float(np.var(y))
    if variance > 0:
        result["r2"] = 1.0 - result["mean_squared_error"] / variance
    if variance > 0 and np.var(predicted) > 0:
        result["correlation"] = float(np.corrcoef(y, predicted)[0, 1])
    return result


def novelty_metrics(y: Any, predicted: Any, scores: Any) -> dict[str, Any]:
    """Return the metrics of novelty detection; of two labels the larger one marks inliers."""
    result: dict[str, Any] = {"samples": len(predicted), "inlier_fraction": float(np.mean(predicted > 0))}
    labels = np.array([]) if y is None else np.unique(y)
    if len(labels) != 2:
        return result
    inlier = y == labels[1]
    return {
        **result,
        "accuracy": float(np.mean((predicted > 0) == inlier)),
        "inlier_recall": float(np.mean(predicted[inlier] > 0)),
        "outlier_recall": float(np.mean(predicted[~inlier] < 0)),
        "roc_auc": areas_under_roc(y, scores, labels)[labels[1]],
    }


def ranking_metrics(y: Any, scores: Any, queries: Any) -> dict[str, Any]:
    """Return the fraction of pairs within queries that are ranked correctly; equal scores count half."""
    from maxmargin.models.concordance import concordance

    numbers = np.zeros(len(y), dtype=np.int64) if queries is None else np.unique(queries, return_inverse=True)[1]
    concordant, pairs = concordance(np.asarray(scores), np.asarray(y, dtype=np.float64), numbers, np.ones(len(y)))
    result = {"samples": len(y), "queries": int(numbers.max()) + 1, "pairs": int(pairs)}
    return {**result, "concordance": concordant / pairs} if pairs else result


@dataclass
class RunningMetrics:
    """Accuracy and errors, accumulated over blocks of predictions.

    Attributes
    ----------
    count, correct : int
    squared_error : float
    """

    count: int = 0
    correct: int = 0
    squared_error: float = 0.0
    _sums: tuple[float, ...] = (0.0,) * 5

    def add(self, predicted: Any, targets: Any) -> None:
        """Add a block of predictions and targets."""
        self.count += len(targets)
        self.correct += int(np.sum(predicted == targets))
        if predicted.dtype.kind not in "biuf":
            return  # text labels
        self.squared_error += float(np.sum((predicted - targets) ** 2))
        more = (predicted.sum(), targets.sum(), predicted @ predicted, targets @ targets, predicted @ targets)
        self._sums = tuple(float(old + new) for old, new in zip(self._sums, more, strict=True))

    @property
    def accuracy(self) -> float:
        """Percentage of correct labels."""
        return 100.0 * self.correct / self.count if self.count else float("nan")

    @property
    def mean_squared_error(self) -> float:
        """Mean squared error."""
        return self.squared_error / self.count if self.count else float("nan")

    @property
    def squared_correlation(self) -> float:
        """Square of Pearson's correlation; NaN if predictions or targets are constant."""
        p, t, pp, tt, pt = self._sums
        n = self.count
        variances = (n * pp - p * p) * (n * tt - t * t)
        return (n * pt - p * t) ** 2 / variances if variances else float("nan")

    def lines(self, regression: bool, prefix: str = "", suffixes: tuple[str, str] = ("", "")) -> list[str]:
        """Return the lines that LIBSVM and LIBLINEAR print, with suffixes for classification and regression."""
        if regression:
            return [
                f"{prefix}Mean squared error = {self.mean_squared_error:g}{suffixes[1]}",
                f"{prefix}Squared correlation coefficient = {self.squared_correlation:g}{suffixes[1]}",
            ]
        return [f"{prefix}Accuracy = {self.accuracy:g}%{suffixes[0]}"]
