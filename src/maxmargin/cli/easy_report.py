"""The self-contained HTML report of `maxmargin easy`: decisions, test, searches and certificate."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from maxmargin import __version__
from maxmargin.cli import data, easy
from maxmargin.cli.model_report import to_text

if TYPE_CHECKING:
    from maxmargin.cli.easy import EasyRun

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.5rem; }
dt { color: #666; } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: #f4f4f4; padding: .7rem 1rem; overflow-x: auto; } .wide { overflow-x: auto; }
svg { width: 100%; height: auto; } footer { color: #666; font-size: 14px; margin-top: 2rem; }
"""

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
    title = escape(f"{work.name}: {type(work.model).__name__}")
    decisions = "".join(f"<li>{escape(sentence)}</li>" for sentence in work.decisions)
    files = {name: path.name for name, path in work.files.items() if name != "report"}
    commands = escape(easy.usage(work))
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{STYLE}</style></head>
<body>
<h1>{title}</h1>
{_terms({**easy.summary(work), **files})}
<h2>Decisions</h2>
<ol>{decisions}</ol>
{_test(work)}
{_searches(work)}
<h2>Certificate</h2>
<p>Training solves a convex optimisation problem. The primal and dual objectives are upper and lower bounds on its
optimal value, computed from the data and the model in double precision, independently of the solver. The duality gap
bounds the suboptimality of the model.</p>
{_terms(to_text(work.facts))}
<h2>Usage</h2>
<pre>{commands}</pre>
<footer>maxmargin {escape(__version__)}</footer>
</body>
</html>
"""


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
    html = f"<h2>Test: {escape(work.tested_on)}</h2>" + _table(["class", "precision", "recall", "F1", "samples"], rows)
    if len(names) <= MAX_CONFUSION_CLASSES:
        confusion = [
            [name, *(f"{count:,}" for count in row)]
            for name, row in zip(names, work.metrics["confusion_matrix"], strict=True)
        ]
        html += "<h2>Confusion matrix</h2>" + _table(["true \\ predicted", *names], confusion)
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
        parts.append(f"<h2>{TITLES['confirmation']}</h2>" + _table(["", search.scoring, "std"], rows))
    return "\n".join(parts)


def _terms(terms: dict[str, str]) -> str:
    return (
        "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in terms.items()) + "</dl>"
    )


def _table(headings: list[str], rows: list[list[Any]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
