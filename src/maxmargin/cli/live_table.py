"""A table on the terminal that follows a comparison while it runs; silent where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from maxmargin.comparison import Run
from maxmargin.comparison.tables import HEADINGS, cells, progress_cells, waiting_cells
from maxmargin.problems import Progress

#: Redrawn so many times a second.
REFRESH = 8

COLOURS = {"converged": "green", "running": "cyan", "waiting": "dim", "not run": "dim", "failed": "red"}


class LiveTable:
    """Watches a comparison and shows where every solver stands; a context that removes the table at its end."""

    def __init__(self, console: Console) -> None:
        self._lines: dict[str, tuple[str, ...]] = {}
        self._spinner = Spinner("dots", "running", style="cyan")
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=REFRESH, transient=True)

    def begins(self, labels: Sequence[str]) -> None:
        """Show who takes part."""
        self._lines = {label: waiting_cells(label, "waiting") for label in labels}
        self._refresh()

    def started(self, label: str) -> None:
        """Show who runs."""
        self._lines[label] = waiting_cells(label, "running")
        self._refresh()

    def progressed(self, label: str, progress: Progress) -> None:
        """Show where a solver stands."""
        self._lines[label] = progress_cells(label, progress)

    def finished(self, run: Run) -> None:
        """Show how a solver ended."""
        self._lines[run.label] = cells(run)
        self._refresh()

    def __enter__(self) -> LiveTable:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _refresh(self) -> None:
        """Draw at once what should be seen even if it is over before the next time."""
        if self._live is not None:
            self._live.refresh()

    def _draw(self) -> Table:
        return table_of(self._lines.values(), self._spinner)


def table_of(lines: Iterable[tuple[str, ...]], spinner: Spinner | None = None) -> Table:
    """Return lines of cells as a table for the terminal, with a spinner for the solver that runs."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for column, heading in enumerate(HEADINGS):
        # Numbers are never broken, so that all fit into 80 columns; names and words are where it is narrow.
        if column < 2:
            table.add_column(heading, min_width=9, overflow="fold")
        else:
            table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    for line in list(lines):
        word = line[1]
        state = spinner if spinner is not None and word == "running" else f"[{COLOURS.get(word, 'yellow')}]{word}[/]"
        table.add_row(line[0], state, *line[2:])
    return table
