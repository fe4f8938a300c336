"""The stochastic subgradient method on the primal of a linear machine (Lampert's lecture; Pegasos; Bottou 2010).

    for a few samples at a time, shuffled anew in each pass over the data or drawn at random:
        w, ρ ← a step against a subgradient that is right in expectation   stochastic_state
    return the average of w

A step costs no more than the entries of its samples, so the first passes come near to the optimum when a batch method
has just begun; after that it converges slowly. What has been reached is proved now and then (primal_bounds): the
average of w against the average responses that the samples gave on the way, which are a dual vector. That takes two or
three passes, after 1, 2, 3, 4, 6, 9, … passes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.problems import DualProblem, Solution, feasible_start
from maxmargin.problems.certificate import conjugate
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds, responses_with_sums
from maxmargin.solvers.subgradient.primal_method import first_step, follow, part_of, shorter
from maxmargin.solvers.subgradient.step_sizes import StepSize
from maxmargin.solvers.subgradient.stochastic_state import StochasticState

#: About how many values are worked on before limits, callback and Ctrl-C are heard.
STRETCH_VALUES = 2**22

#: Steps found by trial begin to decay after one pass, but not before so many steps.
FEWEST_STEPS = 10_000

#: If the average is so many times worse than the best, steps found by trial were too long.
DIVERGED = 100.0

CHOICES = {
    "order": ("epochs", "random"),
    "averaging": ("growing", "uniform"),
    "projection": ("none", "ball"),
}


@dataclass(frozen=True)
class StochasticSubgradientSolver:
    """The stochastic subgradient method; an iteration is a pass over the data.

    Parameters
    ----------
    step_size : StepSize or {"trial", "inverse_time"}
        η_t of the t-th step. "inverse_time" is 1/t, Pegasos' 1/(λt) for the objective scaled by λ; "trial" is
        η/(t + t0), with the η that serves best in a pass over a part of the data.
    order : {"epochs", "random"}
        Shuffle the samples anew for each pass, or draw each at random.
    batch_size : int
        How many samples a step looks at.
    average_from : int
        After how many passes averaging begins.
    averaging : {"growing", "uniform"}
        Whether the t-th step counts t times, so that the beginning is soon forgotten, or all steps the same.
    projection : {"none", "ball"}
        Whether steps end in a ball that holds the optimum, as in Pegasos.
    stopping : StoppingRule
        When to stop; after 1000 passes if it has no limit.
    seed : int
        Chooses the order and the part of the data for the trial.
    """

    step_size: StepSize | str = "trial"
    order: str = "epochs"
    batch_size: int = 1
    average_from: int = 0
    averaging: str = "growing"
    projection: str = "none"
    stopping: StoppingRule = field(default_factory=lambda: StoppingRule(relative_gap=1e-2))
    seed: int = 0
    audited: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if not self.batch_size >= 1:
            raise ValueError(f"batch_size must be at least 1, not {self.batch_size}")
        if not self.average_from >= 0:
            raise ValueError(f"average_from must be at least 0, not {self.average_from}")

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return the best weights and the best dual vector, from `start` (made feasible) or from the simplest point."""
        return follow("stochastic_subgradient", self.begin, problem, start, self.stopping, callback)

    def begin(self, bounds: PrimalBounds) -> StochasticRun:
        """Return the method before its first step, to be watched from pass to pass."""
        return StochasticRun(self, bounds, self._steps(bounds.problem, bounds.problem.size))

    def _steps(self, problem: DualProblem, samples: float) -> StepSize:
        return first_step(
            self.step_size,
            lambda: part_of(problem, self.seed, samples),
            self._value_after_trial,
            max(samples, FEWEST_STEPS),
        )

    def _value_after_trial(self, part: DualProblem, step: StepSize) -> float:
        run = StochasticRun(self, PrimalBounds(part, None), step)
        while not run.iterations:
            run.advance()
        return run.bounds.evaluate(run.state.average()[0]).primal

    def begin_stream(self, problem: DualProblem, samples: float | None = None) -> StochasticState:
        """Return a state for a stream that begins with the samples of a problem, before it has seen them.

        `samples` is the number of variables for which C is meant, those of this problem by default: an objective that
        grew with the stream would have no optimum to go to. Then call ``state.update(batch)`` with the problems that
        the batches of the stream pose, this one the first, and read ``state.average()``.
        """
        samples = float(problem.size if samples is None else samples)
        if not samples > 0:
            raise ValueError(f"samples must be above 0, not {samples}")
        step = self._steps(problem, samples)
        state = self._state(PrimalBounds(part_of(problem, self.seed, samples), None), step)
        state.samples, state.direction[:], state.offset[:] = samples, 0.0, 0.0
        return state

    def _state(self, bounds: PrimalBounds, step: StepSize) -> StochasticState:
        problem, rows = bounds.problem, bounds.rows
        if bounds.offset is None:
            bounds.look()
        assert bounds.offset is not None
        state = StochasticState(
            direction=bounds.weights.copy(),
            offset=bounds.offset.copy(),
            samples=float(problem.size),
            step_size=step,
            offset_rate=_mean_square(rows),
            radius=_radius(problem, bounds) if self.projection == "ball" else np.inf,
            growing=self.averaging == "growing",
        )
        if self.average_from == 0:
            state.start_average()
        return state


class StochasticRun:
    """The method on its way: `state` has the weights and their average, `bounds` the best that was proved."""

    def __init__(self, solver: StochasticSubgradientSolver, bounds: PrimalBounds, step: StepSize) -> None:
        self.solver = solver
        self.bounds = bounds
        self.iterations = 0
        self._random = np.random.default_rng(solver.seed)
        self._order: Indices = np.empty(0, dtype=np.int64)
        self._at = 0
        self._next_settling = 1
        values = max(1, bounds.rows.stored // max(1, bounds.rows.size))
        self._stretch = max(1, STRETCH_VALUES // (values * solver.batch_size)) * solver.batch_size
        self._begin(step)

    def _begin(self, step: StepSize) -> None:
        n = self.bounds.problem.size
        self.state = self.solver._state(self.bounds, step)
        self._answers, self._visits = np.zeros(n), np.zeros(n)

    def advance(self) -> None:
        """Go on for a moment, at most to the end of the pass."""
        n = self.bounds.problem.size
        if self._at == len(self._order):
            random = self._random
            self._order = random.permutation(n) if self.solver.order == "epochs" else random.integers(0, n, n)
            self._at = 0
        end = min(n, self._at + self._stretch)
        stretch, self._at = slice(self._at, end), end
        self.state.update(
            self.bounds.problem, self._order, self.solver.batch_size, self._answers, self._visits, stretch
        )
        if end == n:
            self._end_pass()

    def _end_pass(self) -> None:
        self.iterations += 1
        if not np.isfinite(self.state.direction).all():
            raise FloatingPointError("the weights grew beyond all numbers")
        if self.iterations >= self._next_settling:
            self._next_settling = self.iterations + max(1, self.iterations // 2)
            self.settle()
        if self.iterations == self.solver.average_from:
            self.state.start_average()
            self._answers[:] = self._visits[:] = 0.0

    def settle(self) -> None:
        """Bring the bounds up to date with the averages of weights and responses."""
        bounds = self.bounds
        best = max(abs(bounds.primal), abs(bounds.dual_value))
        primal, slack, _ = bounds.evaluate(self.state.average()[0])
        if self.solver.step_size == "trial" and primal > DIVERGED * best:
            raise FloatingPointError("the trial was misled: steps are too long for these data")
        now = responses_with_sums(bounds.problem, slack)
        seen = np.divide(self._answers, self._visits, out=now.copy(), where=self._visits > 0)
        candidates = [feasible_start(bounds.problem, seen)]
        if bounds.problem.ridge.any():  # a smooth loss: the responses of the moment are nearly optimal, too
            candidates.append(now)
        for candidate in candidates:
            bounds.offer(candidate, bounds.rows.weights(candidate))

    def restart(self) -> None:
        """Go on from the best weights with shorter steps."""
        self._begin(shorter(self.solver.step_size, self.state.step_size))
        self._at = len(self._order)


def _mean_square(rows: Features) -> float:
    """Return the mean of ‖f‖², 1 if all rows are 0."""
    mean = float(rows.squared_norms().mean()) + rows.constant**2
    return mean if mean > 0 else 1.0


def _radius(problem: DualProblem, bounds: PrimalBounds) -> float:
    """Return the radius of a ball around 0 that holds the optimal weights.

    If all sums are 0, and 0 is allowed, ‖w‖² = Σ (linear b − ½ ridge b²) − loss ≤ P(0), Pegasos' bound 1/√λ. Otherwise
    P − D at any two points is at least half the squared distance of the weights from the optimum.
    """
    if not problem.total.any() and (problem.lower <= 0).all() and (problem.upper >= 0).all():
        return float(np.sqrt(conjugate(problem, problem.linear).sum()))
    at_zero = bounds.evaluate(np.zeros(bounds.rows.dimension)).primal
    return float(np.sqrt(2.0 * max(at_zero - bounds.dual_value, 0.0)))
