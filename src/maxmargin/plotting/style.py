"""What the pictures share: colours that the colour-blind can tell, and where to draw.

The colours of classes and lines are those of Okabe and Ito (2002), in an order in which any two neighbours stay apart
under the three kinds of colour blindness. Shapes and line styles say the same again, for print without colour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Blue, vermilion, green, purple, orange, sky blue.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

#: Of the samples of each class, and of the lines of several solvers.
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))

#: For boundaries, rings and text; for what stays in the background.
INK, GREY = "#26292e", "#9aa0a8"


def pyplot() -> Any:
    """Return matplotlib's pyplot, which is imported here and nowhere else at the top."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'maxmargin[plot]'") from error
    return plt


def axes_for(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes to draw on: those given, or new ones in a figure of so many inches."""
    plt = pyplot()
    if ax is not None:
        return ax
    _, created = plt.subplots(figsize=size, layout="constrained")
    found: Axes = created
    return found


def figure_of(ax: Axes) -> Figure:
    """Return the figure that axes belong to, the whole one if they are in a part of it."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def colour(number: int) -> str:
    """Return the colour of the class or line of this number."""
    return COLOURS[number % len(COLOURS)]


def marker(number: int) -> str:
    """Return the shape for the class of this number; after all colours were used, others than before."""
    return MARKERS[(number + number // len(COLOURS)) % len(MARKERS)]


def legend_below(ax: Axes) -> None:
    """Put the legend below the axes and their labels, where it covers nothing, in two columns if they are wide."""
    from matplotlib.transforms import ScaledTranslation

    columns = 2 if ax.get_position().width * figure_of(ax).get_figwidth() > 4.2 else 1
    points = 24 + (15 if ax.get_xlabel() else 0)
    place = ax.transAxes + ScaledTranslation(0, -points / 72, figure_of(ax).dpi_scale_trans)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), bbox_transform=place, ncols=columns, frameon=False,
              fontsize="small", handletextpad=0.5, columnspacing=1.4, borderaxespad=0.0)  # fmt: skip


def bare(ax: Axes) -> None:
    """Leave out the lines of the frame that nothing is read from."""
    ax.spines[["top", "right"]].set_visible(False)
