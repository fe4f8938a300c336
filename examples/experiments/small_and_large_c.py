"""Steps, time, support vectors and test error from small to large C (Bottou & Lin 1.6.3).

A chessboard with flipped labels. The test error is measured on points with correct labels.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from examples.experiments import common
from examples.experiments.common import Data, Options
from matplotlib.figure import Figure

from maxmargin.datasets import chessboard
from maxmargin.problems import Status
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule

COSTS = tuple(10.0**k for k in range(-3, 7))
RULE = StoppingRule(max_iterations=1_000_000)
SOLVERS = {
    "first order": PairwiseSolver("most_violating_pair", stopping=RULE, finish_below=0),
    "second order": PairwiseSolver(stopping=RULE, finish_below=0),
    "second order, equations solved": PairwiseSolver(stopping=RULE),
    "block": BlockSolver(stopping=RULE),
}


class Run(NamedTuple):
    """One fit."""

    cost: float
    solver: str
    steps: int
    seconds: float
    support: int
    free: int
    error: float
    done: bool


def measure(options: Options) -> list[Run]:
    n = 300 if options.quick else 1000
    X, y = chessboard(n, noise=0.1)
    data = Data("", X, common.signs_of(y), 1.0, 1.0)
    return [fit(data, cost, name) for cost in (COSTS[::3] if options.quick else COSTS) for name in SOLVERS]


def fit(data: Data, cost: float, name: str) -> Run:
    problem = data.pose(cost)
    solution, seconds = common.solve(SOLVERS[name], problem)
    X, y = chessboard(10_000, seed=1)
    error = np.mean(np.sign(common.decide(data, problem, solution, X)) != common.signs_of(y))
    counters, (count, free) = solution.counters, common.support(problem, solution.dual)
    done = solution.status is Status.CONVERGED
    return Run(cost, name, counters.iterations, seconds, count, free, float(error), done)


def tables(runs: list[Run]) -> str:
    rows = []
    for cost in dict.fromkeys(run.cost for run in runs):
        of_cost = {run.solver: run for run in runs if run.cost == cost}
        best = of_cost["block"]
        cells = [f"{run.steps:,}{'' if run.done else ' (not done)'}" for run in of_cost.values()]
        seconds = " / ".join(f"{run.seconds:.2f}" for run in of_cost.values())
        model = [best.support, best.free, f"{best.error:.1%}"] if best.done else ["–"] * 3
        rows.append([f"{cost:g}", *cells, seconds, *model])
    header = ["C", *(f"steps, {name}" for name in SOLVERS), "seconds, in this order", "S", "free", "test error"]
    return common.markdown(" | ".join(header), rows)


def draw(runs: list[Run]) -> Figure:
    picture, (left, right) = common.figure(2, 4.7)
    styles = [(common.RED, "s--"), (common.BLUE, "o-"), (common.GREEN, "d-"), (common.ORANGE, "v:")]
    for name, (colour, style) in zip(SOLVERS, styles, strict=True):
        part = [run for run in runs if run.solver == name]
        done = [run for run in part if run.done]
        left.plot([run.cost for run in done], [run.steps for run in done], style, color=colour, label=name)
        first = next((run for run in part if not run.done), None)
        if first is not None:
            left.plot([done[-1].cost, first.cost], [done[-1].steps, first.steps], style[1:], color=colour)
    left.axhline(RULE.max_iterations, color="0.5", linewidth=1)
    left.text(COSTS[0], 1.15 * RULE.max_iterations, "limit: not done", color="0.3")
    common.logarithmic(left, "C", "steps", "Pair steps until the violation is 0.001")
    left.set_ylim(top=4 * RULE.max_iterations)
    left.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    part = [run for run in runs if run.solver == "block" and run.done]
    costs = [run.cost for run in part]
    right.plot(costs, [run.support for run in part], "o-", color=common.BLUE, label="support vectors")
    right.plot(costs, [run.free for run in part], "d--", color=common.SKY, label="free support vectors")
    right.set(xscale="log", xlabel="C", ylabel="support vectors", title="The model")
    errors = right.twinx()
    errors.plot(costs, [100 * run.error for run in part], "s:", color=common.RED, label="test error (right axis)")
    errors.set(ylabel="test error, %", ylim=0)
    right.grid(alpha=0.3)
    right.legend(handles=[*right.lines, *errors.lines], loc="upper right")
    return picture


if __name__ == "__main__":
    common.run(sys.modules[__name__], common.parse(__doc__))
