"""The self-contained HTML report of `maxmargin easy`: decisions, test, searches and certificate."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from maxmargin.cli import data, easy
from maxmargin.cli.model_report import to_text
from maxmargin.comparison.report import html_document, html_table, html_terms

if TYPE_CHECKING:
    from maxmargin.cli.easy import EasyRun

#: Limit on the classes of a confusion matrix.
MAX_CONFUSION_CLASSES = 12

#: Headings of the searches.
TITLES = {
    "linear": "Grid search: linear model",
    "kernel": "Grid search: Gaussian kernel",
    "confirmation": "Best points on more samples",
}


def page(work: EasyRun) -> str:
    """Return the report as HTML."""
    decisions = "".join(f"<li>{escape(sentence)}</li>" for sentence in work.decisions)
    files = {name: path.name for name, path in work.files.items() if name != "report"}
    body = f"""
{html_terms({**easy.summary(work), **files})}
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
<pre>{escape(easy.usage(work))}</pre>"""
    return html_document(f"{work.name}: {type(work.model).__name__}", body)


def _test(work: EasyRun) -> str:
    """Return the metrics by class and the confusion matrix of the test."""
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
