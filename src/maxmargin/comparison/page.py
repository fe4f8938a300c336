"""A comparison as one page: table, picture and description, with nothing to fetch from anywhere."""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING

from maxmargin.comparison.picture import draw_off_screen, title_of
from maxmargin.comparison.tables import HEADINGS, cells, remarks
from maxmargin.plotting.style import figure_to_svg

if TYPE_CHECKING:
    from maxmargin.comparison.comparison import Comparison

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #ddd; vertical-align: bottom; }
td { white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2) { text-align: left; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.5rem; }
dt { color: #666; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } svg { width: 100%; height: auto; } footer { color: #666; font-size: 14px; }
"""


def page(comparison: Comparison) -> str:
    """Return the page."""
    title = escape(f"Solvers compared: {title_of(comparison)}")
    heading = "".join(f"<th>{escape(text)}</th>" for text in HEADINGS)
    lines = "\n".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells(run)) + "</tr>" for run in comparison.runs
    )
    notes = "".join(f"<li>{escape(remark)}</li>" for remark in remarks(comparison.runs))
    asked = {name: value for name, value in vars(comparison.stopping).items() if value is not None}
    described = {**{key: value for key, value in comparison.about.items() if value not in (None, "")}, **asked}
    terms = "\n".join(f"<dt>{escape(key)}</dt><dd>{escape(str(value))}</dd>" for key, value in described.items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{STYLE}</style></head>
<body>
<h1>{title}</h1>
<p>Every solver began at the simplest feasible point, with a matrix of its own that had no values yet. Seconds are those
of the solver alone. Gap and violation in the table are the judge's, computed afresh in double precision from the
problem and the answer; those in the pictures are by the solvers' own account. A dot is where the tolerance was reached,
a cross where a run ended before.</p>
<div class="wide"><table><thead><tr>{heading}</tr></thead>
<tbody>
{lines}
</tbody></table></div>
<ul>{notes}</ul>
{figure_to_svg(draw_off_screen(comparison))}
<h2>The problem</h2>
<dl>
{terms}
</dl>
<footer>maxmargin {escape(version("maxmargin"))}</footer>
</body>
</html>
"""
