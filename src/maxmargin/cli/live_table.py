"""Live table of a running comparison on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from maxmargin.comparison import SolverRun
from maxmargin.comparison.report import HEADINGS, cells, empty_cells, progress_cells
from maxmargin.problems import Progress

REFRESHES_PER_SECOND = 8

COLOURS = {"converged": "green", "running": "cyan", "waiting": "dim", "not run": "dim", "failed": "red"}


class LiveTable:
    """Observer of a comparison that shows a table while it runs; silent if the console is not a terminal."""

    def __init__(self, console: Console) -> None:
        self._rows: dict[str, tuple[str, ...]] = {}
        self._spinner = Spinner("dots", "running", style="cyan")
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(
                console=console, get_renderable=self._draw, refresh_per_second=REFRESHES_PER_SECOND, transient=True
            )

    def on_start(self, labels: Sequence[str]) -> None:
        """Show all solvers as waiting."""
        self._rows = {label: empty_cells(label, "waiting") for label in labels}
        self._refresh()

    def on_solver_start(self, label: str) -> None:
        """Show a solver as running."""
        self._rows[label] = empty_cells(label, "running")
        self._refresh()

    def on_progress(self, label: str, progress: Progress) -> None:
        """Update the row of a running solver."""
        self._rows[label] = progress_cells(label, progress)

    def on_solver_end(self, run: SolverRun) -> None:
        """Show the result of a solver."""
        self._rows[run.label] = cells(run)
        self._refresh()

    def __enter__(self) -> LiveTable:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _refresh(self) -> None:
        """Draw immediately, so that states shorter than the refresh interval appear, too."""
        if self._live is not None:
            self._live.refresh()

    def _draw(self) -> Table:
        return make_table(self._rows.values(), self._spinner)


def make_table(rows: Iterable[tuple[str, ...]], spinner: Spinner | None = None) -> Table:
    """Return rows of cells as a table for the terminal, with a spinner for the running solver."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    for column, heading in enumerate(HEADINGS):
        # Only labels and statuses wrap, so that the table fits into 80 columns.
        if column < 2:
            table.add_column(heading, min_width=9, overflow="fold")
        else:
            table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    for label, status, *values in list(rows):
        running = spinner is not None and status == "running"
        table.add_row(label, spinner if running else f"[{COLOURS.get(status, 'yellow')}]{status}[/]", *values)
    return table
