"""The picture of a search for C and gamma: contours of the rate, and where it is best."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from maxmargin.cli.libsvm.grid_plan import Point


def draw(rates: Mapping[Point, float], title: str, path: Path) -> None:
    """Draw the rates of a whole grid; a grid of one line, or one without slope, has no picture."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("matplotlib is not installed, so there is no picture: pip install 'maxmargin[plot]'", file=sys.stderr)
        return
    costs = sorted({float(c) for c, _ in rates if c is not None})
    gammas = sorted({float(g) for _, g in rates if g is not None})
    heights = np.array([[rates[c, g] for c in costs] for g in gammas])
    if min(heights.shape) < 2 or np.ptp(heights) == 0:
        return
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    filled = axes.contourf(costs, gammas, heights, levels=20)
    figure.colorbar(filled, label="rate")
    axes.set(title=title, xlabel="log₂ C", ylabel="log₂ γ")
    figure.savefig(path, format="png", dpi=120)
