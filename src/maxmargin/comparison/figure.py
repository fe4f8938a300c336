"""Convergence plots of a comparison: gap over time, iterations and kernel evaluations; both objectives over time.

The gap is the one that the solver reports, relative to the optimal value, which is taken from the best primal and dual
values of all certificates.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Floats
from maxmargin.comparison.solver_run import SolverRun
from maxmargin.problems import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The palette of Okabe and Ito for colour vision deficiency, without yellow, which is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", "-.", ":")

#: Inches.
FIGURE_SIZE = (10.0, 7.6)

#: Lower limit of time axes as a fraction of the longest run; earlier decades would be empty.
MIN_TIME_FRACTION = 1e-3

#: Relative gaps are clipped here: smaller ones are rounding errors.
MIN_GAP = 1e-10

#: Limit on the points of a line.
MAX_POINTS = 400


def draw(runs: Sequence[SolverRun], title: str, figure: Figure | None = None) -> Figure:
    """Draw the four plots."""
    if figure is None:
        require_matplotlib()
        import matplotlib.pyplot as plt

        figure = plt.figure(figsize=FIGURE_SIZE, layout="constrained")
    axes: Any = figure.subplots(2, 2)
    by_seconds, by_iterations, by_evaluations, objectives = axes.ravel()
    optimum, scale = _optimum(runs)
    runs = [run for run in runs if len(run.trace) > 1]
    line_styles = cycle([style for style in STYLES for _ in COLOURS])
    styles = list(islice(zip(cycle(COLOURS), line_styles, strict=False), len(runs)))
    for run, (colour, style) in zip(runs, styles, strict=True):
        trace = thinned(run.trace)
        line = {"color": colour, "linestyle": style, "label": run.label, "linewidth": 1.8}
        gaps = np.maximum(np.array([entry.gap for entry in trace]) / scale, MIN_GAP)
        columns = ("seconds", "iteration", "kernel_evaluations")
        for axis, name in zip((by_seconds, by_iterations, by_evaluations), columns, strict=True):
            _plot_gap(axis, np.array([float(getattr(entry, name)) for entry in trace]), gaps, run, line)
        _plot_objectives(objectives, trace, optimum, scale, line)
    label = "relative duality gap" if scale != 1.0 else "duality gap"
    _finish(by_seconds, "gap over time", "seconds", label)
    _finish(by_iterations, "gap over iterations", "iterations (their cost differs between solvers)", label)
    _finish(by_evaluations, "gap over kernel evaluations", "kernel evaluations", label)
    if not by_evaluations.lines:
        position = {"ha": "center", "transform": by_evaluations.transAxes}
        by_evaluations.text(0.5, 0.5, "no solver evaluated the kernel", **position)
    _finish_objectives(objectives)
    longest = max((run.trace[-1].seconds for run in runs), default=0.0)
    for axis in (by_seconds, objectives):
        if longest > 0 and axis.get_xlim()[0] < MIN_TIME_FRACTION * longest:
            axis.set_xlim(left=MIN_TIME_FRACTION * longest)
    handles, labels = by_seconds.get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    figure.suptitle(title)
    return figure


def draw_off_screen(runs: Sequence[SolverRun], title: str) -> Figure:
    """Draw the four plots on a figure without a window, to be saved."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return draw(runs, title, Figure(figsize=FIGURE_SIZE, layout="constrained"))


def require_matplotlib() -> None:
    """Raise ImportError if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise ImportError("plots need matplotlib: pip install 'maxmargin[plot]'")


def thinned(trace: tuple[Progress, ...]) -> tuple[Progress, ...]:
    """Return at most `MAX_POINTS` entries, the first and the last included, at logarithmic distances."""
    if len(trace) <= MAX_POINTS:
        return trace
    indices = np.unique(np.geomspace(1, len(trace), MAX_POINTS).astype(int)) - 1
    return tuple(trace[index] for index in indices)


def _optimum(runs: Sequence[SolverRun]) -> tuple[float, float]:
    """Return the mean of the best primal and dual value, and its magnitude as a scale (1 if it is about 0)."""
    known = [run.certificate for run in runs if run.certificate is not None]
    bounds = min((one.primal for one in known), default=np.inf), max((one.dual for one in known), default=-np.inf)
    finite = [bound for bound in bounds if np.isfinite(bound)]
    optimum = float(np.mean(finite)) if finite else 0.0
    return optimum, abs(optimum) if abs(optimum) > np.sqrt(np.finfo(float).tiny) else 1.0


def _plot_gap(axis: Axes, x: Floats, gaps: Floats, run: SolverRun, line: dict[str, Any]) -> None:
    """Draw a line, and at its end a dot if the solver converged, a cross otherwise."""
    shown = (x > 0) & np.isfinite(gaps)
    if not shown.any():
        return
    axis.plot(x[shown], gaps[shown], **line)
    marker = "o" if run.outcome == "converged" else "X"
    axis.plot(x[shown][-1], gaps[shown][-1], marker, color=line["color"], markersize=6)


def _plot_objectives(
    axis: Axes, trace: tuple[Progress, ...], optimum: float, scale: float, line: dict[str, Any]
) -> None:
    """Draw primal and dual value relative to the optimum."""
    seconds = np.array([entry.seconds for entry in trace])
    for values in ([entry.primal for entry in trace], [entry.dual for entry in trace]):
        distance = (np.array(values) - optimum) / scale
        shown = np.isfinite(distance) & (seconds > 0)
        axis.plot(seconds[shown], distance[shown], **line)


def _finish(axis: Axes, title: str, xlabel: str, ylabel: str) -> None:
    axis.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if axis.lines:
        axis.set(xscale="log", yscale="log")
    axis.grid(True, alpha=0.3)


def _finish_objectives(axis: Axes) -> None:
    axis.set(title="primal and dual objective", xlabel="seconds", ylabel="(value − optimum) / |optimum|")
    if axis.lines:
        axis.set_xscale("log")
        axis.set_yscale("symlog", linthresh=1e-4)
        axis.axhline(0.0, color="#30343a", linewidth=0.8)
    axis.grid(True, alpha=0.3)
