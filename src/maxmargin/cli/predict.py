"""`maxmargin predict`: predictions of a model for new samples, one line per sample.

LIBSVM text is processed in blocks, so that neither samples nor predictions need to fit into memory.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TextIO

import numpy as np

from maxmargin.cli import data
from maxmargin.cli.estimator_options import task_of
from maxmargin.cli.metrics import RunningMetrics
from maxmargin.cli.model_data import ModelInput, add_ranges_option
from maxmargin.cli.output import Output, add_output_options
from maxmargin.datasets.compression import atomic_target, create_bytes
from maxmargin.datasets.sample_files import format_by_name

#: Column separators of the output by format; other files have blanks, as those of LIBSVM.
SEPARATORS = {"csv": ",", "tsv": "\t"}

#: Coverage of the prediction intervals of a regression.
COVERAGE = 0.9


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    parser.add_argument("model", metavar="MODEL", help="model file of maxmargin, LIBSVM, LIBLINEAR or SVMlight")
    parser.add_argument("out", metavar="OUT", nargs="?", default="-", help="output file [standard output]")
    parser.add_argument(
        "--probability",
        action="store_true",
        help=f"add class probabilities, or the {COVERAGE:.0%}% prediction interval of a regression",
    )
    parser.add_argument("--decision-values", action="store_true", help="add decision values")
    parser.add_argument("--threads", type=int, metavar="N", help="number of threads [all cores]")
    parser.add_argument("--device", metavar="NAME", help="cpu, cuda, cuda:1 or auto [cpu]")
    add_ranges_option(parser)
    data.add_data_options(parser, one_hot=False)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    output = Output(options)
    given = ModelInput(options, output.remark)
    began = perf_counter()
    count, score = 0, RunningMetrics()
    classes, regression = getattr(given.model, "classes_", None), task_of(given.model) == "regression"
    to_file = options.out != "-"
    as_lines = to_file or not output.as_json
    separator = SEPARATORS.get(format_by_name(options.out) or "")
    kept: list[list[Any]] = []
    with _open_output(options.out) as file:
        for number, samples in enumerate(given.blocks()):
            predictor = Predictor(given.model, options.probability, options.decision_values, given.threshold)
            columns = predictor.columns(samples.X)
            count += len(columns[0])
            if samples.y is not None and (regression or (classes is not None and np.isin(samples.y, classes).any())):
                score.add(columns[0], samples.y)
            if as_lines:
                file.write(predictor.heading(separator) if number == 0 else "")
                file.write(lines(columns, separator or " "))
            else:
                kept.append([column.tolist() for column in columns])
    metrics = score_metrics(score, regression)
    facts = {"samples": f"{count:,}"}
    if "accuracy" in metrics:
        facts["accuracy"] = f"{metrics['accuracy']:.4%} ({score.correct:,} of {score.count:,})"
    else:
        facts |= {name.replace("_", " "): f"{value:.6g}" for name, value in metrics.items()}
    facts["seconds"] = f"{perf_counter() - began:.2f}"
    if to_file:
        output.facts(facts)
    else:
        output.remark(", ".join(f"{name} {value}" for name, value in facts.items()))
    result: dict[str, Any] = {"samples": count, **metrics, "out": options.out}
    if not as_lines:
        result["columns"] = {
            name: [value for block in kept for value in block[number]] for number, name in enumerate(predictor.names())
        }
    output.result(result)
    return 0


class Predictor:
    """The columns of the output: predictions, and optionally probabilities and decision values.

    With a threshold, the second of two classes is predicted from this decision value on.
    """

    def __init__(self, model: Any, probability: bool, decision_values: bool, threshold: float | None = None) -> None:
        self.model, self.probability, self.decision_values = model, probability, decision_values
        self.threshold = threshold
        self.classes: list[Any] = list(getattr(model, "classes_", []))
        if probability and not (hasattr(model, "predict_proba") or hasattr(model, "predict_interval")):
            raise ValueError("the model has no probabilities; train it with --probability")
        if decision_values and not hasattr(model, "decision_function"):
            raise ValueError("a regression has no decision values; its predictions are the values of the function")

    def columns(self, X: Any) -> list[Any]:
        """Return the predictions and the additional columns for samples."""
        more: list[Any] = []
        predicted = None
        if self.probability and hasattr(self.model, "predict_proba"):
            probabilities = np.asarray(self.model.predict_proba(X))
            more += list(probabilities.T)
            if self.classes:
                predicted = self.model.classes_[np.argmax(probabilities, axis=1)]
        elif self.probability:
            more += list(self.model.predict_interval(X, COVERAGE).T)
        if self.threshold is not None:
            predicted = self.model.classes_[(self.model.decision_function(X) >= self.threshold).astype(int)]
        if self.decision_values:
            values = np.asarray(self.model.decision_function(X))
            more += [values] if values.ndim == 1 else list(values.T)
        return [self.model.predict(X) if predicted is None else predicted, *more]

    def names(self) -> list[str]:
        """Return the names of the columns."""
        names = ["prediction"]
        labels = [data.label_name(label) for label in self.classes]
        if self.probability and hasattr(self.model, "predict_proba"):
            names += [f"probability {label}" for label in labels or ["1", "-1"]]
        elif self.probability:
            names += ["lower", "upper"]
        if self.decision_values:
            names += [f"decision {label}" for label in labels] if len(labels) > 2 else ["decision"]
        return names

    def heading(self, separator: str | None) -> str:
        """Return the first line: the names of the columns, or the labels as LIBSVM writes them; else nothing."""
        if separator is not None:
            return lines([np.array([name]) for name in self.names()], separator)
        if self.probability and self.classes:
            return "labels " + " ".join(map(data.label_name, self.classes)) + "\n"
        return ""


def score_metrics(score: RunningMetrics, regression: bool) -> dict[str, Any]:
    """Return the metrics of labelled samples by name; nothing without labels."""
    if not score.count:
        return {}
    if not regression:
        return {"accuracy": score.correct / score.count, "correct": score.correct}
    metrics = {"mean_squared_error": score.mean_squared_error}
    if score.squared_correlation >= 0:  # not NaN
        metrics["squared_correlation"] = score.squared_correlation
    return metrics


def lines(columns: Sequence[Any], separator: str) -> str:
    """Return one line of text per row: integers without a decimal point, other numbers with full precision."""
    rows = zip(*(_texts(column) for column in columns), strict=True)
    if separator == " ":
        return "".join(" ".join(cells) + "\n" for cells in rows)
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _texts(column: Any) -> list[str]:
    if column.dtype.kind == "f":
        if np.array_equal(column, np.rint(column)) and (np.abs(column) < 2**53).all():
            return [str(int(value)) for value in column.tolist()]
        return [repr(value) for value in column.tolist()]
    return [str(value) for value in column.tolist()]


@contextmanager
def _open_output(out: str) -> Iterator[TextIO]:
    """Open a file that is renamed to its name when it is complete, or standard output."""
    if out == "-":
        yield sys.stdout
        return
    with atomic_target(out) as path, create_bytes(path) as stream, io.TextIOWrapper(stream, encoding="utf-8") as file:
        yield file
