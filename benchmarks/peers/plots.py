"""Plots of the results: ratios, memory, time against rows, time against gap.

    python -m benchmarks.peers.plots benchmarks/peers/results/kernel.json

redraws the plots of stored results.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axis import Axis
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.peers.libraries import BASELINE, OURS
from benchmarks.peers.report import peers_of
from benchmarks.peers.summary import FINISHED, at_least

#: The colour-blind safe palette of Okabe and Ito.
COLOURS = {
    OURS: "#0072B2",
    BASELINE: "#999999",
    "scikit-learn": "#E69F00",
    "sklearnex": "#009E73",
    "libsvm": "#CC79A7",
    "thundersvm": "#56B4E9",
    "liblinear": "#009E73",
    "sgd": "#CC79A7",
    "skglm": "#56B4E9",
    "snapml": "#D55E00",
}
MARKERS = {OURS: "o", BASELINE: "x", "scikit-learn": "s", "sklearnex": "^", "libsvm": "D", "thundersvm": "v"}
LIMIT_COLOUR = "#444444"

STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "savefig.dpi": 150,
}


def draw(benchmark: dict[str, Any], folder: Path, stem: str) -> list[Path]:
    """Draw the plots of a benchmark and return their files."""
    if not benchmark["cases"]:
        return []
    with plt.rc_context(STYLE):
        if benchmark["suite"] == "growth":
            return [_save(growth(benchmark), folder / f"{stem}.png")]
        by_gap: dict[float, list[dict[str, Any]]] = {}
        for case in benchmark["cases"]:
            by_gap.setdefault(case.get("target", 0.0), []).append(case)
        files = []
        for gap, cases in by_gap.items():
            plot = ratios({**benchmark, "cases": cases})
            if gap:
                plot.suptitle(f"to a relative duality gap of {gap:g}", fontsize=10)
            files.append(_save(plot, folder / f"{stem}-ratios{f'-{gap:g}' if gap else ''}.png"))
        # Memory is largest at the smallest gap; for linear models it does not depend on C.
        shown = [case for case in cases if not gap or case["C"] == 1] or cases
        return [*files, _save(memory({**benchmark, "cases": shown}), folder / f"{stem}-memory.png")]


def draw_curves(benchmark: dict[str, Any], folder: Path, stem: str) -> Path:
    """Draw time against gap and return the file."""
    with plt.rc_context(STYLE):
        return _save(curves(benchmark), folder / f"{stem}.png")


def ratios(benchmark: dict[str, Any]) -> plt.Figure:
    """Return bars of the time of each peer divided by that of maxmargin; for a killed peer it is a lower bound."""
    cases = [case for case in benchmark["cases"] if case["libraries"].get(OURS, {}).get("status") in FINISHED]
    peers = peers_of(cases)
    figure, axes, height = _bars(len(cases), len(peers))
    extent = 1.0, 1.0
    for place, case in enumerate(cases):
        ours = case["libraries"][OURS]["seconds"]
        for k, peer in enumerate(peers):
            result = case["libraries"].get(peer, {"status": "not run"})
            status = result["status"]
            if status not in (*FINISHED, "killed"):
                continue
            value = (at_least(case, peer) if status == "killed" else result["seconds"]) / ours
            at = place + (k - (len(peers) - 1) / 2) * height
            # Bars start at 1: to the right maxmargin is faster, to the left slower.
            hatch = {"stopped short": "////", "killed": "...."}.get(status)
            extent = min(extent[0], value), max(extent[1], value)
            axes.barh(at, value - 1, 0.92 * height, left=1, color=COLOURS[peer], hatch=hatch, edgecolor="white", lw=0)
            text = f"{value:.2g}" if value < 10 else f"{value:.0f}"
            text = f"> {text}" if status == "killed" else text
            axes.annotate(
                text, (value, at), (4 if value >= 1 else -4, 0), textcoords="offset points", va="center",
                ha="left" if value >= 1 else "right", fontsize=7,
            )  # fmt: skip
    axes.set_xscale("log")
    margin = max(1.3, (extent[1] / extent[0]) ** 0.1)  # space for the labels
    axes.set_xlim(extent[0] / margin, extent[1] * margin)
    _plain_numbers(axes.xaxis)
    axes.axvline(1.0, color="black", lw=1)
    axes.set_xlabel("seconds of the peer / seconds of maxmargin (right of 1: maxmargin is faster)")
    _name_cases(axes, cases)
    handles = [Patch(color=COLOURS[peer], label=peer) for peer in peers]
    handles.append(Patch(facecolor="#999999", hatch="////", edgecolor="white", label="missed the tolerance"))
    handles.append(Patch(facecolor="#999999", hatch="....", edgecolor="white", label="killed: at least"))
    _legend_above(axes, handles)
    return figure


def memory(benchmark: dict[str, Any]) -> plt.Figure:
    """Return bars of the peak memory of each process; the pale part was allocated before the fit."""
    cases = benchmark["cases"]
    names = [OURS, *peers_of(cases)]
    figure, axes, height = _bars(len(cases), len(names))
    for place, case in enumerate(cases):
        for k, name in enumerate(names):
            result = case["libraries"].get(name, {})
            if "peak_mb" not in result:
                continue
            at = place + (k - (len(names) - 1) / 2) * height
            before, peak = result["before_mb"], result["peak_mb"]
            axes.barh(at, before, 0.92 * height, color=COLOURS[name], alpha=0.35, lw=0)
            axes.barh(at, peak - before, 0.92 * height, left=before, color=COLOURS[name], lw=0)
    axes.set_xlabel("peak memory of the process, MB (pale: before the fit)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    _name_cases(axes, cases)
    _legend_above(axes, [Patch(color=COLOURS[name], label=name) for name in names])
    return figure


def growth(benchmark: dict[str, Any]) -> plt.Figure:
    """Return time against rows, both logarithmic."""
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    cases = benchmark["cases"]
    for name in [OURS, *peers_of(cases)]:
        done = [c for c in cases if c["libraries"].get(name, {}).get("status") in FINISHED]
        sizes, seconds = [c["rows"] for c in done], [c["libraries"][name]["seconds"] for c in done]
        axes.plot(sizes, seconds, marker=MARKERS[name], color=COLOURS[name], lw=2 if name == OURS else 1.4, label=name)
    measured = [c for c in cases if c["limit"]]
    sizes, seconds = [c["rows"] for c in measured], [c["limit"]["seconds"] for c in measured]
    axes.plot(sizes, seconds, "--", color=LIMIT_COLOUR, label="limit")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([c["rows"] for c in cases], [f"{c['rows']:,}" for c in cases])
    axes.minorticks_off()
    _plain_numbers(axes.yaxis)
    axes.set_xlabel("rows of covtype")
    axes.set_ylabel("seconds of fit")
    _legend_above(axes)
    return figure


def curves(benchmark: dict[str, Any]) -> plt.Figure:
    """Return the relative duality gap against seconds, both logarithmic."""
    figure, axes = plt.subplots(figsize=(7, 5), layout="constrained")
    for name, curve in benchmark["curves"].items():
        points = curve["points"]
        if not points:
            continue
        seconds, gaps = [p["seconds"] for p in points], [max(p["relative_gap"], 1e-16) for p in points]
        style = {"color": COLOURS[name], "marker": MARKERS[name]}
        axes.plot(seconds, gaps, lw=0 if name == OURS else 1.4, label=name, **style)
        trace = np.array(curve.get("trace") or np.empty((0, 2)))
        if len(trace):
            axes.plot(
                trace[:, 0], np.maximum(trace[:, 1], 1e-16), color=COLOURS[name], lw=2, label=f"{name}, in one fit"
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    _plain_numbers(axes.xaxis)
    axes.set_ylim(top=min(axes.get_ylim()[1], 3.0))  # early iterates are meaningless
    axes.set_xlabel("seconds")
    axes.set_ylabel("duality gap / primal value, in float64")
    what = f"{benchmark['case']}, {benchmark['rows']:,} x {benchmark['features']:,}, C = {benchmark['C']:g}"
    figure.suptitle(f"{what}; a mark for each tolerance 0.1, …, 1e-4", fontsize=10)
    _legend_above(axes)
    return figure


def _bars(cases: int, libraries: int) -> tuple[plt.Figure, plt.Axes, float]:
    """Return a figure for groups of horizontal bars, and the height of a bar."""
    inches = 1.5 + cases * max(0.3, 0.16 * libraries + 0.08)
    figure, axes = plt.subplots(figsize=(8, inches), layout="constrained")
    axes.grid(visible=False, axis="y")
    return figure, axes, 0.8 / max(1, libraries)


def _name_cases(axes: plt.Axes, cases: list[dict[str, Any]]) -> None:
    axes.set_yticks(range(len(cases)), [case["name"] for case in cases])
    axes.set_ylim(len(cases) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _legend_above(axes: plt.Axes, handles: list[Any] | None = None) -> None:
    handles = axes.get_legend_handles_labels()[0] if handles is None else handles
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=min(3, len(handles)))


def _plain_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers, more densely on a short axis."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _save(figure: plt.Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)
    return path


def main(path: Path) -> None:
    benchmark = json.loads(path.read_text(encoding="utf-8"))
    if "curves" in benchmark:
        print(draw_curves(benchmark, path.parent, path.stem))
        return
    for path_of_plot in draw(benchmark, path.parent, path.stem):
        print(path_of_plot)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
