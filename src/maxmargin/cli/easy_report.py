"""The self-contained HTML report of `maxmargin easy`: decisions, test, diagnostics, searches and certificate."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin.cli import data
from maxmargin.cli.model_report import to_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from maxmargin.cli.prepared_data import PreparedData
    from maxmargin.search import ModelChoice
    from maxmargin.search.diagnostics import Diagnostics

#: Limit on the classes of a confusion matrix.
MAX_CONFUSION_CLASSES = 12

#: The first columns of the samples that are hardest to predict.
MAX_LISTED_COLUMNS = 8

#: Difference of mean probability and frequency from which on it is mentioned.
MAX_CALIBRATION_ERROR = 0.05

#: The test metrics that are printed, and their printed names.
PRINTED_METRICS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro F1",
    "roc_auc": "area under ROC curve",
    "r2": "R²",
    "root_mean_squared_error": "root mean squared error",
    "mean_absolute_error": "mean absolute error",
    "correlation": "correlation",
}

#: Headings of the searches.
TITLES = {
    "linear": "Grid search: linear model",
    "kernel": "Grid search: Gaussian kernel",
    "nu": "Search: tube chosen by nu",
    "least squares": "Grid search: squared loss",
    "confirmation": "Best points on more samples",
}


@dataclass
class EasyRun:
    """State and results of the command, for its report.

    Attributes
    ----------
    name : str
        Name of the training data.
    choice : ModelChoice
    decisions : list of str
        Properties of the data and decisions, in sentences.
    prepared : PreparedData
        The training data with their preparation.
    model : estimator
        Fitted.
    facts : dict
        Description of the model and its certificate.
    metrics : dict
        Of the test; empty without one.
    tested_on : str
    seconds : dict of str to float
    files : dict of str to Path
    reading_options : list of str
        Options that are also needed to read new data.
    threshold : float or None
        Decision value from which on the second of two classes is predicted.
    diagnostics : Diagnostics or None
        What held-out samples say.
    limited : bool
        Whether the time limit was reached before the tolerance.
    """

    name: str
    choice: ModelChoice
    decisions: list[str]
    prepared: PreparedData
    model: Any = None
    facts: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    tested_on: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    reading_options: list[str] = field(default_factory=list)
    threshold: float | None = None
    diagnostics: Diagnostics | None = None
    limited: bool = False
    interrupted: bool = False


def page(work: EasyRun) -> str:
    """Return the report as HTML."""
    from maxmargin.comparison.report import html_document, html_terms

    decisions = "".join(f"<li>{escape(sentence)}</li>" for sentence in work.decisions)
    files = {name: path.name for name, path in work.files.items() if name != "report"}
    body = f"""
{html_terms({**summary(work), **files})}
<h2>Decisions</h2>
<ol>{decisions}</ol>
{_columns(work)}
{_test(work)}
{_diagnostics(work)}
{_searches(work)}
<h2>Certificate</h2>
<p>Training solves a convex optimisation problem. The primal and dual objectives are upper and lower bounds on its
optimal value, computed from the data and the model in double precision, independently of the solver. The duality gap
bounds the suboptimality of the model.</p>
{html_terms(to_text(work.facts))}
<h2>Usage</h2>
<pre>{escape(usage(work))}</pre>"""
    return html_document(f"{work.name}: {type(work.model).__name__}", body)


def _test(work: EasyRun) -> str:
    """Return the metrics by class and the confusion matrix of the test."""
    from maxmargin.comparison.report import html_table

    if not work.metrics:
        return (
            "<p>There are no test data. The cross-validation score is the best of many points, and therefore "
            "optimistic.</p>"
        )
    if "classes" not in work.metrics:
        return ""
    classes = work.metrics["classes"]
    names = [data.label_name(one["label"]) for one in classes]
    rows = [
        [name, *(f"{one[key]:.3f}" for key in ("precision", "recall", "f1")), f"{one['samples']:,}"]
        for name, one in zip(names, classes, strict=True)
    ]
    html = f"<h2>Test: {escape(work.tested_on)}</h2>" + html_table(
        ["class", "precision", "recall", "F1", "samples"], rows
    )
    if len(names) <= MAX_CONFUSION_CLASSES:
        confusion = [
            [name, *(f"{count:,}" for count in row)]
            for name, row in zip(names, work.metrics["confusion_matrix"], strict=True)
        ]
        html += "<h2>Confusion matrix</h2>" + html_table(["true \\ predicted", *names], confusion)
    return html


def _searches(work: EasyRun) -> str:
    """Return the heat maps of the searches, and the table of the confirmation."""
    from maxmargin.comparison.report import html_table
    from maxmargin.plotting import ScoreGridDisplay
    from maxmargin.plotting.style import figure_to_svg, pyplot

    parts = []
    for name, search in work.choice.searches.items():
        if not search.scores or name == "confirmation":
            continue
        figure = ScoreGridDisplay.from_search(search).figure_
        parts.append(f"<h2>{TITLES[name]}</h2>{figure_to_svg(figure)}")
        pyplot().close(figure)
    if "confirmation" in work.choice.searches:
        search = work.choice.searches["confirmation"]
        rows = [[str(score.point), f"{score.mean:.5f}", f"{score.std:.5f}"] for score in search.scores]
        parts.append(f"<h2>{TITLES['confirmation']}</h2>" + html_table(["", search.scoring, "std"], rows))
    return "\n".join(parts)


def _columns(work: EasyRun) -> str:
    """Return what became of the columns of a table."""
    from maxmargin.comparison.report import html_table

    plan = work.prepared.plan
    if plan is None:
        return ""
    rows = [[column.name, column.type, column.reason, column.treatment] for column in plan.columns]
    return "<h2>Columns</h2>" + html_table(["column", "type", "found", "treatment"], rows).replace(
        '<div class="wide">', '<div class="wide text">'
    )


def findings(work: EasyRun) -> list[str]:
    """Return what held-out samples say, in sentences."""
    found = work.diagnostics
    if found is None:
        return []
    sentences = [] if found.learning is None else [found.more_data]
    if found.importance is not None:
        means, names = found.importance[0], column_names(work)
        best = [f"{names[place]} ({means[place]:.3g})" for place in np.argsort(-means)[:5] if means[place] > 0]
        if best:
            scoring = found.scoring.replace("_", " ")
            sentences.append(f"columns that matter most, by the loss in {scoring} when permuted: {', '.join(best)}")
    for machine, (coverage, width) in found.intervals.items():
        sentences.append(
            f"90 % prediction intervals of {machine} hold {coverage:.1%} of held-out targets, mean width {width:.4g}"
        )
    if found.calibration is not None:
        sentences.append(f"held-out Brier score of the probabilities: {found.calibration[2]:.4f}")
        predicted, observed = (float(np.mean(values)) for values in found.calibration[:2])
        if abs(predicted - observed) > MAX_CALIBRATION_ERROR:
            why = ", because the classes are weighted" if work.model.class_weight is not None else ""
            sentences.append(
                f"the probabilities are no frequencies{why}: on average {predicted:.2f} instead of {observed:.2f}"
            )
    return [*sentences, *found.skipped]


def column_names(work: EasyRun) -> list[str]:
    """Return the names of the columns whose importance is computed."""
    if work.prepared.plan is not None:
        return [column.name for column in work.prepared.plan.features]
    return list(work.prepared.samples.column_names())


def _diagnostics(work: EasyRun) -> str:
    """Return the diagnostics by held-out samples with pictures."""
    from maxmargin.cli import easy_figures
    from maxmargin.comparison.report import html_table

    found, y = work.diagnostics, work.prepared.samples.y
    if found is None or y is None:
        return ""
    y, classes = y[found.rows], work.choice.summary.classes
    parts = ["<h2>Held-out samples</h2>", "<p>By models that were trained without them, in cross-validation.</p>"]
    parts.append("<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in findings(work)) + "</ul>")
    if found.confusion is not None and len(found.confusion) <= MAX_CONFUSION_CLASSES:
        names = [data.label_name(label) for label in classes]
        rows = [[name, *(f"{n:,}" for n in row)] for name, row in zip(names, found.confusion.tolist(), strict=True)]
        parts.append("<h3>Confusion matrix, held out</h3>" + html_table(["true \\ predicted", *names], rows))
    if found.calibration is not None:
        drawn = easy_figures.calibration(found, data.label_name(classes[1]))
        parts.append("<h3>Calibration of probabilities</h3>" + _svg(drawn, "half"))
    if classes is None and found.predicted is not None:
        parts.append("<h3>Predictions</h3>" + _svg(easy_figures.predictions(found, y), "half"))
    if found.learning is not None:
        parts.append("<h3>Learning curve</h3>" + _svg(easy_figures.learning_curve(found)))
    if found.importance is not None:
        parts.append("<h3>Importance of the columns</h3>" + _svg(easy_figures.importance(found, column_names(work))))
    if found.doubt is not None:
        parts.append(_hardest(work, found, y))
    return "\n".join(parts)


def _hardest(work: EasyRun, found: Diagnostics, y: Any) -> str:
    """Return the table of the samples that are hardest to predict."""
    from maxmargin.comparison.report import html_table

    values, table = work.prepared.values, work.prepared.table
    names = column_names(work)[:MAX_LISTED_COLUMNS] if values is not None and not hasattr(values, "nnz") else []
    rows = []
    for place in found.hardest:
        row = int(found.rows[place])
        where = f"sample {row + 1}" if table is None else table.place(row)
        cells = _cells(work, row, len(names))
        rows.append([where, data.label_name(y[place]), data.label_name(found.predicted[place]), *cells])
    regression = work.choice.summary.classes is None
    title = "Samples with the largest errors" if regression else "Samples that the model is most unsure of"
    return f"<h3>{title}</h3>" + html_table(["", "true", "predicted", *names], rows)


def _cells(work: EasyRun, row: int, count: int) -> list[str]:
    """Return the first values of a sample as they are in its table."""
    plan, table, values = work.prepared.plan, work.prepared.table, work.prepared.values
    if plan is None or table is None:
        return [f"{value:.4g}" for value in values[row][:count]] if count else []
    cells = [plan.named(table).columns[column.name][row] for column in plan.features[:count]]
    return [("" if np.isnan(cell) else f"{cell:.6g}") if isinstance(cell, float) else str(cell) for cell in cells]


def _svg(figure: Figure, kind: str = "whole") -> str:
    """Return a figure for the page."""
    from maxmargin.plotting.style import figure_to_svg

    return f'<div class="{kind}">{figure_to_svg(figure)}</div>'


def usage(work: EasyRun) -> str:
    """Return the command that predicts new data with the model."""
    return shlex.join(["maxmargin", "predict", "NEW", str(work.files["model"]), *work.reading_options])


def reading_options(words: Sequence[str], is_table: bool) -> list[str]:
    """Return the options of a command line that are needed to read new data: those that the model file has not."""
    names = ("--format", "--header") if is_table else ("--format", "--label", "--ignore", "--first-index")
    found: list[str] = []
    for place, word in enumerate(words):
        if word in names:
            found += words[place : place + 2]
        elif word.partition("=")[0] in names:
            found.append(word)
    return found


def summary(work: EasyRun) -> dict[str, str]:
    """Return the estimator and its scores as text."""
    rows = {"estimator": " ".join(repr(work.model).split())}
    if work.threshold:
        rows["threshold"] = f"{work.threshold:.6g}: decision values from here on are the second class"
    if work.choice.score is not None:
        rows["cross-validation"] = _score_text(work)
    return {
        **rows,
        **_metrics_text(work),
        "seconds": ", ".join(f"{name} {value:.1f}" for name, value in work.seconds.items()),
    }


def _score_text(work: EasyRun) -> str:
    """Return the cross-validation score as text."""
    from maxmargin.search.score_colormap import format_score

    score, scoring = work.choice.score, work.choice.scoring
    assert score is not None
    return f"{scoring} {format_score(score.mean, scoring)} ± {format_score(score.std, scoring)}"


def _metrics_text(work: EasyRun) -> dict[str, str]:
    """Return the test metrics as text; nothing without a test."""
    percentages = ("accuracy", "balanced_accuracy", "macro_f1")
    rows = {"tested on": work.tested_on} if work.metrics else {}
    for name, title in PRINTED_METRICS.items():
        if name in work.metrics:
            value = work.metrics[name]
            rows[title] = f"{value:.2%}" if name in percentages else f"{value:.4g}"
            if name == "accuracy":
                rows[title] += f" ({work.metrics['correct']:,} of {work.metrics['samples']:,})"
    return rows
