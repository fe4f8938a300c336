"""Colours, markers, axes and SVG output shared by the displays.

The colours are those of Okabe and Ito (2002), ordered so that neighbours remain distinguishable under the three kinds
of colour blindness. Markers and line styles repeat the distinction for print without colour.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Blue, vermilion, green, purple, orange, sky blue.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

#: Markers of the classes, and line styles of several solvers.
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))

#: Colours of boundaries, rings and text, and of background elements.
INK, GREY = "#26292e", "#9aa0a8"


@dataclass
class Display:
    """Base class of the displays: `ax_` and `figure_` are the axes and the figure of the last `plot`."""

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    def _drawn_on(self, ax: Axes) -> Self:
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self


def pyplot() -> Any:
    """Import and return matplotlib's pyplot."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots require matplotlib: pip install 'maxmargin[plot]'") from error
    return plt


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the given axes, or new ones in a figure of this size in inches."""
    plt = pyplot()
    if ax is not None:
        return ax
    _, created = plt.subplots(figsize=size, layout="constrained")
    found: Axes = created
    return found


def figure_of(ax: Axes) -> Figure:
    """Return the root figure of the axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def colour(number: int) -> str:
    """Return the colour of the class or line with this index."""
    return COLOURS[number % len(COLOURS)]


def marker(number: int) -> str:
    """Return the marker of the class with this index; combinations with `colour` repeat late."""
    return MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]


def legend_below(ax: Axes) -> None:
    """Put the legend below the axes and their labels, in two columns if the axes are wide."""
    from matplotlib.transforms import ScaledTranslation

    columns = 2 if ax.get_position().width * figure_of(ax).get_figwidth() > 4.2 else 1
    points = 24 + (15 if ax.get_xlabel() else 0)
    place = ax.transAxes + ScaledTranslation(0, -points / 72, figure_of(ax).dpi_scale_trans)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=place, ncols=columns, frameon=False,
              fontsize="small", handletextpad=0.5, columnspacing=1.4, borderaxespad=0.0)  # fmt: skip


def hide_spines(ax: Axes) -> None:
    """Hide the top and right spines."""
    ax.spines[["top", "right"]].set_visible(False)


def figure_to_svg(figure: Figure) -> str:
    """Return a figure as an SVG element for an HTML page, without external references."""
    from matplotlib import rc_context

    written = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "maxmargin"}):
        figure.savefig(written, format="svg")
    svg = written.getvalue()
    return re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
