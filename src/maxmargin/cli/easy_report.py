"""The page of `maxmargin easy`: what was found, decided, trained and proved, with pictures and nothing to fetch."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from maxmargin import __version__
from maxmargin.cli import data, easy
from maxmargin.cli.model_words import in_words

if TYPE_CHECKING:
    from maxmargin.cli.easy import Work

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

#: More classes than this have no table of their confusion.
CONFUSED = 12

#: What the pictures of searches are called.
TITLES = {
    "linear": "The linear machine",
    "kernel": "The gaussian kernel",
    "confirmation": "The best of them on more samples",
}


def page(work: Work) -> str:
    """Return the page."""
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
<h2>What was decided</h2>
<ol>{decisions}</ol>
{_test(work)}
{_searches(work)}
<h2>What is proved</h2>
<p>The training problem has one optimum. A lower and an upper bound on its value were computed afresh from the data and
the model, in double precision, independently of the solver; the gap between them is the most that could be missing.</p>
{_terms(in_words(work.facts))}
<h2>How to use it</h2>
<pre>{commands}</pre>
<footer>maxmargin {escape(__version__)}</footer>
</body>
</html>
"""


def _test(work: Work) -> str:
    """Return the tables of the test: classes, and which were taken for which."""
    if not work.measures:
        return (
            "<p>There was no test: the score in cross-validation is that of the best of many, so a little too good.</p>"
        )
    if "classes" not in work.measures:
        return ""
    classes = work.measures["classes"]
    names = [data.label_name(one["label"]) for one in classes]
    rows = [
        [name, *(f"{one[key]:.3f}" for key in ("precision", "recall", "f1")), f"{one['samples']:,}"]
        for name, one in zip(names, classes, strict=True)
    ]
    found = f"<h2>The test: {escape(work.tested_on)}</h2>" + _table(
        ["class", "precision", "recall", "F1", "samples"], rows
    )
    if len(names) <= CONFUSED:
        confusion = [
            [f"is {name}", *(f"{count:,}" for count in line)]
            for name, line in zip(names, work.measures["confusion"], strict=True)
        ]
        found += "<p>How many samples of a class were taken for which:</p>"
        found += _table(["", *(f"taken for {name}" for name in names)], confusion)
    return found


def _searches(work: Work) -> str:
    """Return the maps of the searches."""
    from maxmargin.plotting import ScoreGridDisplay
    from maxmargin.plotting.style import figure_to_svg, pyplot

    parts = []
    for name, search in work.choice.searches.items():
        if not search.scores or name == "confirmation":
            continue
        figure = ScoreGridDisplay.from_search(search).figure_
        parts.append(f"<h2>{TITLES[name]} in cross-validation</h2>{figure_to_svg(figure)}")
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
