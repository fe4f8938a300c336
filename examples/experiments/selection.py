"""Steps of three selection rules: first order, second order, maximum gain (Bottou & Lin 1.7.2).

A second table has small problems with the largest gain among all pairs (1.23) as well, which takes O(n²) per step.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from examples.experiments import common
from examples.experiments.common import Data, Options
from matplotlib.figure import Figure

from maxmargin.datasets import chessboard
from maxmargin.problems import DualProblem, certify
from maxmargin.solvers import PairwiseSolver, StoppingRule

RULES = {"most_violating_pair": "first order", "second_order": "second order", "maximum_gain": "maximum gain"}
EXHAUSTIVE = "all pairs"
TOLERANCE = 1e-3
FILES = ["australian_scale", "breast-cancer_scale", "diabetes_scale", "fourclass_scale", "german.numer_scale",
         "heart_scale", "ionosphere_scale", "sonar_scale", "splice", "svmguide1"]  # fmt: skip


class Run(NamedTuple):
    """One problem, one rule."""

    problem: str
    rule: str
    steps: int
    values: int
    seconds: float


class Results(NamedTuple):
    """Runs of the three rules, and runs on small problems with all pairs as well."""

    runs: list[Run]
    small: list[Run]


def generated(n: int) -> list[Data]:
    sets = []
    for noise, cost in ((0.0, 1000.0), (0.1, 10.0)):
        X, y = chessboard(n, noise=noise)
        name = "chessboard" + (f", {noise:.0%} flipped" if noise else "")
        sets.append(Data(f"{name}, n = {n:,}, C = {cost:g}", X, common.signs_of(y), cost, 1.0))
    for cost in (1.0, 1000.0):
        sets.append(Data(f"gaussians, 10-D, n = {n:,}, C = {cost:g}", *common.gaussians(n, 0.2, 10), cost, 0.1))
    sets.append(Data(f"rings, n = {n:,}, C = 10", *common.rings(n), 10.0, 1.0))
    return sets


def measure(options: Options) -> Results:
    sets = generated(300 if options.quick else 2000)
    if options.data is not None:
        sets += [common.read(options.data, f"{name}.libsvm", cost=10.0) for name in FILES]
    runs = [solve(data, rule) for data in sets for rule in RULES]
    few = generated(100 if options.quick else 300)
    small = [run for data in few for run in [*(solve(data, rule) for rule in RULES), exhaustive(data)]]
    return Results(runs, small)


def solve(data: Data, rule: str) -> Run:
    problem = data.pose_row_by_row()
    solver = PairwiseSolver(rule, stopping=StoppingRule(violation=TOLERANCE), finish_below=0)
    solution, seconds = common.solve(solver, problem)
    assert certify(problem, solution.dual).violation <= TOLERANCE + 1e-9
    counters = solution.counters
    return Run(data.name, RULES[rule], counters.iterations, counters.kernel_evaluations, seconds)


def exhaustive(data: Data) -> Run:
    """Solve with steps of the largest gain inside the box among all pairs (1.23)."""
    problem = data.pose()
    K = problem.matrix.rows(np.arange(problem.size))
    curvature = np.maximum(problem.curvature[:, None] + problem.curvature - 2 * K, 1e-12)
    dual, gradient, steps = np.zeros(problem.size), problem.linear.copy(), 0
    while (step := largest_gain(problem, dual, gradient, curvature)) is not None:
        i, j, length = step
        dual[i] = problem.upper[i] if length == problem.upper[i] - dual[i] else dual[i] + length
        dual[j] = problem.lower[j] if length == dual[j] - problem.lower[j] else dual[j] - length
        gradient -= length * (K[i] - K[j])
        steps += 1
    assert certify(problem, dual).violation <= TOLERANCE + 1e-9
    return Run(data.name, EXHAUSTIVE, steps, K.size, np.nan)


def largest_gain(
    problem: DualProblem, dual: np.ndarray, gradient: np.ndarray, curvature: np.ndarray
) -> tuple[int, int, float] | None:
    """Return the pair (i increases, j decreases) of the largest gain and its step length; None at the optimum."""
    slope = gradient[:, None] - gradient
    longest = np.minimum((problem.upper - dual)[:, None], dual - problem.lower)
    if slope[longest > 0].max() <= TOLERANCE:
        return None
    length = np.clip(slope / curvature, 0.0, longest)
    i, j = np.unravel_index(np.argmax(length * (slope - 0.5 * length * curvature)), slope.shape)
    return int(i), int(j), float(length[i, j])


def tables(results: Results) -> str:
    rules = list(RULES.values())
    header = ["problem", *(f"steps, {rule}" for rule in rules), *(f"kernel values, {rule}" for rule in rules)]
    rows = []
    for problem, runs in by_problem(results.runs).items():
        counts = [f"{runs[rule].steps:,}" for rule in rules] + [f"{runs[rule].values:,}" for rule in rules]
        rows.append([problem, *counts, " / ".join(f"{runs[rule].seconds:.2f}" for rule in rules)])
    large = common.markdown(" | ".join([*header, "seconds, in this order"]), rows)
    names = [*rules, EXHAUSTIVE]
    rows = [
        [problem, *(f"{runs[name].steps:,}" for name in names)] for problem, runs in by_problem(results.small).items()
    ]
    small = common.markdown(" | ".join(["problem", *names]), rows)
    return f"{large}\n\nSteps on small problems, with the largest gain among all pairs (1.23) as well:\n\n{small}"


def by_problem(runs: list[Run]) -> dict[str, dict[str, Run]]:
    """Return the runs by problem and rule."""
    found: dict[str, dict[str, Run]] = {}
    for run in runs:
        found.setdefault(run.problem, {})[run.rule] = run
    return found


def draw(results: Results) -> Figure:
    problems = by_problem(results.runs)
    picture = Figure(figsize=(10, 1.4 + 0.33 * len(problems)), layout="constrained")
    axes = picture.subplots()
    for place, runs in enumerate(problems.values()):
        counts = [run.steps for run in runs.values()]
        axes.plot([min(counts), max(counts)], [place, place], color="0.8", linewidth=3, zorder=1)
    for rule, colour, mark in zip(RULES.values(), [common.RED, common.BLUE, common.GREEN], "sod", strict=True):
        counts = [runs[rule].steps for runs in problems.values()]
        axes.plot(counts, range(len(problems)), mark, color=colour, markersize=8, label=rule, alpha=0.85)
    axes.set(xscale="log", xlabel="steps", yticks=range(len(problems)), yticklabels=problems)
    axes.set_title("Steps until the violation is 0.001, by selection rule")
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.legend()
    return picture


if __name__ == "__main__":
    common.run(sys.modules[__name__], common.parse(__doc__))
