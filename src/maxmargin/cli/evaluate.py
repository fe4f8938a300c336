"""`maxmargin evaluate`: how good a model is on labelled samples, or a machine on samples held out, in turn."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin.cli import data, measures
from maxmargin.cli.machine_options import add_machine_options, choose_machine, make_machine, purpose_of
from maxmargin.cli.model_data import GivenModel, add_ranges_option
from maxmargin.cli.output import Output, add_output_options
from maxmargin.cli.training_run import spinner, train_watched

if TYPE_CHECKING:
    from maxmargin.datasets import Samples

#: Exit code where a limit has ended the training.
LIMITED = 3

#: Up to so many classes the whole table of confusions is shown, of more the most frequent ones.
SHOWN_CLASSES, SHOWN_CONFUSIONS = 12, 12

#: Measures that are parts of a whole, and lists that have their own tables.
PARTS = ("accuracy", "balanced_accuracy", "accepted", "accepted_ordinary", "rejected_others")
TABLES = ("classes", "confusion")

#: What measures are called where their names are not words.
WORDS = {"roc_auc": "area under ROC curve", "r2": "R²", "macro_f1": "macro F1", "brier_score": "Brier score"}


class Predictions(NamedTuple):
    """What was predicted of some samples."""

    predicted: Any
    scores: Any = None
    probabilities: Any = None
    classes: Any = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    parser.add_argument("model", metavar="MODEL", nargs="?", help="a model of train, LIBSVM, LIBLINEAR or SVMlight")
    parser.add_argument(
        "--folds", type=int, metavar="K", help="without MODEL: cut DATA into K parts, train on all but one in turn"
    )
    parser.add_argument("--roc", type=Path, metavar="FILE", help="draw ROC curves: .png, .svg or .pdf")
    add_machine_options(parser)
    add_ranges_option(parser)
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Predict, measure, tell."""
    output = Output(options)
    if (options.model is None) == (options.folds is None):
        raise ValueError("give a MODEL, or --folds K for cross-validation without one")
    if options.roc is not None and not options.roc.absolute().parent.is_dir():
        raise ValueError(f"{options.roc} cannot be written: there is no folder {options.roc.parent}")
    limited = False
    if options.model is not None:
        given = GivenModel(options, output.remark)
        samples = given.samples()
        model = given.model
        with spinner(output.errors, "predicting", not output.quiet):
            found = predict(model, samples.X)
    else:
        if options.ranges is not None:
            raise ValueError("--ranges belongs to a MODEL; scale data for cross-validation with maxmargin scale")
        samples = data.read_data(options)
        name, why = choose_machine(options, samples.y)
        if why is not None:
            output.remark(why)
        model = make_machine(name, options, samples.y)
        found, limited = cross_validate(model, samples, options, output)
    numbers = measure(purpose_of(model), samples, found)
    tell(output, numbers)
    if options.roc is not None:
        draw_roc(options.roc, samples.y, found)
    status = "limited" if limited else "finished"
    output.result({"data": samples.name, "model": options.model, "folds": options.folds, "status": status, **numbers})
    return LIMITED if limited else 0


def predict(model: Any, X: Any) -> Predictions:
    """Return everything that a fitted model says of samples."""
    purpose = purpose_of(model)
    if purpose == "regression":
        return Predictions(model.predict(X))
    scores: Any = np.asarray(model.decision_function(X))
    if purpose == "ranking":
        return Predictions(scores, scores)
    if purpose == "novelty":
        return Predictions(np.where(scores >= 0, 1, -1), scores)
    classes = model.classes_
    if scores.ndim == 2 and scores.shape[1] != len(classes):  # values of pairs, which rank no class
        scores = None
    probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    predicted = model.predict(X) if probabilities is None else classes[np.argmax(probabilities, axis=1)]
    return Predictions(predicted, scores, probabilities, classes)


def cross_validate(
    model: Any, samples: Samples, options: argparse.Namespace, output: Output
) -> tuple[Predictions, bool]:
    """Return what machines say of samples they were not trained on, each part in turn; and if a limit ended any."""
    from sklearn.base import clone

    parts, limited = [], False
    for number, (train, test) in enumerate(_folds(purpose_of(model), samples, options), 1):
        one = clone(model)
        what = f"fold {number}/{options.folds}"
        ending = train_watched(one, samples.take(train), output, options.max_seconds, what)
        if ending.interrupted:
            raise KeyboardInterrupt
        limited |= ending.limited
        for text in [ending.unfinished, *ending.remarks]:
            if text is not None:
                output.remark(f"{what}: {text}")
        parts.append((test, predict(one, samples.X[test])))
    order = np.argsort(np.concatenate([test for test, _ in parts]))
    classes: Any = None if samples.y is None else np.unique(samples.y)
    whole = all(found.classes is None or np.array_equal(found.classes, classes) for _, found in parts)

    def together(name: str) -> Any:
        values = [getattr(found, name) for _, found in parts]
        return None if values[0] is None else np.concatenate(values)[order]

    found = Predictions(together("predicted"), None, None, None if parts[0][1].classes is None else classes)
    if whole:  # a machine that has not seen a class has no column for it
        found = found._replace(scores=together("scores"), probabilities=together("probabilities"))
    return found, limited


def _folds(purpose: str, samples: Samples, options: argparse.Namespace) -> list[tuple[Any, Any]]:
    """Return the rows to train on and those to measure on, of each fold; classes are in all, queries stay whole."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    rows, seed, folds = np.arange(len(samples)), options.seed or 0, options.folds
    if not 2 <= folds <= len(samples):
        raise ValueError(f"--folds must be between 2 and the number of samples, {len(samples)}, not {folds}")
    if purpose == "classification":
        if samples.y is None:
            raise ValueError(f"{samples.name} has no labels")
        _, counts = np.unique(samples.y, return_counts=True)
        if counts.min() < folds:
            if counts.min() == 1:
                raise ValueError(
                    f"a class has only 1 sample, and each of {folds} parts needs one: leave that class out"
                )
            raise ValueError(
                f"a class has only {counts.min()} samples, and each of {folds} parts needs one: "
                f"use --folds {counts.min()} or fewer, or leave that class out"
            )
        return list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(rows, samples.y))
    if purpose == "ranking" and samples.query is not None:
        return list(GroupKFold(folds, shuffle=True, random_state=seed).split(rows, groups=samples.query))
    return list(KFold(folds, shuffle=True, random_state=seed).split(rows))


def measure(purpose: str, samples: Samples, found: Predictions) -> dict[str, Any]:
    """Return the measures of a purpose."""
    if purpose == "novelty":
        return measures.measure_novelty(samples.y, found.predicted, found.scores)
    if samples.y is None:
        raise ValueError(f"{samples.name} has no labels to compare with")
    if purpose == "regression":
        return measures.measure_targets(samples.y, found.predicted)
    if purpose == "ranking":
        return measures.measure_ranking(samples.y, found.scores, samples.query)
    if samples.y.dtype.kind == "f" and not np.array_equal(samples.y, np.rint(samples.y)):
        raise ValueError(f"the labels of {samples.name} are numbers with fractions, and the model answers with classes")
    return measures.measure_classes(samples.y, found.predicted, found.classes, found.scores, found.probabilities)


def tell(output: Output, numbers: dict[str, Any]) -> None:
    """Print measures: numbers first, then classes and confusions."""
    facts = {}
    for name, value in numbers.items():
        if name in TABLES:
            continue
        words = WORDS.get(name, name.replace("_", " "))
        facts[words] = f"{value:,}" if isinstance(value, int) else f"{value:.4%}" if name in PARTS else f"{value:.6g}"
    output.facts(facts)
    if "classes" not in numbers:
        return
    classes = numbers["classes"]
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
    names, confusion = [data.label_name(one["label"]) for one in classes], np.array(numbers["confusion"])
    if len(names) <= SHOWN_CLASSES:
        rows = [[name, *map(str, line)] for name, line in zip(names, confusion.tolist(), strict=True)]
        output.table(["true \\ predicted", *names], rows)
        return
    np.fill_diagonal(confusion, 0)
    largest = [divmod(int(place), len(names)) for place in np.argsort(-confusion, axis=None)[:SHOWN_CONFUSIONS]]
    rows = [[names[i], names[j], str(confusion[i, j])] for i, j in largest if confusion[i, j]]
    output.table(["true", "predicted", "samples"], rows)


def draw_roc(target: Path, y: Any, found: Predictions) -> None:
    """Draw how many of a class are found against how many others are taken for it, over all thresholds."""
    from sklearn.metrics import roc_curve

    from maxmargin.plotting.style import colour, pyplot

    classes = np.unique(y) if found.classes is None and y is not None else found.classes
    if found.scores is None or classes is None or len(classes) < 2:
        raise ValueError("there is no ROC curve to draw: it takes labels of two kinds or more, and decision values")
    pyplot()  # an error with advice if there is no matplotlib
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 5.2), layout="constrained")
    axes = figure.subplots()
    areas = measures.areas_under_roc(y, found.scores, classes)
    for number, (label, scores) in enumerate(measures.roc_columns(found.scores, classes)):
        if label in areas:
            false_positives, true_positives, _ = roc_curve(y == label, scores)
            text = f"{data.label_name(label)}: area {areas[label]:.4f}"
            axes.plot(false_positives, true_positives, color=colour(number), label=text)
    axes.plot([0, 1], [0, 1], color="0.7", linestyle=":", linewidth=1)
    axes.set(
        xlabel="others taken for the class", ylabel="found of the class", aspect="equal", xlim=(0, 1), ylim=(0, 1.01)
    )
    axes.legend(loc="lower right", frameon=False, fontsize="small")
    figure.savefig(target, dpi=120)
