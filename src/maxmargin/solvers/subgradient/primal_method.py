"""What the subgradient methods share: the loop around their steps, and the search for the first step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems import DualProblem, Solution, Status
from maxmargin.problems.certificate import response
from maxmargin.solvers.linear.linear_point import features_of, finite_norms
from maxmargin.solvers.monitor import Monitor
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds
from maxmargin.solvers.subgradient.step_sizes import StepSize, best_by_trial

#: Iterations if the rule has no limit. Subgradient methods come near to the optimum and never to its last digits.
MOST_ITERATIONS = 1000

#: How many variables a trial takes of the data.
PART = 1000


class Run(Protocol):
    """A method on its way."""

    bounds: PrimalBounds
    iterations: int

    def advance(self) -> None:
        """Go on for a step or a moment; raise FloatingPointError if the weights overflow."""
        ...

    def settle(self) -> None:
        """Bring the bounds up to date."""
        ...

    def restart(self) -> None:
        """Go on from the best weights with shorter steps."""
        ...


def follow(
    name: str,
    begin: Callable[[PrimalBounds], Run],
    problem: DualProblem,
    start: Floats | None,
    rule: StoppingRule,
    callback: Callback | None,
) -> Solution:
    """Let the method of that name run until the rule is met, and return the best that it found."""
    finite_norms(features_of(problem, name))
    if rule.max_iterations is None:
        rule = replace(rule, max_iterations=MOST_ITERATIONS)
    monitor = Monitor(rule, callback)
    bounds = PrimalBounds(problem, start)
    run: Run | None = None
    try:
        met = bounds.look() <= rule.violation or bounds.reached(rule)
        monitor.report_start(lambda: bounds.progress(0, monitor))
        status = Status.CONVERGED if met else monitor.limit_reached(0)
        if status is None:
            run = begin(bounds)
            status = _advance(run, monitor)
        iterations = run.iterations if run is not None else 0
        monitor.report(lambda: bounds.progress(iterations, monitor), now=True)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    return bounds.solution(status, run.iterations if run is not None else 0, monitor)


def _advance(run: Run, monitor: Monitor) -> Status:
    bounds, rule = run.bounds, monitor.rule
    next_look = 1
    while True:
        try:
            run.advance()
        except FloatingPointError:
            run.restart()
        if run.iterations >= next_look:
            next_look = 2 * run.iterations
            if bounds.look() <= rule.violation:
                return Status.CONVERGED
        if bounds.reached(rule):
            bounds.look()  # without the rounding of many mixtures
            if bounds.reached(rule):
                return Status.CONVERGED
        if (stop := monitor.limit_reached(run.iterations)) is not None:
            _settle(run)
            return Status.CONVERGED if bounds.reached(rule) else stop
        if monitor.report(lambda: bounds.progress(run.iterations, monitor), iterations=run.iterations):
            _settle(run)
            return Status.STOPPED


def _settle(run: Run) -> None:
    with suppress(FloatingPointError):  # weights that have diverged are not better than the best, which is kept
        run.settle()


def first_step(
    wish: StepSize | str,
    part: Callable[[], DualProblem],
    value_after: Callable[[DualProblem, StepSize], float],
    most_delay: float = np.inf,
) -> StepSize:
    """Return the rule that is wished for; for "trial" η/(t + t0), after whose first steps a short run ends lowest.

    With η = 1 and t0 = 1/η_1 steps are 1/t in the long run, as long as t0 does not exceed `most_delay`; else they begin
    to decay after so many steps. The trials are on a `part` of the data.
    """
    if isinstance(wish, StepSize):
        return wish
    if wish == "inverse_time":
        return StepSize.inverse_time()
    if wish != "trial":
        raise ValueError(f"the step size must be a StepSize, 'trial' or 'inverse_time', not {wish!r}")
    problem = part()

    def steps(first: float) -> StepSize:
        delay = min(1.0 / first, most_delay)
        return StepSize.decaying(first * delay, delay)

    def trial(first: float) -> float:
        try:
            return value_after(problem, steps(first))
        except FloatingPointError:
            return np.inf

    return steps(best_by_trial(trial, _natural_step(problem)))


def _natural_step(problem: DualProblem) -> float:
    """Return the step with which a stochastic step moves the decision on its own sample by about 1."""
    ones = np.ones(problem.size)
    answers = np.maximum(np.abs(response(problem, ones)), np.abs(response(problem, -ones)))
    return 1.0 / (1.0 + float(answers @ features_of(problem, "subgradient").squared_norms()))


def shorter(wish: StepSize | str, step: StepSize) -> StepSize:
    """Return shorter steps than those that overflowed, if the choice was left to us."""
    if wish != "trial":
        raise ValueError(
            "the steps are too long: the weights grew beyond all numbers; use a smaller StepSize, or step_size='trial'"
        )
    return StepSize.decaying(step.numerator, 4.0 * step.delay)


def part_of(problem: DualProblem, seed: int, samples: float | None = None) -> DualProblem:
    """Return a problem of some variables that stand for all, or for `samples`: each counts as often as needed."""
    n, size = problem.size, min(problem.size, PART)
    factor = (n if samples is None else samples) / size
    if factor == 1.0:
        return problem
    picks = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    lower, upper, group = problem.lower[picks] * factor, problem.upper[picks] * factor, problem.group[picks]
    least, most = np.zeros(problem.groups), np.zeros(problem.groups)
    np.add.at(least, group[group >= 0], lower[group >= 0])
    np.add.at(most, group[group >= 0], upper[group >= 0])
    return DualProblem(
        problem.matrix.take(picks),
        problem.linear[picks],
        lower,
        upper,
        problem.ridge[picks] / factor,
        group,
        np.clip(problem.total * (factor * size / n), least, most),
    )
