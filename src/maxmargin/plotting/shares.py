"""Horizontal bars of shares of a whole, the largest on top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from maxmargin._typing import Floats
from maxmargin.plotting.style import GREY, axes_for, colour, hide_spines

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_shares(ax: Axes | None, shares: Floats, names: Sequence[str], most: int) -> tuple[Axes, int, int]:
    """Draw the largest shares above 0, at most so many; return the axes and how many are shown and above 0."""
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] > 0]
    shown = order[:most]
    ax = axes_for(ax, (6.4, 1.1 + 0.26 * max(3, len(shown))))
    places = np.arange(len(shown))
    ax.barh(places, shares[shown], height=0.7, color=colour(0))
    for place, value in zip(places, shares[shown], strict=True):
        ax.annotate(f"{value:.1%}", (value, place), xytext=(3, 0), textcoords="offset points", va="center",
                    fontsize="small", color=GREY)  # fmt: skip
    ax.set_yticks(places, [names[j] for j in shown], fontsize="small")
    ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    ax.margins(x=0.12)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.tick_params(axis="y", length=0)
    hide_spines(ax)
    return ax, len(shown), len(order)
