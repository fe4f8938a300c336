"""Approximation, estimation and optimisation error, and the best tolerance under a time limit (Bottou & Lin 1.1).

A chessboard with a fifth of the labels flipped, the Bayes error. The excess error of a model is 0.6 times the fraction
of the board that it misclassifies. The family of functions is defined by λ = 1/(C n) in ½ λ‖w‖² + mean loss; a fit to
many samples approximates its best member.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from examples.experiments import common
from examples.experiments.common import Data, Options, Solver
from matplotlib.figure import Figure

from maxmargin.datasets import chessboard
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule

NOISE, GAMMA = 0.2, 1.0
LOOSE, TIGHT = 1.0, 1e-4  # tolerances for the decomposition of the error
TOLERANCES = (1.0, 0.1, 1e-3, 1e-5)  # tolerances compared under a time limit
COST = 30.0  # of that comparison


class Parts(NamedTuple):
    """Excess errors of a family (by the C of `few` samples), averaged: best member, accurate fit, inaccurate fit."""

    cost: float
    best: float
    exact: float
    loose: float

    @property
    def parts(self) -> tuple[float, float, float]:
        """Approximation, estimation and optimisation error."""
        return self.best, self.exact - self.best, self.loose - self.exact


class Fit(NamedTuple):
    """A fit of the comparison under a time limit, averaged over samples."""

    tolerance: float
    n: int
    seconds: float
    steps: float
    error: float


class Results(NamedTuple):
    """The parts of the error of `few` samples against the best of `many`, and the comparison under a time limit."""

    few: int
    many: int
    parts: list[Parts]
    fits: list[Fit]


def measure(options: Options) -> Results:
    few, many, seeds = (200, 1000, 2) if options.quick else (500, 10_000, 5)
    costs = (0.1, 10.0, 1000.0) if options.quick else (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    sizes = (250, 500, 1000) if options.quick else (250, 500, 1000, 2000, 4000, 8000)
    parts = [split(cost, few, many, seeds) for cost in costs]
    return Results(few, many, parts, [compete(tolerance, n, seeds) for tolerance in TOLERANCES for n in sizes])


def split(cost: float, few: int, many: int, seeds: int) -> Parts:
    best = excess(many, cost * few / many, BlockSolver(), seed=0)[0]
    exact = [excess(few, cost, pairwise(TIGHT), seed)[0] for seed in range(1, 1 + 2 * seeds)]
    loose = [excess(few, cost, pairwise(LOOSE), seed)[0] for seed in range(1, 1 + 2 * seeds)]
    return Parts(cost, best, float(np.mean(exact)), float(np.mean(loose)))


def compete(tolerance: float, n: int, seeds: int) -> Fit:
    repeats = seeds if n <= 2000 else 1  # larger samples vary less and take longer
    runs = np.array([excess(n, COST, pairwise(tolerance), seed) for seed in range(1, 1 + repeats)])
    error, seconds, steps = runs.mean(axis=0)
    return Fit(tolerance, n, seconds, steps, error)


def pairwise(violation: float) -> PairwiseSolver:
    return PairwiseSolver(stopping=StoppingRule(violation), cache_bytes=2**30, finish_below=0)


def excess(n: int, cost: float, solver: Solver, seed: int) -> tuple[float, float, int]:
    """Return the excess error of a fit, its seconds and its steps."""
    X, y = chessboard(n, noise=NOISE, seed=seed)
    data = Data("", X, common.signs_of(y), cost, GAMMA)
    problem = data.pose()
    solution, seconds = common.solve(solver, problem)
    side = (np.arange(100) + 0.5) / 25.0
    board = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    colours = np.where(np.floor(board).sum(axis=1) % 2, 1.0, -1.0)
    error = np.mean(np.sign(common.decide(data, problem, solution, board)) != colours)
    return float((1 - 2 * NOISE) * error), seconds, solution.counters.iterations


def at_budget(fits: list[Fit], tolerance: float, seconds: float) -> Fit | None:
    """Return the largest fit of a tolerance that converges within the time."""
    done = [fit for fit in fits if fit.tolerance == tolerance and fit.seconds <= seconds]
    return max(done, key=lambda fit: fit.n, default=None)


def tables(results: Results) -> str:
    rows = [[f"{p.cost:g}", *(f"{part:.3f}" for part in p.parts), f"{p.loose:.3f}"] for p in results.parts]
    parts = common.markdown("C | approximation | estimation | optimisation, violation 1 | sum", rows)
    rows = [
        [f"{f.tolerance:g}", f"{f.n:,}", f"{f.steps:,.0f}", f"{f.seconds:.3f}", f"{f.error:.3f}"] for f in results.fits
    ]
    fits = common.markdown("violation | n | steps | seconds | excess error", rows)
    rows = []
    longest = max(fit.seconds for fit in results.fits)
    for budget in longest / 4.0 ** np.arange(5)[::-1]:
        found = [at_budget(results.fits, tolerance, budget) for tolerance in TOLERANCES]
        rows.append([f"{budget:.3f}", *("–" if f is None else f"n = {f.n:,}: {f.error:.3f}" for f in found)])
    header = " | ".join(["seconds", *(f"violation {tolerance:g}" for tolerance in TOLERANCES)])
    return "\n\n".join(
        [
            f"Decomposition of the excess error for n = {results.few:,}; the best member of a family is that of "
            f"n = {results.many:,} with the same λ:", parts,
            f"Fits with C = {COST:g}:", fits,
            "The largest n that converges within the time, and its excess error:", common.markdown(header, rows),
        ]
    )  # fmt: skip


def draw(results: Results) -> Figure:
    picture, (left, right) = common.figure()
    costs = [parts.cost for parts in results.parts]
    styles = [(common.BLUE, "o-"), (common.ORANGE, "s--"), (common.GREEN, "d:")]
    names = ("approximation", "estimation", "optimisation (violation 1)")
    for k, (name, (colour, style)) in enumerate(zip(names, styles, strict=True)):
        left.plot(costs, [parts.parts[k] for parts in results.parts], style, color=colour, label=name)
    left.plot(costs, [parts.loose for parts in results.parts], "k-", linewidth=1, label="sum")
    left.axhline(0.0, color="0.6", linewidth=0.8)
    left.set(xscale="log", xlabel=f"C at n = {results.few}: larger, larger family", ylabel="excess error")
    left.set_title("Three parts of the error")
    left.grid(alpha=0.3)
    left.legend()
    styles = [(common.GREEN, "d-"), (common.SKY, "o-"), (common.BLUE, "s--"), (common.RED, "v:")]
    for tolerance, (colour, style) in zip(TOLERANCES, styles, strict=True):
        fits = [fit for fit in results.fits if fit.tolerance == tolerance]
        label = f"violation {tolerance:g}"
        right.plot([f.seconds for f in fits], [f.error for f in fits], style, color=colour, label=label)
    common.logarithmic(right, "seconds", "excess error", "Equal time: n grows along each line")
    common.plain_ticks(right.yaxis)
    right.legend()
    return picture


if __name__ == "__main__":
    common.run(sys.modules[__name__], common.parse(__doc__))
