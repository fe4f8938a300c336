"""`maxmargin evaluate`: metrics of a model on labelled data, or of an estimator by cross-validation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.cli import data, metrics, training_progress
from maxmargin.cli.estimator_options import add_estimator_options, make_estimator, task_of
from maxmargin.cli.model_data import ModelInput, add_ranges_option
from maxmargin.cli.output import Output, add_output_options, check_folder
from maxmargin.cli.prepared_data import add_table_options, read_prepared
from maxmargin.storage.output_files import atomic_path

if TYPE_CHECKING:
    from maxmargin.datasets import Samples

#: Exit code if a limit ended the training.
LIMITED = 3

#: Limit on the classes of a complete confusion matrix; of more classes the most frequent confusions are listed.
MAX_CONFUSION_CLASSES, LISTED_CONFUSIONS = 12, 12

#: Metrics that are printed as percentages, and those that are printed as tables.
PERCENTAGES = ("accuracy", "balanced_accuracy", "inlier_fraction", "inlier_recall", "outlier_recall")
TABLES = ("classes", "confusion_matrix")

#: Printed names of metrics, where they differ from their keys.
TITLES = {"roc_auc": "area under ROC curve", "r2": "R²", "macro_f1": "macro F1", "brier_score": "Brier score"}


class Predictions(NamedTuple):
    """Predictions for samples, with scores and probabilities where the model has them."""

    predicted: Any
    scores: Any = None
    probabilities: Any = None
    classes: Any = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help="model file of maxmargin, LIBSVM, LIBLINEAR or SVMlight"
    )
    parser.add_argument(
        "--folds", type=int, metavar="K", help="K-fold cross-validation of an estimator, instead of a MODEL"
    )
    parser.add_argument("--roc", type=Path, metavar="FILE", help="plot ROC curves: .png, .svg or .pdf")
    add_estimator_options(parser)
    add_ranges_option(parser)
    add_table_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    output = Output(options)
    if (options.model is None) == (options.folds is None):
        raise ValueError("give either a MODEL, or --folds K for the cross-validation of an estimator")
    if options.roc is not None:
        check_folder(options.roc)
    limited = False
    if options.model is not None:
        given = ModelInput(options, output.remark)
        samples = given.samples()
        model = given.model
        with training_progress.spinner(output.errors, "predicting", not output.quiet):
            predictions = predict(model, samples.X, given.threshold)
    else:
        if options.ranges is not None:
            raise ValueError("--ranges is for a MODEL; scale data for cross-validation with maxmargin scale")
        samples = read_prepared(options, output).samples
        model = make_estimator(options, samples, output.remark)
        predictions, limited = cross_validate(model, samples, options, output)
    values = compute_metrics(task_of(model), samples, predictions)
    report(output, values)
    if options.roc is not None:
        draw_roc(options.roc, samples.y, predictions)
    status = "limited" if limited else "finished"
    output.result({"data": samples.name, "model": options.model, "folds": options.folds, "status": status, **values})
    return LIMITED if limited else 0


def predict(model: Any, X: Any, threshold: float | None = None) -> Predictions:
    """Return predictions, scores and probabilities of a fitted model, of two classes with a threshold of the scores."""
    task = task_of(model)
    if task == "regression":
        return Predictions(model.predict(X))
    scores: Any = np.asarray(model.decision_function(X))
    if task == "ranking":
        return Predictions(scores, scores)
    if task == "novelty":
        return Predictions(np.where(scores >= 0, 1, -1), scores)
    classes = model.classes_
    if scores.ndim == 2 and scores.shape[1] != len(classes):  # one-vs-one values, which are not scores of classes
        scores = None
    probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    if threshold is not None:
        predicted = classes[(scores >= threshold).astype(int)]
    else:
        predicted = model.predict(X) if probabilities is None else classes[np.argmax(probabilities, axis=1)]
    return Predictions(predicted, scores, probabilities, classes)


def cross_validate(
    model: Any, samples: Samples, options: argparse.Namespace, output: Output
) -> tuple[Predictions, bool]:
    """Return predictions for all samples by models trained without their fold, and whether a limit ended a fit."""
    from sklearn.base import clone

    parts, limited = [], False
    for number, (train, test) in enumerate(_folds(task_of(model), samples, options), 1):
        fold_model = clone(model)
        title = f"fold {number}/{options.folds}"
        outcome = training_progress.train(fold_model, samples.take(train), output, options.max_seconds, title)
        if outcome.interrupted:
            raise KeyboardInterrupt
        limited |= outcome.limited
        for text in [outcome.unconverged, *outcome.remarks]:
            if text is not None:
                output.remark(f"{title}: {text}")
        parts.append((test, predict(fold_model, samples.X[test])))
    order = np.argsort(np.concatenate([test for test, _ in parts]))
    classes: Any = None if samples.y is None else np.unique(samples.y)
    complete = all(part.classes is None or np.array_equal(part.classes, classes) for _, part in parts)

    def joined(name: str) -> Any:
        values = [getattr(part, name) for _, part in parts]
        return None if values[0] is None else np.concatenate(values)[order]

    predictions = Predictions(joined("predicted"), None, None, None if parts[0][1].classes is None else classes)
    if complete:  # a model trained without a class has no column for it
        predictions = predictions._replace(scores=joined("scores"), probabilities=joined("probabilities"))
    return predictions, limited


def _folds(task: str, samples: Samples, options: argparse.Namespace) -> list[tuple[Any, Any]]:
    """Return training and test rows of each fold: stratified by class, or grouped by query."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    rows, seed, folds = np.arange(len(samples)), options.seed or 0, options.folds
    if not 2 <= folds <= len(samples):
        raise ValueError(f"--folds must be between 2 and the number of samples, {len(samples)}, not {folds}")
    if task == "classification":
        if samples.y is None:
            raise ValueError(f"{samples.name} has no labels")
        _, counts = np.unique(samples.y, return_counts=True)
        least = counts.min()
        if least < folds:
            fewer = "" if least == 1 else f"use --folds {least} or fewer, or "
            size = "1 sample" if least == 1 else f"{least} samples"
            raise ValueError(f"a class has only {size}, but each of {folds} folds needs one: {fewer}remove that class")
        return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(rows, samples.y))
    if task == "ranking" and samples.query is not None:
        return list(GroupKFold(folds, shuffle=True, random_state=seed).split(rows, groups=samples.query))
    return list(KFold(folds, shuffle=True, random_state=seed).split(rows))


def compute_metrics(task: str, samples: Samples, predictions: Predictions) -> dict[str, Any]:
    """Return the metrics of a task."""
    if task == "novelty":
        return metrics.novelty_metrics(samples.y, predictions.predicted, predictions.scores)
    if samples.y is None:
        raise ValueError(f"{samples.name} has no labels to compare with")
    if task == "regression":
        return metrics.regression_metrics(samples.y, predictions.predicted)
    if task == "ranking":
        return metrics.ranking_metrics(samples.y, predictions.scores, samples.query)
    if samples.y.dtype.kind == "f" and not np.array_equal(samples.y, np.rint(samples.y)):
        raise ValueError(f"the labels of {samples.name} are fractional numbers, and the model predicts classes")
    return metrics.classification_metrics(
        samples.y, predictions.predicted, predictions.classes, predictions.scores, predictions.probabilities
    )


def report(output: Output, values: dict[str, Any]) -> None:
    """Print the metrics, then the table of classes and the confusion matrix."""
    facts = {}
    for name, value in values.items():
        if name in TABLES:
            continue
        number = f"{value:.4%}" if name in PERCENTAGES else f"{value:.6g}"
        facts[TITLES.get(name, name.replace("_", " "))] = f"{value:,}" if isinstance(value, int) else number
    output.facts(facts)
    if "classes" not in values:
        return
    classes = values["classes"]
    output.line("")
    output.table(
        ["class", "precision", "recall", "F1", "samples"],
        [
            [
                data.label_name(one["label"]),
                *(f"{one[name]:.4f}" for name in ("precision", "recall", "f1")),
                one["samples"],
            ]
            for one in classes
        ],
    )
    output.line("")
    names, confusion = [data.label_name(one["label"]) for one in classes], np.array(values["confusion_matrix"])
    if len(names) <= MAX_CONFUSION_CLASSES:
        rows = [[name, *map(str, line)] for name, line in zip(names, confusion.tolist(), strict=True)]
        output.table(["true \\ predicted", *names], rows)
        return
    np.fill_diagonal(confusion, 0)
    largest = [divmod(int(place), len(names)) for place in np.argsort(-confusion, axis=None)[:LISTED_CONFUSIONS]]
    rows = [[names[i], names[j], str(confusion[i, j])] for i, j in largest if confusion[i, j]]
    output.table(["true", "predicted", "samples"], rows)


def draw_roc(target: Path, y: Any, predictions: Predictions) -> None:
    """Plot ROC curves, one-vs-rest for more than two classes."""
    from sklearn.metrics import roc_curve

    from maxmargin.plotting.style import colour, pyplot

    classes = np.unique(y) if predictions.classes is None and y is not None else predictions.classes
    if predictions.scores is None or classes is None or len(classes) < 2:
        raise ValueError("a ROC curve needs labels of at least two classes, and decision values of classes")
    pyplot()  # raises if matplotlib is not installed
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    axes = figure.subplots()
    areas = metrics.areas_under_roc(y, predictions.scores, classes)
    for number, (label, scores) in enumerate(metrics.roc_columns(predictions.scores, classes)):
        if label in areas:
            false_positives, true_positives, _ = roc_curve(y == label, scores)
            text = f"{data.label_name(label)}: AUC {areas[label]:.4f}"
            axes.plot(false_positives, true_positives, color=colour(number), label=text)
    axes.plot([0, 1], [0, 1], color="0.7", linestyle=":", linewidth=1)
    axes.set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal", xlim=(0, 1), ylim=(0, 1.01))
    axes.legend(loc="lower right", frameon=False, fontsize="small")
    with atomic_path(target) as path:
        figure.savefig(path, dpi=120)
