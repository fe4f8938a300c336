"""Hits and misses of the row cache.

Kernel evaluations take most of the time of a fit, and the same few rows are requested repeatedly (Bottou & Lin 1.7.2).
Once the cache holds the rows of the support vectors, nearly all requests are hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin._typing import Indices
from maxmargin.plotting.style import COLOURS, Display, axes_for, hide_spines, legend_below
from maxmargin.problems import Counters, DualProblem
from maxmargin.solvers import PairwiseSolver

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class CacheDisplay(Display):
    """Hits and misses of the row cache in one or several solves.

    Create it with `from_problem` or `from_solutions`.

    Attributes
    ----------
    names : list of str
        Names of the solves.
    misses, hits : int arrays
        Requests for rows that had to be computed, and for rows in the cache. (A miss may compute several rows at
        once.)
    ax_, figure_
        Axes and figure of the last `plot`.

    Examples
    --------
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.formulations.c_classification import pose
    >>> from maxmargin.kernels import Gaussian, Points
    >>> from maxmargin.matrices import KernelMatrix
    >>> from maxmargin.plotting import CacheDisplay
    >>> X, y = chessboard(300)
    >>> problem = pose(KernelMatrix(Gaussian(1.0), Points(X)), 2.0 * y - 1, costs=[10.0] * 300)
    >>> display = CacheDisplay.from_problem(problem, fractions=[0.1, 1.0])
    >>> bool(display.misses[0] > display.misses[1])
    True
    """

    names: list[str]
    misses: Indices
    hits: Indices

    @classmethod
    def from_problem(
        cls,
        problem: DualProblem,
        *,
        fractions: Iterable[float] = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
        solver: Any = None,
        ax: Axes | None = None,
    ) -> CacheDisplay:
        """Solve a problem with caches of several sizes and draw the hits and misses.

        Parameters
        ----------
        problem : DualProblem
        fractions : iterable of float
            Cache sizes as fractions of the kernel matrix.
        solver : solver object with a field ``cache_bytes``, optional
            ``PairwiseSolver()`` by default.
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        CacheDisplay
        """
        solver = PairwiseSolver() if solver is None else solver
        if not hasattr(solver, "cache_bytes"):
            raise ValueError(f"{type(solver).__name__} has no row cache; use a solver with a field cache_bytes")
        matrix_bytes = 8 * problem.size**2
        solutions = {
            f"{fraction:.4g}": replace(solver, cache_bytes=int(fraction * matrix_bytes)).solve(problem)
            for fraction in fractions
        }
        display = cls.from_solutions(solutions, ax=ax)
        display.ax_.set_xlabel("cache size (fraction of the kernel matrix)")
        return display

    @classmethod
    def from_solutions(cls, solutions: Mapping[str, Any], *, ax: Axes | None = None) -> CacheDisplay:
        """Draw the cache counters of solutions.

        Parameters
        ----------
        solutions : dict from names to Solution or Counters
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure is created.

        Returns
        -------
        CacheDisplay
        """
        if not solutions:
            raise ValueError("solutions is empty; pass at least one Solution or Counters")
        counters: list[Counters] = [getattr(solution, "counters", solution) for solution in solutions.values()]
        return cls(
            [str(name) for name in solutions],
            np.array([one.cache_misses for one in counters]),
            np.array([one.cache_hits for one in counters]),
        ).plot(ax)

    @property
    def hit_rates(self) -> np.ndarray:
        """Fraction of hits among the requests, 0 where there were no requests."""
        return np.asarray(self.hits / np.maximum(1, self.hits + self.misses))

    def plot(self, ax: Axes | None = None) -> CacheDisplay:
        """Draw on the given axes, by default on a new figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        ax = axes_for(ax, (6.0, 3.8))
        positions = np.arange(len(self.names))
        ax.bar(positions, self.misses, width=0.7, color=COLOURS[1], label="cache misses (row computed)")
        ax.bar(positions, self.hits, width=0.7, bottom=self.misses, color=COLOURS[5], label="cache hits")
        for position, rate, total in zip(positions, self.hit_rates, self.misses + self.hits, strict=True):
            ax.annotate(f"{rate:.0%}", (position, total), xytext=(0, 2), textcoords="offset points", ha="center",
                        va="bottom", fontsize="small")  # fmt: skip
        ax.set(xlabel="solve", ylabel="row requests", xticks=positions, xticklabels=self.names)
        ax.margins(y=0.12)
        hide_spines(ax)
        legend_below(ax)
        return self._drawn_on(ax)
