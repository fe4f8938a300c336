"""How good predictions are: the measures of classification, regression, novelty detection and ranking.

Each function returns numbers by name, plain enough for JSON. A number that the data do not define (the area under the
ROC curve of a single class, say) is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def measure_classes(
    y: Any, predicted: Any, classes: Any, scores: Any = None, probabilities: Any = None
) -> dict[str, Any]:
    """Return the measures of a classifier.

    Parameters
    ----------
    y, predicted : arrays of labels
    classes : array of labels
        In the order of the columns of what follows.
    scores : array of shape (n_samples,) or (n_samples, n_classes), optional
        Decision values: the larger, the more it is the class; of two classes the second.
    probabilities : array of shape (n_samples, n_classes), optional
    """
    from sklearn import metrics

    labels = np.union1d(y, classes) if np.setdiff1d(y, classes).size else np.asarray(classes)
    precision, recall, f1, support = metrics.precision_recall_fscore_support(
        y, predicted, labels=labels, zero_division=0.0
    )
    there = support > 0
    found: dict[str, Any] = {
        "samples": len(y),
        "accuracy": float(np.mean(y == predicted)),
        "correct": int(np.sum(y == predicted)),
        "balanced_accuracy": float(recall[there].mean()),
        "macro_f1": float(f1[there].mean()),
        "classes": [
            {"label": label, "precision": p, "recall": r, "f1": f, "samples": n}
            for label, p, r, f, n in zip(
                labels.tolist(), precision.tolist(), recall.tolist(), f1.tolist(), support.tolist(), strict=True
            )
        ],
        "confusion": metrics.confusion_matrix(y, predicted, labels=labels).tolist(),
    }
    known = np.isin(y, classes)
    if scores is not None:
        areas = areas_under_roc(y[known], np.asarray(scores)[known], classes)
        if areas:
            found["roc_auc"] = float(np.mean(list(areas.values())))
    if probabilities is not None and known.any():
        column = np.searchsorted(classes, y[known])
        chosen = np.asarray(probabilities)[known, column]
        found["log_loss"] = float(-np.log(np.maximum(chosen, np.finfo(float).tiny)).mean())
        wanted = np.eye(len(classes))[column]
        found["brier_score"] = float(((np.asarray(probabilities)[known] - wanted) ** 2).sum(axis=1).mean())
    return found


def areas_under_roc(y: Any, scores: Any, classes: Any) -> dict[Any, float]:
    """Return the area under the ROC curve by class: of two classes the second's, of more each against the rest."""
    from sklearn.metrics import roc_auc_score

    found = {}
    for label, column in roc_columns(scores, classes):
        positive = y == label
        if positive.any() and not positive.all():
            found[label] = float(roc_auc_score(positive, column))
    return found


def roc_columns(scores: Any, classes: Any) -> list[tuple[Any, Any]]:
    """Return the classes that have a ROC curve, and the scores that it is drawn from."""
    if scores.ndim == 1:
        return [(classes[-1], scores)]
    return [(label, scores[:, number]) for number, label in enumerate(classes)]


def measure_targets(y: Any, predicted: Any) -> dict[str, Any]:
    """Return the measures of a regression."""
    errors = predicted - y
    found = {
        "samples": len(y),
        "mean_squared_error": float(np.mean(errors**2)),
        "root_mean_squared_error": float(np.sqrt(np.mean(errors**2))),
        "mean_absolute_error": float(np.mean(np.abs(errors))),
        "median_absolute_error": float(np.median(np.abs(errors))),
    }
    spread, of_predicted = float(np.var(y)), float(np.var(predicted))
    if spread > 0:
        found["r2"] = 1.0 - found["mean_squared_error"] / spread
    if spread > 0 and of_predicted > 0:
        found["correlation"] = float(np.corrcoef(y, predicted)[0, 1])
    return found


def measure_novelty(y: Any, predicted: Any, scores: Any) -> dict[str, Any]:
    """Return the measures of novelty detection; with labels of two kinds the larger one means an ordinary sample."""
    found: dict[str, Any] = {"samples": len(predicted), "accepted": float(np.mean(predicted > 0))}
    kinds = np.array([]) if y is None else np.unique(y)
    if len(kinds) != 2:
        return found
    ordinary = y == kinds[1]
    rates = {
        "accepted_ordinary": float(np.mean(predicted[ordinary] > 0)),
        "rejected_others": float(np.mean(predicted[~ordinary] < 0)),
    }
    return {
        **found,
        "accuracy": float(np.mean((predicted > 0) == ordinary)),
        **rates,
        "roc_auc": areas_under_roc(y, scores, kinds)[kinds[1]],
    }


def measure_ranking(y: Any, scores: Any, queries: Any) -> dict[str, Any]:
    """Return which part of the pairs within queries is in the right order; equal scores count half."""
    from maxmargin.models.concordance import concordance

    numbers = np.zeros(len(y), dtype=np.int64) if queries is None else np.unique(queries, return_inverse=True)[1]
    right, pairs = concordance(np.asarray(scores), np.asarray(y, dtype=np.float64), numbers, np.ones(len(y)))
    found = {"samples": len(y), "queries": int(numbers.max()) + 1, "pairs": int(pairs)}
    return {**found, "concordance": right / pairs} if pairs else found
