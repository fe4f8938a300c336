"""A picture of how a solver came to its solution: primal and dual value close in on the optimum from both sides.

Weak duality (Bottou & Lin 1.9) puts the optimum between them at any time, and their distance, the gap, is what is not
yet proved. The violation is the number that solvers stop by (1.11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from maxmargin._typing import Floats
from maxmargin.plotting.style import COLOURS, INK, LINES, axes_for, bare, colour, figure_of
from maxmargin.problems import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What is drawn, and what it is called.
QUANTITIES = {"objective": "objective", "gap": "duality gap", "violation": "violation"}
AGAINST = {"iteration": "iterations", "seconds": "seconds", "kernel_evaluations": "kernel values computed"}


@dataclass
class ConvergenceDisplay:
    """Primal and dual value, gap or violation of one or several solvers on their way.

    Make it with `from_trace`.

    Attributes
    ----------
    traces : dict from names to lists of Progress
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.plotting import ConvergenceDisplay
    >>> from maxmargin.solvers import PairwiseSolver, Trace
    >>> trace = Trace()
    >>> model = SVC(gamma=1.0, solver=PairwiseSolver(), callback=trace).fit(*chessboard(300))
    >>> ConvergenceDisplay.from_trace(trace).ax_.get_xlabel()
    'iterations'
    """

    traces: dict[str, list[Progress]] = field(repr=False)
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_trace(
        cls, trace: Any, *, quantity: str | None = None, against: str = "iteration", ax: Axes | None = None
    ) -> ConvergenceDisplay:
        """Draw what solvers told on their way.

        Parameters
        ----------
        trace : Trace, Solution, FitTrace or list of Progress; or a dict from names to them
            What was kept by a `maxmargin.solvers.Trace`; or of several solvers by name.
        quantity : {"objective", "gap", "violation"}, optional
            "objective" by default, primal and dual value; of several solvers "gap".
        against : {"iteration", "seconds", "kernel_evaluations"}
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ConvergenceDisplay
        """
        named = trace if isinstance(trace, Mapping) else {"": trace}
        display = cls({str(name): _entries(one, str(name)) for name, one in named.items()})
        return display.plot(ax, quantity=quantity, against=against)

    def values(self, name: str, quantity: str) -> Floats:
        """Return a field of Progress, such as "primal" or "seconds", along the trace of this name."""
        return np.array([getattr(entry, quantity) for entry in self.traces[name]], dtype=float)

    def plot(
        self, ax: Axes | None = None, *, quantity: str | None = None, against: str = "iteration"
    ) -> ConvergenceDisplay:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        quantity : {"objective", "gap", "violation"}, optional
        against : {"iteration", "seconds", "kernel_evaluations"}

        Returns
        -------
        self
        """
        quantity = ("objective" if len(self.traces) == 1 else "gap") if quantity is None else quantity
        for name, choice, known in (("quantity", quantity, QUANTITIES), ("against", against, AGAINST)):
            if choice not in known:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {choice!r}")
        ax = axes_for(ax, (6.0, 3.8))
        for number, name in enumerate(self.traces):
            across = self.values(name, against)
            if quantity == "objective":
                self._draw_objective(ax, number, name, across)
            else:
                height = self.values(name, quantity)
                shown = np.isfinite(height) & (height > 0)  # the scale has no 0
                ax.plot(across[shown], height[shown], color=colour(number) if name else INK, label=name,
                        linestyle=LINES[number % len(LINES)], **_stroke(int(shown.sum())))  # fmt: skip
        if quantity != "objective":
            ax.set_yscale("log")
        ax.grid(alpha=0.25)
        ax.set(xlabel=AGAINST[against], ylabel=QUANTITIES[quantity])
        bare(ax)
        if quantity == "objective" or any(self.traces):
            ax.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self

    def _draw_objective(self, ax: Axes, number: int, name: str, across: Floats) -> None:
        primal, dual = self.values(name, "primal"), self.values(name, "dual")
        best, least = np.minimum.accumulate(primal), np.maximum.accumulate(dual)
        above, below = (COLOURS[1], COLOURS[0]) if not name else (colour(number), colour(number))
        prefix = f"{name}: " if name else ""
        ax.fill_between(across, least, np.where(np.isfinite(best), best, least), color=above, alpha=0.1, linewidth=0)
        ax.plot(across, primal, color=above, label=f"{prefix}primal value", **_stroke(len(across)))
        ax.plot(across, dual, color=below, linestyle="--", label=f"{prefix}dual value", **_stroke(len(across)))


def _entries(trace: Any, name: str) -> list[Progress]:
    """Return the entries of a trace, or of what carries one."""
    for attribute in ("entries", "trace"):
        trace = getattr(trace, attribute, trace)
    entries = list(cast(Iterable[Progress], trace)) if isinstance(trace, Iterable) else None
    if entries is None or not all(isinstance(entry, Progress) for entry in entries):
        raise TypeError(f"a trace is a Trace, a Solution or a list of Progress, not {trace!r}")
    if not entries:
        whose = f"the trace of {name!r}" if name else "the trace"
        raise ValueError(f"{whose} is empty: solve with callback=maxmargin.solvers.Trace()")
    return entries


def _stroke(count: int) -> dict[str, Any]:
    """Return how a line of so many points is drawn: few points are marked, many make a thin line."""
    return (
        {"marker": "o", "markersize": 3.5, "linewidth": 1.8}
        if count <= 30
        else {"linewidth": 1.8 if count < 300 else 1.1}
    )
