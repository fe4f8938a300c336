"""Table cells of solver runs for the terminal, plain text tables, and the HTML page of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.metadata import version
from typing import Any

from maxmargin.comparison.solver_run import SolverRun
from maxmargin.problems import Progress
from maxmargin.solvers import StoppingRule

HEADINGS = ("solver", "status", "seconds", "iterations", "kernel evals", "gap", "violation", "support vectors")

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #ddd; vertical-align: bottom; }
td { white-space: nowrap; } th:first-child, td:first-child { text-align: left; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.5rem; }
dt { color: #666; } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: #f4f4f4; padding: .7rem 1rem; overflow-x: auto; } .wide { overflow-x: auto; }
svg { width: 100%; height: auto; }
.half { max-width: 30rem; } .whole { max-width: 46rem; }
.text td, .text th { text-align: left; white-space: normal; vertical-align: top; }
footer { color: #666; font-size: 14px; margin-top: 2rem; }
"""


def cells(run: SolverRun) -> tuple[str, ...]:
    """Return the table row of a finished run: its cost, and the values of its certificate."""
    record = run.record()
    return (
        run.label,
        run.outcome,
        _known(record["seconds"], format_seconds),
        _known(record["iterations"], format_count),
        _known(record["kernel_evaluations"] or None, format_large),
        _known(record["gap"], format_value),
        _known(record["violation"], format_value),
        _known(record["support_vectors"], format_count),
    )


def progress_cells(label: str, progress: Progress) -> tuple[str, ...]:
    """Return the table row of a running solver, with the values that it reports."""
    return (
        label,
        "running",
        format_seconds(progress.seconds),
        format_count(progress.iteration),
        _known(progress.kernel_evaluations or None, format_large),
        format_value(progress.gap),
        format_value(progress.violation),
        format_count(progress.support_vectors),
    )


def empty_cells(label: str, status: str) -> tuple[str, ...]:
    """Return the table row of a solver without values."""
    return (label, status, *[""] * (len(HEADINGS) - 2))


def remarks(runs: Sequence[SolverRun]) -> list[str]:
    """Return a sentence for each run that did not converge."""
    return [f"{run.label}: {run.message}" for run in runs if run.outcome != "converged"]


def plain_table(runs: Sequence[SolverRun]) -> str:
    """Return the table as text with aligned columns, followed by the remarks."""
    rows = [HEADINGS, *[cells(run) for run in runs]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([*lines, *remarks(runs)])


def title_of(problem: Mapping[str, Any]) -> str:
    """Return the description of a problem in one line."""
    parts = [problem.get("data", ""), f"{problem['variables']:,} variables", problem.get("kernel", "")]
    return ", ".join(part for part in parts if part)


def html_page(problem: Mapping[str, Any], stopping: StoppingRule, runs: Sequence[SolverRun]) -> str:
    """Return a self-contained HTML page: table, remarks, figure and description of the problem."""
    from maxmargin.comparison.figure import draw_off_screen
    from maxmargin.plotting.style import figure_to_svg

    notes = "".join(f"<li>{escape(remark)}</li>" for remark in remarks(runs))
    description = {key: value for key, value in problem.items() if value not in (None, "")}
    description |= {name: value for name, value in vars(stopping).items() if value is not None}
    body = f"""
<p>Every solver starts at the same feasible point with an empty kernel cache. Seconds are the time of the solver alone.
Gap and violation in the table are recomputed from the problem and the solution in double precision, independently of
the solver; those in the figure are reported by the solvers. A dot marks convergence, a cross a run that ended before.
</p>
{html_table(HEADINGS, [cells(run) for run in runs])}
<ul>{notes}</ul>
{figure_to_svg(draw_off_screen(runs, title_of(problem)))}
<h2>Problem</h2>
{html_terms(description)}"""
    return html_document(f"Comparison of solvers: {title_of(problem)}", body)


def html_document(title: str, body: str) -> str:
    """Return a self-contained HTML document with a heading and a footer."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>
<style>{STYLE}</style></head>
<body>
<h1>{escape(title)}</h1>
{body}
<footer>maxmargin {escape(version("maxmargin"))}</footer>
</body>
</html>
"""


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML."""
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def html_terms(terms: Mapping[str, Any]) -> str:
    """Return names and values as an HTML description list."""
    items = (f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in terms.items())
    return "<dl>\n" + "\n".join(items) + "\n</dl>"


def _known(value: Any, text: Callable[[Any], str]) -> str:
    return "–" if value is None else text(value)


def format_seconds(seconds: float) -> str:
    """Return seconds as text."""
    return f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}"


def format_count(count: int) -> str:
    """Return a count with separators of thousands."""
    return f"{count:,}"


def format_large(count: int) -> str:
    """Return a large count with three significant digits and a unit: 12.3M."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= 0.9995 * size:
            return f"{count / size:#.3g}".rstrip(".") + unit
    return str(count)


def format_value(value: float) -> str:
    """Return a gap or violation as text."""
    return f"{value:.2e}"
