"""Progress line of a search on the terminal."""

from __future__ import annotations

from time import monotonic

from rich.console import Console
from rich.live import Live
from rich.text import Text

from maxmargin.search.gradient_search_result import GradientSearchResult
from maxmargin.search.grid_search_result import GridSearchResult
from maxmargin.search.score_colormap import format_score

#: Seconds between two updates.
REFRESH_SECONDS = 0.15


class SearchProgress:
    """Callback of a search that shows a line of progress; silent if the console is not a terminal.

    Parameters
    ----------
    console : Console, optional
        Standard error by default.
    delay : float, default=1
        Seconds after which the line appears.
    """

    def __init__(self, console: Console | None = None, delay: float = 1.0) -> None:
        self.console = console or Console(stderr=True)
        self.delay = delay
        self._live: Live | None = None
        self._last_update = -REFRESH_SECONDS

    def __call__(self, result: GridSearchResult | GradientSearchResult) -> None:
        """Show the state of the search, unless the last update is very recent."""
        now = monotonic()
        if not self.console.is_terminal or result.seconds < self.delay or now - self._last_update < REFRESH_SECONDS:
            return
        self._last_update = now
        if self._live is None:
            self._live = Live(console=self.console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(Text(_format(result), no_wrap=True, overflow="ellipsis"), refresh=True)

    def close(self) -> None:
        """Remove the line."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _format(result: GridSearchResult | GradientSearchResult) -> str:
    return format_gradients(result) if isinstance(result, GradientSearchResult) else format_search(result)


def format_gradients(result: GradientSearchResult) -> str:
    """Return the progress of a search by gradients in one line."""
    done, best = len(result.common) + len(result.by_feature), result.best
    used = f", {len(result.relevant)} of {len(result.spread)} features" if result.by_feature else ""
    return f"{result.seconds:6.1f} s  {done:,} evaluations  best so far: C = {best.C:.3g}, loss {best.loss:.4f}{used}"


def format_search(result: GridSearchResult) -> str:
    """Return the progress of a search in one line."""
    done, total = sum(map(len, result.by_point.values())), result.folds * len(result.points)
    best = ""
    if result.scores:
        best = f"  best so far: {result.best.point}, {format_score(result.best.mean, result.scoring)}"
    return f"{result.seconds:6.1f} s  {done:,} of {total:,} trials{best}"
