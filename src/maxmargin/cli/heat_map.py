"""The scores of a grid search on the terminal: a coloured cell for each C and γ, while it runs and at its end."""

from __future__ import annotations

from time import monotonic
from types import TracebackType

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

#: Columns of a cell: with its score if there is room, else the colour alone.
WIDTHS = (6, 5, 2, 1)
WITH_SCORE = 5

#: Columns for the labels at the left.
LABELS = 9

#: Seconds between two pictures.
REFRESH = 0.15


def heat_map(found: GridSearchResult, columns: int) -> Group:
    """Return the map of a search for a terminal of so many columns, and one of each refinement; the best is marked."""
    low, high = colour_range(found.table()[2])
    maps = [_map(found, number, columns, low, high) for number in range(len(found.rounds)) if found.rounds[number]]
    return Group(*(line for lines in maps for line in lines))


def _map(found: GridSearchResult, number_of_round: int, columns: int, low: float, high: float) -> list[Text]:
    costs, gammas, means = found.table(number_of_round)
    width = next((width for width in WIDTHS if LABELS + width * len(costs) <= columns), WIDTHS[-1])
    best = found.best.point if found.scores else None
    heading = ("gamma" if gammas[0] is not None else "").rjust(LABELS - 1)
    lines = [Text(heading + (" around the best, in smaller steps" if number_of_round else ""), style="dim")]
    for row in reversed(range(len(gammas))):
        gamma = gammas[row]
        line = Text(
            ("" if gamma is None else format_value(gamma)).rjust(LABELS - 1) + " ", no_wrap=True, overflow="crop"
        )
        for column, cost in enumerate(costs):
            line.append(*_cell(float(means[row, column]), best == (cost, gamma), width, low, high, found.scoring))
        lines.append(line)
    return [*lines, *_labels(costs, width)]


def _cell(mean: float, is_best: bool, width: int, low: float, high: float, scoring: str) -> tuple[str, Style]:
    """Return the text and the colours of a cell."""
    if mean != mean:
        return "·".center(width), Style(dim=True)
    text = format_score(mean, scoring, short=True) if width >= WITH_SCORE else ""
    if is_best:  # seen without colours, too
        text = f"[{text}]" if width > len(text) + 1 else f"*{text}"
    red, green, blue = colour_of(mean, low, high)
    ink = Color.from_rgb(0, 0, 0) if text_colour_on(mean, low, high) == "black" else Color.from_rgb(255, 255, 255)
    return text.center(width)[:width], Style(color=ink, bgcolor=Color.from_rgb(red, green, blue), bold=is_best)


def _labels(costs: tuple[float, ...], width: int) -> list[Text]:
    """Return the line of values of C, as many as have room, and the name of the axis."""
    line = [" "] * (LABELS + width * len(costs) + LABELS)
    free = 0
    for column, cost in enumerate(costs):
        label = format_value(cost)
        start = LABELS + width * column + max(0, (width - len(label)) // 2)
        if start >= free:
            line[start : start + len(label)] = label
            free = start + len(label) + 1
    middle = " " * (LABELS + width * len(costs) // 2)
    return [Text("".join(line).rstrip(), no_wrap=True, overflow="crop"), Text(f"{middle}C", style="dim")]


class LiveMap:
    """Watches a search and shows its map while it runs; a context that removes it at its end.

    Where there is no terminal, it is silent.
    """

    def __init__(self, console: Console, wanted: bool = True) -> None:
        shown = wanted and console.is_terminal
        self._live = Live(console=console, auto_refresh=False, transient=True) if shown else None
        self._drawn = 0.0

    def __call__(self, found: GridSearchResult) -> None:
        """Show where the only search stands."""
        self.show("", found)

    def show(self, name: str, found: GridSearchResult) -> None:
        """Show where a search stands, if it is time for a new picture."""
        if self._live is None or monotonic() - self._drawn < REFRESH:
            return
        self._drawn = monotonic()
        self._live.update(self._draw(name, found, self._live.console), refresh=True)

    def _draw(self, name: str, found: GridSearchResult, console: Console) -> Group:
        points = set(found.points)
        done, total = sum(trial.point in points for trial in found.trials), found.folds * len(points)
        best = (
            f"best so far: {found.best.point}: {format_score(found.best.mean, found.scoring)}" if found.scores else ""
        )
        bar = Table.grid(padding=(0, 1, 0, 0))
        text = f"{done:,} of {total:,} trials  {found.seconds:.0f} s"
        bar.add_row(Text(name), ProgressBar(total, done, width=20), Text(text, no_wrap=True))
        return Group(heat_map(found, console.width), bar, Text(best))

    def __enter__(self) -> LiveMap:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
