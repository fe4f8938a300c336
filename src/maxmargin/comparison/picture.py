"""Four pictures of a comparison: how the gap fell, by three clocks, and how primal and dual value met.

The gap is that of each point by the solver's own account, relative to the objective; on logarithmic axes a method that
gains a digit for each step of the same factor is a straight line. The optimum lies between the best values that the
judge has found.
"""

from __future__ import annotations

from importlib.util import find_spec
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.comparison.run import Run
from maxmargin.problems import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from maxmargin.comparison.comparison import Comparison

#: Okabe and Ito's colours, which the colour-blind tell apart, without the yellow that is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", ":")

#: In inches: legible at the width of a page.
SIZE = (10.0, 7.6)

#: The part of a time axis that is shown: more decades would be empty.
TIME_SHOWN = 1e-3

#: Relative gaps below this are drawn there: what is left is rounding.
LEAST = 1e-10

#: The most points of a line.
MOST_POINTS = 400


def draw(comparison: Comparison, figure: Figure | None = None) -> Figure:
    """Draw the four pictures."""
    if figure is None:
        require_matplotlib()
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=SIZE, layout="constrained")
    axes: Any = figure.subplots(2, 2)
    by_seconds, by_iterations, by_values, values = axes.ravel()
    optimum, scale = _optimum(comparison)
    runs = [run for run in comparison.runs if len(run.trace) > 1]
    styles = list(islice(zip(cycle(COLOURS), _each(STYLES, len(COLOURS)), strict=False), len(runs)))
    for run, (colour, style) in zip(runs, styles, strict=True):
        trace = thinned(run.trace)
        line = {"color": colour, "linestyle": style, "label": run.label, "linewidth": 1.8}
        gap = np.maximum(np.array([entry.gap for entry in trace]) / scale, LEAST)
        for axis, name in ((by_seconds, "seconds"), (by_iterations, "iteration"), (by_values, "kernel_evaluations")):
            _line(axis, np.array([float(getattr(entry, name)) for entry in trace]), gap, run, line)
        _funnel(values, trace, optimum, scale, line)
    what = "gap / objective" if scale != 1.0 else "duality gap"
    _finish(by_seconds, "gap against time", "seconds", what)
    _finish(by_iterations, "gap against iterations", "iterations (what one is differs by solver)", what)
    _finish(by_values, "gap against kernel values", "kernel values computed", what)
    if not by_values.lines:
        by_values.text(0.5, 0.5, "no solver computed kernel values", ha="center", transform=by_values.transAxes)
    _finish_funnel(values)
    longest = max((run.trace[-1].seconds for run in runs), default=0.0)
    for axis in (by_seconds, values):
        if longest > 0 and axis.get_xlim()[0] < TIME_SHOWN * longest:
            axis.set_xlim(left=TIME_SHOWN * longest)
    handles, labels = by_seconds.get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    figure.suptitle(title_of(comparison))
    return figure


def draw_off_screen(comparison: Comparison) -> Figure:
    """Draw the four pictures into a figure that no window knows, to be saved."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return draw(comparison, Figure(figsize=SIZE, layout="constrained"))


def require_matplotlib() -> None:
    """Raise if there is no matplotlib."""
    if find_spec("matplotlib") is None:
        raise ImportError("pictures need matplotlib: pip install 'maxmargin[plot]'")


def title_of(comparison: Comparison) -> str:
    """Return a line about the problem."""
    about = comparison.about
    parts = [about.get("data", ""), f"{about['variables']:,} variables", about.get("kernel", "")]
    return ", ".join(part for part in parts if part)


def thinned(trace: tuple[Progress, ...]) -> tuple[Progress, ...]:
    """Return at most `MOST_POINTS` entries, evenly spread by the logarithm of their number, the first and the last."""
    if len(trace) <= MOST_POINTS:
        return trace
    picks = np.unique(np.geomspace(1, len(trace), MOST_POINTS).astype(int)) - 1
    return tuple(trace[pick] for pick in picks)


def _each(values: tuple[str, ...], times: int) -> Any:
    return cycle([value for value in values for _ in range(times)])


def _optimum(comparison: Comparison) -> tuple[float, float]:
    """Return the middle of the best bounds, and its size to divide by, 1 if that is next to nothing."""
    judged = [run.certificate for run in comparison.runs if run.certificate is not None]
    ends = [min((one.primal for one in judged), default=np.inf), max((one.dual for one in judged), default=-np.inf)]
    finite = [end for end in ends if np.isfinite(end)]
    optimum = float(np.mean(finite)) if finite else 0.0
    return optimum, abs(optimum) if abs(optimum) > np.sqrt(np.finfo(float).tiny) else 1.0


def _line(axis: Axes, along: Floats, gap: Floats, run: Run, line: dict[str, Any]) -> None:
    """Draw a line and where it ends: a dot where the tolerance was reached, a cross where it was not."""
    shown = (along > 0) & np.isfinite(gap)
    if not shown.any():
        return
    axis.plot(along[shown], gap[shown], **line)
    marker = "o" if run.word == "converged" else "X"
    axis.plot(along[shown][-1], gap[shown][-1], marker, color=line["color"], markersize=6)


def _funnel(axis: Axes, trace: tuple[Progress, ...], optimum: float, scale: float, line: dict[str, Any]) -> None:
    """Draw primal and dual value by their distance to the optimum."""
    seconds = np.array([entry.seconds for entry in trace])
    for values in ([entry.primal for entry in trace], [entry.dual for entry in trace]):
        distance = (np.array(values) - optimum) / scale
        shown = np.isfinite(distance) & (seconds > 0)
        axis.plot(seconds[shown], distance[shown], **line)


def _finish(axis: Axes, title: str, along: str, what: str) -> None:
    axis.set(title=title, xlabel=along, ylabel=what)
    if axis.lines:
        axis.set(xscale="log", yscale="log")
    axis.grid(True, alpha=0.3)


def _finish_funnel(axis: Axes) -> None:
    axis.set(title="primal from above, dual from below", xlabel="seconds", ylabel="(value − optimum) / objective")
    if axis.lines:
        axis.set_xscale("log")
        axis.set_yscale("symlog", linthresh=1e-4)
        axis.axhline(0.0, color="#30343a", linewidth=0.8)
    axis.grid(True, alpha=0.3)
