"""Convergence of a solver: primal and dual value, duality gap or KKT violation.

By weak duality (Bottou & Lin 1.9) the optimum lies between the primal and the dual value; their difference is the
duality gap. Solvers stop by the KKT violation (1.11).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from maxmargin._typing import Floats
from maxmargin.estimators.fit_trace import MulticlassTrace
from maxmargin.plotting.style import COLOURS, INK, LINES, Display, axes_for, colour, hide_spines
from maxmargin.problems import Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Quantities of the vertical and of the horizontal axis, with their labels.
QUANTITIES = {"objective": "objective", "gap": "duality gap", "violation": "KKT violation"}
AGAINST = {"iteration": "iterations", "seconds": "seconds", "kernel_evaluations": "kernel evaluations"}


@dataclass
class ConvergenceDisplay(Display):
    """Primal and dual value, duality gap or KKT violation of one or several solvers during a fit.

    Create it with `from_trace`.

    Attributes
    ----------
    traces : dict from names to lists of Progress
    ax_, figure_
        Axes and figure of the last `plot`.

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

    @classmethod
    def from_trace(
        cls, trace: Any, *, quantity: str | None = None, against: str = "iteration", ax: Axes | None = None
    ) -> ConvergenceDisplay:
        """Draw the trace of one or several solvers.

        Parameters
        ----------
        trace : Trace, Solution, FitTrace or list of Progress; or a dict from names to them, or MulticlassTrace
            Progress recorded by `maxmargin.solvers.Trace`; for several solvers a dict by name. That of several classes
            has a line for each pair.
        quantity : {"objective", "gap", "violation"}, optional
            "objective" (primal and dual value) by default, "gap" for several solvers.
        against : {"iteration", "seconds", "kernel_evaluations"}
            Quantity of the horizontal axis.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        ConvergenceDisplay
        """
        trace = trace.pairs if isinstance(trace, MulticlassTrace) else trace
        named = trace if isinstance(trace, Mapping) else {"": trace}
        display = cls({str(name): _progress_entries(one, str(name)) for name, one in named.items()})
        return display.plot(ax, quantity=quantity, against=against)

    def values(self, name: str, quantity: str) -> Floats:
        """Return a field of Progress, such as "primal" or "seconds", for each entry of the trace with this name."""
        return np.array([getattr(entry, quantity) for entry in self.traces[name]], dtype=float)

    def plot(
        self, ax: Axes | None = None, *, quantity: str | None = None, against: str = "iteration"
    ) -> ConvergenceDisplay:
        """Draw on the given axes, by default on a new figure.

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
            x = self.values(name, against)
            if quantity == "objective":
                self._draw_objective(ax, number, name, x)
            else:
                y = self.values(name, quantity)
                shown = np.isfinite(y) & (y > 0)  # logarithmic scale
                ax.plot(x[shown], y[shown], color=colour(number) if name else INK, label=name,
                        linestyle=LINES[number % len(LINES)], **_line_style(int(shown.sum())))  # fmt: skip
        if quantity != "objective":
            ax.set_yscale("log")
        ax.grid(alpha=0.25)
        ax.set(xlabel=AGAINST[against], ylabel=QUANTITIES[quantity])
        hide_spines(ax)
        if quantity == "objective" or any(self.traces):
            ax.legend(frameon=False, fontsize="small")
        return self._drawn_on(ax)

    def _draw_objective(self, ax: Axes, number: int, name: str, x: Floats) -> None:
        primal, dual = self.values(name, "primal"), self.values(name, "dual")
        best_primal, best_dual = np.minimum.accumulate(primal), np.maximum.accumulate(dual)
        primal_colour, dual_colour = (COLOURS[1], COLOURS[0]) if not name else (colour(number), colour(number))
        prefix = f"{name}: " if name else ""
        upper = np.where(np.isfinite(best_primal), best_primal, best_dual)
        ax.fill_between(x, best_dual, upper, color=primal_colour, alpha=0.1, linewidth=0)
        ax.plot(x, primal, color=primal_colour, label=f"{prefix}primal value", **_line_style(len(x)))
        ax.plot(x, dual, color=dual_colour, linestyle="--", label=f"{prefix}dual value", **_line_style(len(x)))


def _progress_entries(trace: Any, name: str) -> list[Progress]:
    """Return the entries of a trace or of an object with a trace."""
    for attribute in ("entries", "trace"):
        trace = getattr(trace, attribute, trace)
    entries = list(cast(Iterable[Progress], trace)) if isinstance(trace, Iterable) else None
    if entries is None or not all(isinstance(entry, Progress) for entry in entries):
        raise TypeError(f"trace must be a Trace, a Solution, a FitTrace or a list of Progress, not {trace!r}")
    if not entries:
        which = f"the trace of {name!r}" if name else "the trace"
        raise ValueError(f"{which} is empty; solve with callback=maxmargin.solvers.Trace()")
    return entries


def _line_style(count: int) -> dict[str, Any]:
    """Return the style of a line with this number of points: markers for few points, a thin line for many."""
    return (
        {"marker": "o", "markersize": 3.5, "linewidth": 1.8}
        if count <= 30
        else {"linewidth": 1.8 if count < 300 else 1.1}
    )
