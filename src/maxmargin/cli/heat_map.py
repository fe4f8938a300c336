"""Heat map of a grid search on the terminal: a coloured cell per C and γ, during the search and at its end."""

from __future__ import annotations

from time import monotonic

from rich.color import Color
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.style import Style
from rich.table import Table
from rich.text import Text

from maxmargin.search import GridSearchResult
from maxmargin.search.grid import format_value
from maxmargin.search.score_colormap import colour_of, colour_range, format_score, text_colour_on

#: Possible widths of a cell in characters, the first that fits is used; from `MIN_SCORE_WIDTH` on with the score.
CELL_WIDTHS = (6, 5, 2, 1)
MIN_SCORE_WIDTH = 5

#: Characters for the row labels at the left.
LABEL_WIDTH = 9

#: Seconds between two updates.
REFRESH_SECONDS = 0.15


def heat_map(result: GridSearchResult, columns: int) -> Group:
    """Return the map of the grid and of each refinement, for a terminal with the given number of columns."""
    low, high = colour_range(result.table().means)
    maps = [_map(result, number, columns, low, high) for number in range(len(result.rounds)) if result.rounds[number]]
    return Group(*(line for lines in maps for line in lines))


def _map(result: GridSearchResult, number: int, columns: int, low: float, high: float) -> list[Text]:
    """Return the lines of the map of a round."""
    table = result.table(number)
    fitting = (width for width in CELL_WIDTHS if LABEL_WIDTH + width * len(table.x_values) <= columns)
    width = next(fitting, CELL_WIDTHS[-1])
    best = result.best.point if result.scores else None
    heading = (table.y or "").rjust(LABEL_WIDTH - 1)
    lines = [Text(heading + (" refinement around the best point" if number else ""), style="dim")]
    for row in reversed(range(len(table.y_values))):
        value = table.y_values[row]
        label = "" if value is None else format_value(value)
        line = Text(label.rjust(LABEL_WIDTH - 1) + " ", no_wrap=True, overflow="crop")
        for point, mean in zip(table.points[row], table.means[row], strict=True):
            line.append(*_cell(float(mean), best == point, width, low, high, result.scoring))
        lines.append(line)
    return [*lines, *_axis(table.x, table.x_values, width)]


def _cell(mean: float, is_best: bool, width: int, low: float, high: float, scoring: str) -> tuple[str, Style]:
    """Return the text and the colours of a cell."""
    if mean != mean:
        return "·".center(width), Style(dim=True)
    text = format_score(mean, scoring, short=True) if width >= MIN_SCORE_WIDTH else ""
    if is_best:  # visible without colours, too
        text = f"[{text}]" if width > len(text) + 1 else f"*{text}"
    red, green, blue = colour_of(mean, low, high)
    ink = Color.from_rgb(0, 0, 0) if text_colour_on(mean, low, high) == "black" else Color.from_rgb(255, 255, 255)
    return text.center(width)[:width], Style(color=ink, bgcolor=Color.from_rgb(red, green, blue), bold=is_best)


def _axis(name: str, values: tuple[float, ...], width: int) -> list[Text]:
    """Return the line with the values of a parameter, as many as fit, and the line with the name of the axis."""
    line = [" "] * (LABEL_WIDTH + width * len(values) + LABEL_WIDTH)
    free = 0
    for column, value in enumerate(values):
        label = format_value(value)
        start = LABEL_WIDTH + width * column + max(0, (width - len(label)) // 2)
        if start >= free:
            line[start : start + len(label)] = label
            free = start + len(label) + 1
    middle = " " * (LABEL_WIDTH + width * len(values) // 2)
    return [Text("".join(line).rstrip(), no_wrap=True, overflow="crop"), Text(f"{middle}{name}", style="dim")]


class LiveHeatMap:
    """Callback of a grid search that shows its map while it runs; silent if the console is not a terminal."""

    def __init__(self, console: Console, shown: bool = True) -> None:
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if shown and console.is_terminal else None
        )
        self._last_update = 0.0

    def __call__(self, result: GridSearchResult) -> None:
        """Show the state of the search."""
        self.show("", result)

    def show(self, name: str, result: GridSearchResult) -> None:
        """Show the state of a search with a name, unless the last update is very recent."""
        if self._live is None or monotonic() - self._last_update < REFRESH_SECONDS:
            return
        self._last_update = monotonic()
        self._live.update(self._draw(name, result, self._live.console), refresh=True)

    def _draw(self, name: str, result: GridSearchResult, console: Console) -> Group:
        points = set(result.points)
        done, total = sum(trial.point in points for trial in result.trials), result.folds * len(points)
        best = ""
        if result.scores:
            best = f"best so far: {result.best.point}: {format_score(result.best.mean, result.scoring)}"
        bar = Table.grid(padding=(0, 1, 0, 0))
        text = f"{done:,} of {total:,} trials  {result.seconds:.0f} s"
        bar.add_row(Text(name), ProgressBar(total, done, width=20), Text(text, no_wrap=True))
        return Group(heat_map(result, console.width), bar, Text(best))

    def __enter__(self) -> LiveHeatMap:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
