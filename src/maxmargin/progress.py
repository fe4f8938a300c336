"""Progress line of a fit on the terminal."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from maxmargin.problems import Progress


class ProgressLine:
    """Estimator callback that shows one line of progress; silent if the console is not a terminal.

    Parameters
    ----------
    console : Console, optional
        Standard error by default.
    delay : float, default=1
        Seconds after which the line appears.
    text : callable, optional
        From the progress to the line; by default `format_progress`.
    """

    def __init__(
        self,
        console: Console | None = None,
        delay: float = 1.0,
        text: Callable[[Progress], str] | None = None,
    ) -> None:
        self.console = console or Console(stderr=True)
        self.delay = delay
        self.text = format_progress if text is None else text
        self._live: Live | None = None

    def __call__(self, progress: Progress) -> None:
        if not self.console.is_terminal or progress.seconds < self.delay:
            return
        if self._live is None:
            self._live = Live(console=self.console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(Text(self.text(progress)), refresh=True)

    def close(self) -> None:
        """Remove the line."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def format_progress(progress: Progress) -> str:
    """Return the progress of a fit in one line."""
    return (
        f"{progress.seconds:6.1f} s  iteration {progress.iteration:,}  violation {progress.violation:.2e}  "
        f"gap {progress.gap:.3g}  dual {progress.dual:.6g}  active {progress.active:,}"
    )


def format_count(progress: Progress) -> str:
    """Return the number of finished samples in one line."""
    return f"{progress.seconds:6.1f} s  {progress.finished:,} of {progress.problems:,} samples left out"
