"""Convergence of primal and dual values: gap and violation during a fit (Bottou & Lin 1.3.1, 1.7.1).

Every dual value is below every primal value (1.9). Both are computed at each point, the primal with the offset in the
middle of the violation interval; without shrinking, so that every sample is included.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from examples.experiments import common
from examples.experiments.common import Data, Options
from matplotlib.figure import Figure

from maxmargin.datasets import chessboard
from maxmargin.problems import Progress, certify
from maxmargin.solvers import PairwiseSolver, StoppingRule, Trace

RULES = {"first order": "most_violating_pair", "second order": "second_order"}
COSTS = (0.1, 1.0, 10.0, 100.0, 1000.0)
SHOWN = 10.0  # the C of the plot
TOLERANCE = 1e-3


class Way(NamedTuple):
    """The trace of one solve, and the optimum."""

    rule: str
    cost: float
    n: int
    trace: tuple[Progress, ...]
    optimum: float


def measure(options: Options) -> list[Way]:
    n = 300 if options.quick else 1000
    X, y = chessboard(n, noise=0.1)
    data = Data("", X, common.signs_of(y), 1.0, 1.0)
    return [follow(data._replace(cost=cost), rule) for cost in COSTS for rule in RULES]


def follow(data: Data, rule: str) -> Way:
    problem = data.pose_row_by_row()
    solver = PairwiseSolver(RULES[rule], shrinking=False, stopping=StoppingRule(TOLERANCE), finish_below=0)
    solution = solver.solve(problem, callback=Trace(interval=0))
    best = PairwiseSolver(stopping=StoppingRule(1e-9)).solve(problem, start=solution.dual)
    return Way(rule, data.cost, problem.size, solution.trace, certify(problem, best.dual).dual)


def tables(ways: list[Way]) -> str:
    rows = []
    for way in ways:
        last, bound = way.trace[-1], way.cost * way.n * TOLERANCE
        values = [f"{value:.6g}" for value in (way.optimum, last.dual, last.primal)]
        gaps = [f"{last.gap:.2g}", f"{last.gap / way.optimum:.1e}", f"{bound:g}"]
        rows.append(
            [f"{way.cost:g}", way.rule, f"{last.iteration:,}", *values, *gaps, reached(way, 1e-2), reached(way, 1e-4)]
        )
    header = (
        "C | rule | steps | optimum | dual | primal | gap | gap / optimum | C n × tolerance "
        "| steps until gap / optimum is 1% | 0.01%"
    )
    return f"At convergence, violation {TOLERANCE:g} or less, n = {ways[0].n:,}:\n\n{common.markdown(header, rows)}"


def reached(way: Way, part: float) -> str:
    """Return the number of steps to a relative gap."""
    return next((f"{entry.iteration:,}" for entry in way.trace if entry.gap <= part * way.optimum), "–")


def draw(ways: list[Way]) -> Figure:
    picture, (left, right) = common.figure()
    for way in ways:
        if way.cost != SHOWN:
            continue
        colour = common.RED if way.rule == "first order" else common.BLUE
        steps = [1 + entry.iteration for entry in way.trace]
        left.plot(steps, [entry.primal for entry in way.trace], "-", color=colour, label=f"primal, {way.rule}")
        left.plot(steps, [entry.dual for entry in way.trace], "--", color=colour, label=f"dual, {way.rule}")
        right.plot(steps, [entry.gap for entry in way.trace], "-", color=colour, label=f"gap, {way.rule}")
        violation = [entry.violation for entry in way.trace]
        right.plot(steps, violation, ":", color=colour, linewidth=1.2, label=f"violation, {way.rule}")
        left.axhline(way.optimum, color=common.BLACK, linewidth=0.8)
    left.set(xscale="log", xlabel="steps", ylabel="objective", ylim=0, title=f"From above and below, C = {SHOWN:g}")
    left.grid(alpha=0.3)
    common.logarithmic(right, "steps", "gap, violation", "Gap and violation")
    left.legend()
    right.legend()
    return picture


if __name__ == "__main__":
    common.run(sys.modules[__name__], common.parse(__doc__))
