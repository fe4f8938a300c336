"""A line that shows how a fit is coming along; silent unless it writes to a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.text import Text

from maxmargin.problems import Progress


class ProgressLine:
    """A callback that keeps one line on the terminal up to date once a fit takes longer than a second."""

    def __init__(self, console: Console | None = None, after: float = 1.0) -> None:
        self.console = console or Console(stderr=True)
        self.after = after
        self._live: Live | None = None

    def __call__(self, progress: Progress) -> None:
        if not self.console.is_terminal or progress.seconds < self.after:
            return
        if self._live is None:
            self._live = Live(console=self.console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(Text(describe(progress)), refresh=True)

    def close(self) -> None:
        """Remove the line."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def describe(progress: Progress) -> str:
    """Return the state of a fit in one line."""
    return (
        f"{progress.seconds:6.1f} s  step {progress.iteration:,}  violation {progress.violation:.2e}  "
        f"gap {progress.gap:.3g}  dual {progress.dual:.6g}  active {progress.active:,}"
    )
