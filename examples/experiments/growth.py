"""Growth of support vectors and time with the number of samples: 2Bn, n² and n³ (Bottou & Lin 1.4).

Two overlapping Gaussian classes have a known Bayes error B. With a moderate C the number of support vectors is
compared with 2Bn; with a small and a large C the growth of the work is fitted by a power of n.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from examples.experiments import common
from examples.experiments.common import Data, Options, Solver
from matplotlib.figure import Figure

from maxmargin.solvers import BlockSolver, PairwiseSolver

ERRORS = (0.05, 0.1, 0.2)
COSTS = {"small C": 1.0, "large C": 1000.0}


class Run(NamedTuple):
    """One fit: B, C, solver, n, and the results."""

    error: float
    regime: str
    solver: str
    n: int
    support: int
    free: int
    steps: int
    values: int
    seconds: float

    @property
    def work(self) -> int:
        """Steps × n: each step updates the whole gradient, unless variables are shrunk."""
        return self.n * self.steps


class Results(NamedTuple):
    """Runs for the number of support vectors, and runs for the work."""

    counting: list[Run]
    timing: list[Run]


def measure(options: Options) -> Results:
    counting = [
        fit(Data("", *common.gaussians(n, error), 1.0, 0.5), error, "2-D", "block", BlockSolver())
        for error in ERRORS
        for n in ([250, 1000, 4000] if options.quick else [250, 500, 1000, 2000, 4000, 8000, 16000])
    ]
    sizes = [250, 500, 1000] if options.quick else [500, 1000, 2000, 4000, 8000]
    solvers = {"pairwise": PairwiseSolver(finish_below=0, cache_bytes=2**30), "block": BlockSolver()}
    timing = [
        fit(Data("", *common.gaussians(n, 0.2, 10), cost, 0.1), 0.2, regime, name, solver)
        for regime, cost in COSTS.items()
        for name, solver in solvers.items()
        for n in sizes
    ]
    return Results(counting, timing)


def fit(data: Data, error: float, regime: str, name: str, solver: Solver) -> Run:
    problem = data.pose()
    solution, seconds = common.solve(solver, problem)
    counters = solution.counters
    return Run(
        error, regime, name, problem.size, *common.support(problem, solution.dual),
        counters.iterations, counters.kernel_evaluations, seconds,
    )  # fmt: skip


def power(runs: list[Run], what: str) -> float:
    """Return the exponent of n in the growth of a quantity."""
    return common.exponent([run.n for run in runs], [getattr(run, what) for run in runs])


def series(runs: list[Run]) -> dict[tuple[str, str], list[Run]]:
    """Return the runs by C and solver."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.regime, run.solver), []).append(run)
    return found


def tables(results: Results) -> str:
    sizes = sorted({run.n for run in results.counting})
    shares = {(run.error, run.n): run.support / run.n for run in results.counting}
    rows = [[f"{B:g}", f"{2 * B:.2f}", *(f"{shares[B, n]:.3f}" for n in sizes)] for B in ERRORS]
    counting = common.markdown(" | ".join(["B", "2B", *(f"n = {n:,}" for n in sizes)]), rows)
    rows = [
        [f"{regime}, {solver}", run.n, run.support, run.free, f"{run.steps:,}", f"{run.values:,}", f"{run.seconds:.3f}"]
        for (regime, solver), runs in series(results.timing).items()
        for run in runs
    ]
    timing = common.markdown("C, solver | n | S | free | steps | kernel values | seconds", rows)
    quantities = ("support", "free", "steps", "values", "work", "seconds")
    rows = [
        [f"{regime}, {solver}", *(f"{power(runs, what):.2f}" for what in quantities)]
        for (regime, solver), runs in series(results.timing).items()
    ]
    header = "exponent of n in | S | free | steps | kernel values | steps × n | seconds"
    return "\n\n".join(
        [
            "Support vectors as a fraction of n (2-D, γ = 0.5, C = 1):", counting,
            "Growth (10-D, B = 0.2, γ = 0.1, C = 1 and C = 1000, one thread):", timing,
            "Exponents fitted to all rows of that table:", common.markdown(header, rows),
        ]
    )  # fmt: skip


def draw(results: Results) -> Figure:
    picture, (left, middle, right) = common.figure(3)
    for error, colour, mark in zip(ERRORS, [common.GREEN, common.ORANGE, common.BLUE], "sod", strict=True):
        runs = [run for run in results.counting if run.error == error]
        left.plot(
            [r.n for r in runs], [r.support / r.n for r in runs], mark + "-", color=colour, label=f"B = {error:g}"
        )
        left.axhline(2 * error, color=colour, linestyle=":", linewidth=2)
    left.set(xscale="log", xlabel="n", ylabel="support vectors / n", ylim=0, title="S / n falls to 2B (dotted)")
    left.grid(alpha=0.3)
    left.legend()
    colours = {"small C": common.BLUE, "large C": common.RED}
    for (regime, solver), runs in series(results.timing).items():
        style = "o-" if solver == "pairwise" else "s--"
        for axes, what in ((middle, "work"), (right, "seconds")):
            label = f"{regime}, {solver}: n^{power(runs, what):.1f}"
            axes.plot([r.n for r in runs], [getattr(r, what) for r in runs], style, color=colours[regime], label=label)
    common.logarithmic(middle, "n", "steps × n", "Work, and the power of n that fits it")
    common.logarithmic(right, "n", "seconds", "Time, and the power of n that fits it")
    for axes in (left, middle, right):
        common.plain_ticks(axes.xaxis)
    for axes in (middle, right):
        axes.legend(fontsize="small")
    return picture


if __name__ == "__main__":
    common.run(sys.modules[__name__], common.parse(__doc__))
