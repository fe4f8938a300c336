"""The self-contained HTML report of `maxmargin easy`: decisions, test, searches and certificate."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin.cli import data
from maxmargin.cli.model_report import to_text

if TYPE_CHECKING:
    from maxmargin.search import ModelChoice

#: Limit on the classes of a confusion matrix.
MAX_CONFUSION_CLASSES = 12

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
    zero_based : bool
        Whether the feature indices of the training data start at 0.
    limited : bool
        Whether the time limit was reached before the tolerance.
    """

    name: str
    choice: ModelChoice
    decisions: list[str]
    model: Any = None
    facts: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    tested_on: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    reading_options: list[str] = field(default_factory=list)
    zero_based: bool = False
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
{_test(work)}
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


def usage(work: EasyRun) -> str:
    """Return the command that predicts new data with the model."""
    scaled = ["--ranges", str(work.files["ranges"])] if "ranges" in work.files else []
    return shlex.join(["maxmargin", "predict", "NEW", str(work.files["model"]), *scaled, *work.reading_options])


def summary(work: EasyRun) -> dict[str, str]:
    """Return the estimator and its scores as text."""
    rows = {"estimator": " ".join(repr(work.model).split())}
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

    score, scoring = work.choice.score, next(iter(work.choice.searches.values())).scoring
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
