"""Stochastic subgradient method on the primal problem with the linear kernel (Pegasos; Bottou 2010; Lampert's lecture).

    for batches of samples, reshuffled in each pass over the data or drawn at random:
        w, ρ ← a step against an unbiased estimate of a subgradient        stochastic_state
    return the average of w

A step costs no more than the nonzero entries of its samples, so the first passes come close to the optimum before a
batch method has made progress; then convergence is slow. The gap is evaluated after 1, 2, 3, 4, 6, 9, … passes
(primal_bounds), which takes two or three passes: the average of w against the averages of the samples' responses, which
form a dual vector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.matrices.features import Features
from maxmargin.problems import DualProblem, Solution, feasible_start
from maxmargin.problems.losses import conjugate
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds, feasible_responses, run_subgradient_method
from maxmargin.solvers.subgradient.step_sizes import StepSize, choose_step_size, reduced_step_size, scaled_subsample
from maxmargin.solvers.subgradient.stochastic_state import StochasticState

#: Values processed between two checks of limits, callback and Ctrl-C.
CHUNK_VALUES = 2**22

#: Steps chosen by trial begin to decay after one pass, but not before this many steps.
MIN_STEPS_BEFORE_DECAY = 10_000

#: If the average is this many times worse than the best objective, steps chosen by trial were too long.
DIVERGENCE_RATIO = 100.0

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
        η/(t + t0), with the η that gives the lowest objective after a pass over a subsample.
    order : {"epochs", "random"}
        Reshuffle the samples for each pass, or draw each at random.
    batch_size : int
        Samples per step.
    average_from : int
        Passes before averaging begins.
    averaging : {"growing", "uniform"}
        Whether the t-th step has the weight t, which reduces the influence of early steps, or all steps the same.
    projection : {"none", "ball"}
        Whether weights are projected on a ball that contains the optimum, as in Pegasos.
    stopping : StoppingRule
        The limit on iterations is 1000 by default.
    seed : int
        Seed of the order and of the subsample for the trial.
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

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return the best weights and the best dual vector; `start` is made feasible."""
        return run_subgradient_method("stochastic_subgradient", self.begin, problem, start, self.stopping, callback)

    def begin(self, bounds: PrimalBounds) -> StochasticSubgradientRun:
        """Return the method before its first step."""
        return StochasticSubgradientRun(self, bounds, self._choose_step_size(bounds.problem, bounds.problem.size))

    def _choose_step_size(self, problem: DualProblem, samples: float) -> StepSize:
        return choose_step_size(
            self.step_size,
            lambda: scaled_subsample(problem, self.seed, samples),
            self._value_after_trial,
            max(samples, MIN_STEPS_BEFORE_DECAY),
        )

    def _value_after_trial(self, problem: DualProblem, step: StepSize) -> float:
        run = StochasticSubgradientRun(self, PrimalBounds(problem, None), step)
        while not run.iterations:
            run.advance()
        return run.bounds.evaluate(run.state.average()[0]).primal

    def begin_stream(self, problem: DualProblem, samples: float | None = None) -> StochasticState:
        """Return a state for a stream whose first batch is this problem; no step has been taken with it.

        `samples` is the number of variables that C refers to, those of this problem by default: an objective that grew
        with the stream would have no optimum. Call ``state.update(batch)`` with the problem of each batch, including
        this one, and read ``state.average()``.
        """
        samples = float(problem.size if samples is None else samples)
        if not samples > 0:
            raise ValueError(f"samples must be above 0, not {samples}")
        step = self._choose_step_size(problem, samples)
        state = self._state(PrimalBounds(scaled_subsample(problem, self.seed, samples), None), step)
        state.samples, state.direction[:], state.offset[:] = samples, 0.0, 0.0
        return state

    def _state(self, bounds: PrimalBounds, step: StepSize) -> StochasticState:
        problem, rows = bounds.problem, bounds.rows
        if bounds.offset is None:
            bounds.evaluate_violation()
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


class StochasticSubgradientRun:
    """The state of the method: `state` has the weights and their averages, `bounds` the best points."""

    def __init__(self, solver: StochasticSubgradientSolver, bounds: PrimalBounds, step: StepSize) -> None:
        self.solver = solver
        self.bounds = bounds
        self.iterations = 0
        self._random = np.random.default_rng(solver.seed)
        self._order: Indices = np.empty(0, dtype=np.int64)
        self._position = 0
        self._next_evaluation = 1
        values = max(1, bounds.rows.stored // max(1, bounds.rows.size))
        self._chunk = max(1, CHUNK_VALUES // (values * solver.batch_size)) * solver.batch_size
        self._begin(step)

    def _begin(self, step: StepSize) -> None:
        n = self.bounds.problem.size
        self.state = self.solver._state(self.bounds, step)
        self._responses, self._visits = np.zeros(n), np.zeros(n)

    def advance(self) -> None:
        """Process a chunk of samples, at most to the end of the pass."""
        n = self.bounds.problem.size
        if self._position == len(self._order):
            random = self._random
            self._order = random.permutation(n) if self.solver.order == "epochs" else random.integers(0, n, n)
            self._position = 0
        end = min(n, self._position + self._chunk)
        chunk, self._position = slice(self._position, end), end
        self.state.update(
            self.bounds.problem, self._order, self.solver.batch_size, self._responses, self._visits, chunk
        )
        if end == n:
            self._end_pass()

    def _end_pass(self) -> None:
        self.iterations += 1
        if not np.isfinite(self.state.direction).all():
            raise FloatingPointError("the weights diverged")
        if self.iterations >= self._next_evaluation:
            self._next_evaluation = self.iterations + max(1, self.iterations // 2)
            self.update_bounds()
        if self.iterations == self.solver.average_from:
            self.state.start_average()
            self._responses[:] = self._visits[:] = 0.0

    def update_bounds(self) -> None:
        """Evaluate the averages of weights and responses."""
        bounds = self.bounds
        best = max(abs(bounds.primal), abs(bounds.dual_value))
        primal, slack, _ = bounds.evaluate(self.state.average()[0])
        if self.solver.step_size == "trial" and primal > DIVERGENCE_RATIO * best:
            raise FloatingPointError("the step size chosen by trial is too long for these data")
        current = feasible_responses(bounds.problem, slack)
        mean = np.divide(self._responses, self._visits, out=current.copy(), where=self._visits > 0)
        candidates = [feasible_start(bounds.problem, mean)]
        if bounds.problem.ridge.any():  # a smooth loss: the current responses are nearly optimal, too
            candidates.append(current)
        for candidate in candidates:
            bounds.combine(candidate, bounds.rows.weights(candidate))

    def restart(self) -> None:
        """Continue from the best weights with shorter steps."""
        self._begin(reduced_step_size(self.solver.step_size, self.state.step_size))
        self._position = len(self._order)


def _mean_square(rows: Features) -> float:
    """Return the mean of ‖f‖², 1 if all rows are 0."""
    mean = float(rows.squared_norms().mean()) + rows.constant**2
    return mean if mean > 0 else 1.0


def _radius(problem: DualProblem, bounds: PrimalBounds) -> float:
    """Return the radius of a ball around 0 that contains the optimal weights.

    If all totals are 0, and 0 is feasible, ‖w‖² = Σ (linear b − ½ ridge b²) − loss ≤ P(0), Pegasos' bound 1/√λ.
    Otherwise P − D at any two points is at least half the squared distance of the weights to the optimum.
    """
    if not problem.total.any() and (problem.lower <= 0).all() and (problem.upper >= 0).all():
        return float(np.sqrt(conjugate(problem, problem.linear).sum()))
    at_zero = bounds.evaluate(np.zeros(bounds.rows.dimension)).primal
    return float(np.sqrt(2.0 * max(at_zero - bounds.dual_value, 0.0)))
