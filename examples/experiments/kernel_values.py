"""Kernel evaluations of a fit relative to n × S, the rows of the S support vectors (Bottou & Lin 1.4.3).

These are needed to verify a solution. A solver that knew the support vectors in advance and could store their rows
would compute no others.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np
from examples.experiments import common
from examples.experiments.common import Data, Options, Solver
from matplotlib.figure import Figure

from maxmargin.datasets import chessboard
from maxmargin.problems import DualProblem
from maxmargin.solvers import BlockSolver, PairwiseSolver

#: Cache sizes as fractions of the matrix.
CACHES = {"all": 1.0, "1/4": 0.25, "1/20": 0.05}
SOLVERS = ("pairwise, row by row", "pairwise", "block")


class Run(NamedTuple):
    """One fit: its cache size, and what it computed."""

    problem: str
    solver: str
    cache: str
    n: int
    support: int
    values: int
    seconds: float
    whole: float

    @property
    def ratio(self) -> float:
        """Kernel evaluations divided by those needed to verify the solution."""
        return self.values / (self.n * self.support)


def problems(options: Options) -> list[Data]:
    n, many = (300, 600) if options.quick else (3000, 8000)
    X, y = chessboard(n, noise=0.1)
    clean, colours = chessboard(many)
    sets = [
        Data(f"chessboard, 10% flipped, n = {n:,}", X, common.signs_of(y), 10.0, 1.0),
        Data(f"chessboard, n = {many:,}", clean, common.signs_of(colours), 10.0, 1.0),
        Data(f"gaussians, 10-D, n = {n:,}", *common.gaussians(n, 0.1, 10), 1.0, 0.1),
        Data(f"gaussians, 200-D, n = {n:,}", *common.gaussians(n, 0.1, 200), 1.0, 0.005),
    ]
    if options.data is not None:
        sets += [common.read(options.data, f"{name}.libsvm") for name in ("splice", "svmguide1", "mushrooms")]
    return sets


def measure(options: Options) -> list[Run]:
    return [
        fit(data, solver, cache, whole)
        for data in problems(options)
        for whole in [whole_matrix(data)]
        for solver in SOLVERS
        for cache in CACHES
    ]


def whole_matrix(data: Data) -> float:
    """Return the time to compute the whole matrix, a few rows at a time, in double precision."""
    matrix, started = data.pose().matrix, time.process_time()
    for rows in np.array_split(np.arange(matrix.size), max(1, matrix.size // 64)):
        matrix.rows(rows)
    return time.process_time() - started


def fit(data: Data, solver: str, cache: str, whole: float) -> Run:
    problem = data.pose_row_by_row() if solver == "pairwise, row by row" else data.pose()
    solution, seconds = common.solve(make(solver, cache, problem), problem)
    counters, (count, _) = solution.counters, common.support(problem, solution.dual)
    return Run(data.name, solver, cache, problem.size, count, counters.kernel_evaluations, seconds, whole)


def make(solver: str, cache: str, problem: DualProblem) -> Solver:
    """Return a solver with a cache for a fraction of the matrix; rows are float64 for `pairwise`, else float32."""
    values = int(CACHES[cache] * problem.size**2)
    if solver == "block":
        return BlockSolver(cache_bytes=4 * values)
    return PairwiseSolver(cache_bytes=8 * values, finish_below=0)


def tables(runs: list[Run]) -> str:
    rows = [
        [run.problem, run.solver, run.cache, f"{run.support:,}", f"{run.values:,}", f"{run.ratio:.2f}",
         f"{run.values / run.n**2:.2f}", f"{run.seconds / run.whole:.2f}"]
        for run in runs
    ]  # fmt: skip
    header = "problem | solver | cache | S | kernel values | / (n S) | / n² | seconds / seconds for the whole matrix"
    return common.markdown(header, rows)


def draw(runs: list[Run]) -> Figure:
    names = list(dict.fromkeys(run.problem for run in runs))
    picture, (left, right) = common.figure(2, 1.6 + 0.55 * len(names))
    colours = dict(zip(SOLVERS, [common.BLUE, common.SKY, common.ORANGE], strict=True))
    marks = dict(zip(CACHES, "osv", strict=True))
    for run in runs:
        place = names.index(run.problem) + 0.22 * (SOLVERS.index(run.solver) - 1)
        style = {"color": colours[run.solver], "marker": marks[run.cache], "linestyle": "", "markersize": 7}
        label = f"{run.solver}, {run.cache}" if run.problem == names[0] else None
        left.plot(run.ratio, place, **style, label=label)
        right.plot(run.seconds / run.whole, place, **style)
    left.axvspan(1.15, 1.5, color="0.85", zorder=0, label="15% to 50% more")
    for axes in (left, right):
        axes.axvline(1.0, color=common.BLACK, linestyle="--", linewidth=1)
        axes.set(xscale="log", yticks=range(len(names)), ylim=(len(names) - 0.5, -0.5))
        axes.grid(axis="x", alpha=0.3)
        common.plain_ticks(axes.xaxis)
    left.set(yticklabels=names, xlabel="kernel values / (n × S)", title="Values computed")
    right.set(yticklabels=[], xlabel="seconds / seconds for the whole matrix", title="Time")
    picture.legend(loc="outside lower center", ncols=4, title="solver, cache size as a fraction of the matrix")
    return picture


if __name__ == "__main__":
    common.run(sys.modules[__name__], common.parse(__doc__))
