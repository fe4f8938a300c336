"""`maxmargin predict`: what a model says of new samples, a line for each.

LIBSVM text is read and answered block by block, so that neither the samples nor the answers need fit into memory.
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
from maxmargin.cli.model_data import GivenModel, add_ranges_option
from maxmargin.cli.output import Output, add_output_options
from maxmargin.datasets.compression import create_bytes
from maxmargin.datasets.sample_files import atomic_target, format_by_name

#: What stands between the columns of an answer, by the suffix of its file; a blank elsewhere, as LIBSVM has it.
SEPARATORS = {"csv": ",", "tsv": "\t"}

#: The probability that the interval of a regression is for.
COVERAGE = 0.9


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("data", metavar="DATA", help=data.DATA_HELP)
    parser.add_argument("model", metavar="MODEL", help="a model of train, LIBSVM, LIBLINEAR or SVMlight")
    parser.add_argument("out", metavar="OUT", nargs="?", default="-", help="where the answers go [standard output]")
    parser.add_argument(
        "--probability",
        action="store_true",
        help=f"probabilities of the classes as well, or the interval of {COVERAGE:.0%}% of a regression",
    )
    parser.add_argument("--decision-values", action="store_true", help="decision values as well")
    parser.add_argument("--threads", type=int, metavar="N", help="[all cores]")
    add_ranges_option(parser)
    data.add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Read, predict, write, tell."""
    output = Output(options)
    given = GivenModel(options, output.remark)
    began = perf_counter()
    tally = Tally(given.model)
    to_file = options.out != "-"
    as_lines = to_file or not output.as_json
    separator = SEPARATORS.get(format_by_name(options.out) or "")
    kept: list[list[Any]] = []
    with _opened(options.out) as file:
        for number, samples in enumerate(given.blocks()):
            answers = Answers(given.model, options.probability, options.decision_values)
            columns = answers.columns(samples.X)
            tally.add(samples.y, columns[0])
            if as_lines:
                file.write(answers.heading(separator) if number == 0 else "")
                file.write(lines(columns, separator or " "))
            else:
                kept.append([column.tolist() for column in columns])
    facts = {"samples": f"{tally.samples:,}", **tally.facts(), "seconds": f"{perf_counter() - began:.2f}"}
    if to_file:
        output.facts(facts)
    else:
        output.remark(", ".join(f"{name} {value}" for name, value in facts.items()))
    result: dict[str, Any] = {"samples": tally.samples, **tally.measures(), "out": options.out}
    if not as_lines:
        result["columns"] = {
            name: [value for block in kept for value in block[number]] for number, name in enumerate(answers.names())
        }
    output.result(result)
    return 0


class Answers:
    """What is asked of a model: labels or values, and more columns beside them."""

    def __init__(self, model: Any, probability: bool, decision_values: bool) -> None:
        self.model, self.probability, self.decision_values = model, probability, decision_values
        self.classes: list[Any] = list(getattr(model, "classes_", []))
        if probability and not (hasattr(model, "predict_proba") or hasattr(model, "predict_interval")):
            raise ValueError("the model knows no probabilities; train it with --probability")
        if decision_values and not hasattr(model, "decision_function"):
            raise ValueError("a regression has no decision values: its predictions are the values of the function")

    def columns(self, X: Any) -> list[Any]:
        """Return predictions, and what else is wanted, as columns."""
        beside: list[Any] = []
        predicted = None
        if self.probability and hasattr(self.model, "predict_proba"):
            probabilities = np.asarray(self.model.predict_proba(X))
            beside += list(probabilities.T)
            if self.classes:  # the most probable class is what such a model predicts
                predicted = self.model.classes_[np.argmax(probabilities, axis=1)]
        elif self.probability:
            beside += list(self.model.predict_interval(X, COVERAGE).T)
        if self.decision_values:
            values = np.asarray(self.model.decision_function(X))
            beside += [values] if values.ndim == 1 else list(values.T)
        return [self.model.predict(X) if predicted is None else predicted, *beside]

    def names(self) -> list[str]:
        """Return what the columns are called."""
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
        """Return the first line: names of columns, or as in LIBSVM the order of the classes, if there is one."""
        if separator is not None:
            return lines([np.array([name]) for name in self.names()], separator)
        if self.probability and self.classes:
            return "labels " + " ".join(map(data.label_name, self.classes)) + "\n"
        return ""


class Tally:
    """Counts how often a model was right, or how far off; of no more samples than are there at a time."""

    def __init__(self, model: Any) -> None:
        from sklearn.base import is_regressor

        self.classes = getattr(model, "classes_", None)
        self.regression = is_regressor(model)
        self.samples = self.labelled = self.correct = 0
        self.sums = np.zeros(6)  # of squared errors, y, y², p, p², y p

    def add(self, y: Any, predicted: Any) -> None:
        """Count some more; y may be None."""
        self.samples += len(predicted)
        if y is None:
            return
        if self.classes is not None and np.isin(y, self.classes).any():
            self.labelled += len(y)
            self.correct += int(np.sum(y == predicted))
        elif self.regression:
            self.labelled += len(y)
            self.sums += [
                np.sum((y - predicted) ** 2),
                *(np.sum(v) for v in (y, y * y, predicted, predicted**2, y * predicted)),
            ]

    def measures(self) -> dict[str, Any]:
        """Return what is known of the predictions, if there were labels."""
        if not self.labelled:
            return {}
        if not self.regression:
            return {"accuracy": self.correct / self.labelled, "correct": self.correct}
        error, of_y, of_yy, of_p, of_pp, of_yp = self.sums / self.labelled
        variances = (of_yy - of_y**2) * (of_pp - of_p**2)
        found = {"mean_squared_error": error}
        return {**found, "squared_correlation": (of_yp - of_y * of_p) ** 2 / variances} if variances > 0 else found

    def facts(self) -> dict[str, str]:
        """Return the same in words."""
        found = self.measures()
        if "accuracy" in found:
            return {"accuracy": f"{found['accuracy']:.4%} ({self.correct:,} of {self.labelled:,})"}
        return {name.replace("_", " "): f"{value:.6g}" for name, value in found.items()}


def lines(columns: Sequence[Any], separator: str) -> str:
    """Return a line of text for each entry of the columns: whole numbers without a point, others to the last bit."""
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
def _opened(out: str) -> Iterator[TextIO]:
    """Open a file that takes its place when it is complete, or standard output."""
    if out == "-":
        yield sys.stdout
        return
    with atomic_target(out) as path, create_bytes(path) as stream, io.TextIOWrapper(stream, encoding="utf-8") as file:
        yield file
