"""A picture of the row cache: how many rows of the matrix were computed, and how many were at hand.

Kernel values take most of the time of a fit, and the same few rows are asked for again and again (Bottou & Lin 1.7.2).
With room for the rows of the support vectors nearly all requests are answered from memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Indices
from maxmargin.plotting.style import COLOURS, axes_for, bare, figure_of, legend_below
from maxmargin.problems import Counters, DualProblem
from maxmargin.solvers import PairwiseSolver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class CacheDisplay:
    """Requests for rows of the matrix in one or several solves: computed anew, or reused.

    Make it with `from_problem` or `from_solutions`.

    Attributes
    ----------
    names : list of str
        Of the solves.
    computed, reused : int arrays
        Requests for a row that had to be computed, and for one that was at hand. (Where rows come cheaper together, a
        request computes others along with its own.)
    ax_, figure_
        What `plot` drew on.

    Examples
    --------
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.formulations.c_classification import pose
    >>> from maxmargin.kernels import Gaussian, Points
    >>> from maxmargin.matrices import KernelMatrix
    >>> from maxmargin.plotting import CacheDisplay
    >>> X, y = chessboard(300)
    >>> problem = pose(KernelMatrix(Gaussian(1.0), Points(X)), 2.0 * y - 1, costs=[10.0] * 300)
    >>> display = CacheDisplay.from_problem(problem, parts=[0.1, 1.0])
    >>> bool(display.computed[0] > display.computed[1])
    True
    """

    names: list[str]
    computed: Indices
    reused: Indices
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_problem(
        cls,
        problem: DualProblem,
        *,
        parts: Iterable[float] = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        solver: Any = None,
        ax: Axes | None = None,
    ) -> CacheDisplay:
        """Solve a problem with room for smaller and larger parts of its matrix, and draw what was computed.

        Parameters
        ----------
        problem : DualProblem
        parts : iterable of float
            Room for so many of the rows, as parts of all.
        solver : solver object with a field ``cache_bytes``, optional
            ``PairwiseSolver()`` by default.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CacheDisplay
        """
        solver = PairwiseSolver() if solver is None else solver
        if not hasattr(solver, "cache_bytes"):
            raise ValueError(f"{type(solver).__name__} keeps no rows; use a solver with a field cache_bytes")
        whole = 8 * problem.size**2
        solved = {f"{part:.4g}": replace(solver, cache_bytes=int(part * whole)).solve(problem) for part in parts}
        display = cls.from_solutions(solved, ax=ax)
        display.ax_.set_xlabel("room in the cache, as a part of the matrix")
        return display

    @classmethod
    def from_solutions(cls, solutions: Mapping[str, Any], *, ax: Axes | None = None) -> CacheDisplay:
        """Draw what was counted in solves.

        Parameters
        ----------
        solutions : dict from names to Solution or Counters
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        CacheDisplay
        """
        if not solutions:
            raise ValueError("there must be at least one solution to draw")
        counted: list[Counters] = [getattr(one, "counters", one) for one in solutions.values()]
        return cls(
            [str(name) for name in solutions],
            np.array([counters.cache_misses for counters in counted]),
            np.array([counters.cache_hits for counters in counted]),
        ).plot(ax)

    @property
    def hit_rates(self) -> np.ndarray:
        """The part of the requests that were answered from memory, 0 where there were none."""
        return np.asarray(self.reused / np.maximum(1, self.reused + self.computed))

    def plot(self, ax: Axes | None = None) -> CacheDisplay:
        """Draw on the given axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 3.8))
        at = np.arange(len(self.names))
        ax.bar(at, self.computed, width=0.7, color=COLOURS[1], label="had to be computed")
        ax.bar(at, self.reused, width=0.7, bottom=self.computed, color=COLOURS[5], label="were in the cache")
        for position, rate, total in zip(at, self.hit_rates, self.computed + self.reused, strict=True):
            ax.annotate(f"{rate:.0%}", (position, total), xytext=(0, 2), textcoords="offset points", ha="center",
                        va="bottom", fontsize="small")  # fmt: skip
        ax.set(ylabel="requests for a row", xticks=at, xticklabels=self.names)
        ax.margins(y=0.12)
        bare(ax)
        ax.set_xlabel("solve")
        legend_below(ax)
        self.ax_, self.figure_ = ax, figure_of(ax)
        return self
