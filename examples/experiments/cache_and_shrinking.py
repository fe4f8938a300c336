"""The effect of cache size and shrinking (Bottou & Lin 1.4.3, 1.7.3, 1.7.4.2).

Pair steps on single rows, no exact finish: the algorithm of the text. The result does not depend on the cache size;
steps differ only by the order of variables after shrinking.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from examples.experiments import common
from examples.experiments.common import Data, Options
from matplotlib.figure import Figure

from maxmargin.datasets import chessboard
from maxmargin.solvers import PairwiseSolver

#: Cache sizes as fractions of the matrix.
CACHE_SIZES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


class Run(NamedTuple):
    """One fit."""

    problem: str
    shrinking: bool
    cache: float
    n: int
    support: int
    steps: int
    values: int
    hits: float
    seconds: float


def problems(options: Options) -> list[Data]:
    n = 300 if options.quick else 2000
    X, y = chessboard(n, noise=0.1)
    return [
        Data("chessboard, 10% flipped, C = 10", X, common.signs_of(y), 10.0, 1.0),
        Data("chessboard, 10% flipped, C = 100", X, common.signs_of(y), 100.0, 1.0),
        Data("gaussians, 100-D, C = 1", *common.gaussians(n, 0.1, 100), 1.0, 0.01),
    ]


def measure(options: Options) -> list[Run]:
    sizes = CACHE_SIZES[1::2] if options.quick else CACHE_SIZES
    return [fit(data, shrinking, part) for data in problems(options) for shrinking in (False, True) for part in sizes]


def fit(data: Data, shrinking: bool, cache: float) -> Run:
    problem = data.pose_row_by_row()
    budget = int(8 * cache * problem.size**2)
    solver = PairwiseSolver(shrinking=shrinking, cache_bytes=budget, finish_below=0)
    solution, seconds = common.solve(solver, problem)
    counters, (count, _) = solution.counters, common.support(problem, solution.dual)
    hits = counters.cache_hits / (counters.cache_hits + counters.cache_misses)
    return Run(
        data.name, shrinking, cache, problem.size, count,
        counters.iterations, counters.kernel_evaluations, hits, seconds,
    )  # fmt: skip


def series(runs: list[Run]) -> dict[tuple[str, bool], list[Run]]:
    """Return the runs by problem and shrinking."""
    found: dict[tuple[str, bool], list[Run]] = {}
    for run in runs:
        found.setdefault((run.problem, run.shrinking), []).append(run)
    return found


def tables(runs: list[Run]) -> str:
    rows = [
        [run.problem, "on" if run.shrinking else "off", f"{run.cache:.0%}", f"{run.steps:,}", f"{run.values:,}",
         f"{run.values / run.n / run.support:.2f}", f"{run.hits:.1%}", f"{run.seconds:.2f}"]
        for run in runs
    ]  # fmt: skip
    header = "problem | shrinking | cache | steps | kernel evaluations | / (n S) | hit rate | seconds"
    return f"n = {runs[0].n:,}\n\n{common.markdown(header, rows)}"


def draw(runs: list[Run]) -> Figure:
    picture, (left, right) = common.figure(2, 4.8)
    names = list(dict.fromkeys(run.problem for run in runs))
    colours = dict(zip(names, [common.BLUE, common.RED, common.GREEN], strict=True))
    for (name, shrinking), part in series(runs).items():
        style = {"color": colours[name], "linestyle": "-" if shrinking else "--", "marker": "o" if shrinking else "s"}
        sizes = [run.cache for run in part]
        label = f"{name}, {'with' if shrinking else 'without'} shrinking"
        left.plot(sizes, [run.values / run.n / run.support for run in part], **style, label=label)
        right.plot(sizes, [run.seconds for run in part], **style)
    common.logarithmic(left, "cache size / matrix", "kernel evaluations / (n × S)", "Kernel evaluations")
    common.logarithmic(right, "cache size / matrix", "seconds", "Time")
    for axis in (left.xaxis, left.yaxis, right.xaxis, right.yaxis):
        common.plain_ticks(axis)
    picture.legend(loc="outside lower center", ncols=2)
    return picture


if __name__ == "__main__":
    common.run(sys.modules[__name__], common.parse(__doc__))
