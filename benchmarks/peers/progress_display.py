"""Progress on the terminal: a bar with rich, or plain lines where the output is redirected."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.peers.report import seconds_text


class ProgressDisplay:
    """Show the current step, and print the times of each finished case."""

    def __init__(self, cases: int) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, console=self.console, transient=True, refresh_per_second=2)
        self.task = self.progress.add_task("", total=cases)
        self.live = sys.stdout.isatty()

    def __enter__(self) -> ProgressDisplay:
        if self.live:
            self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.live:
            self.progress.stop()

    def show_step(self, text: str) -> None:
        """Show the current step, on a terminal only."""
        if self.live:
            self.progress.update(self.task, description=text)

    def advance(self) -> None:
        """Count a case as finished."""
        self.progress.advance(self.task)

    def print_case(self, case: dict[str, Any]) -> None:
        """Print the results of a case in one line."""
        parts = []
        for name, result in case["libraries"].items():
            time = seconds_text(result["seconds"]) if "seconds" in result else ""
            status = "" if result["status"] == "certified" else result["status"]
            parts.append(" ".join(filter(None, (name, time, status))))
        limit = f" (limit {seconds_text(case['limit']['seconds'])})" if case["limit"] else ""
        self.console.print(f"{case['name']}: {', '.join(parts)}{limit}")

    def print_path(self, path: Path) -> None:
        """Print the path of a file that was written."""
        self.console.print(str(path))
