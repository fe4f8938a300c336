"""The runs of a comparison as cells of a table, for the terminal, for pages and for plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from maxmargin.comparison.run import Run
from maxmargin.problems import Progress

HEADINGS = ("solver", "status", "seconds", "iterations", "kernel values", "gap", "violation", "support vectors")


def cells(run: Run) -> tuple[str, ...]:
    """Return a line of the table: what the run cost, and what the judge says."""
    record = run.record()
    return (
        run.label,
        run.word,
        _number(record["seconds"], seconds_text),
        _number(record["iterations"], count_text),
        _number(record["kernel_evaluations"] or None, large_text),
        _number(record["gap"], value_text),
        _number(record["violation"], value_text),
        _number(record["support_vectors"], count_text),
    )


def progress_cells(label: str, progress: Progress) -> tuple[str, ...]:
    """Return a line about a solver on its way, by its own account."""
    return (
        label,
        "running",
        seconds_text(progress.seconds),
        count_text(progress.iteration),
        _number(progress.kernel_evaluations or None, large_text),
        value_text(progress.gap),
        value_text(progress.violation),
        count_text(progress.support_vectors),
    )


def waiting_cells(label: str, word: str) -> tuple[str, ...]:
    """Return a line about a solver of which nothing is known yet."""
    return (label, word, *[""] * (len(HEADINGS) - 2))


def remarks(runs: Iterable[Run]) -> list[str]:
    """Return a sentence for each run that did not converge."""
    return [f"{run.label}: {run.sentence}" for run in runs if run.word != "converged"]


def plain_table(runs: Iterable[Run]) -> str:
    """Return the table as text of aligned columns, with remarks below."""
    runs = list(runs)
    lines = [HEADINGS, *[cells(run) for run in runs]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    text = [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([*text, *remarks(runs)])


def _number(value: Any, text: Callable[[Any], str]) -> str:
    return "–" if value is None else text(value)


def seconds_text(seconds: float) -> str:
    """Return seconds with three digits that count."""
    return f"{seconds:.3f}" if seconds < 10 else f"{seconds:.1f}"


def count_text(count: int) -> str:
    """Return a count."""
    return f"{count:,}"


def large_text(count: int) -> str:
    """Return a large count with three digits that count."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= 0.9995 * size:
            return f"{count / size:#.3g}".rstrip(".") + unit
    return str(count)


def value_text(value: float) -> str:
    """Return a small value."""
    return f"{value:.2e}"
