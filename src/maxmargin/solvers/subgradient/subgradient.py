"""The subgradient method on the primal problem with the linear kernel (Shor 1962; Lampert's lecture: "not descent").

    v ← a subgradient of P at w:   w − Fᵀ response(z)                       primal_bounds
    w ← w − η_t v                                                           step_sizes
    keep the w with the smallest P

A step may increase P, however short it is, but reduces the distance to the optimum; the best iterate is kept. A step
takes two passes over the data, and P(w) − P* decreases like 1/t at best: the method is included for teaching and
comparison. P is minimised exactly over the offset, which would otherwise need a step size of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from maxmargin._typing import Floats
from maxmargin.problems import DualProblem, Solution
from maxmargin.solvers.split_form import in_split_form
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds, feasible_responses, run_subgradient_method
from maxmargin.solvers.subgradient.step_sizes import StepSize, choose_step_size, reduced_step_size, scaled_subsample

#: Steps of a trial run.
TRIAL_STEPS = 10


@dataclass(frozen=True)
class SubgradientSolver:
    """The batch subgradient method; an iteration is a step.

    Parameters
    ----------
    step_size : StepSize or {"trial", "inverse_time"}
        η_t. "inverse_time" is 1/t, that is 1/(λt) for the objective scaled by λ; "trial" is 1/(t + t0), with the t0
        that gives the lowest objective after a few steps on a subsample.
    stopping : StoppingRule
        The limit on iterations is 1000 by default.
    seed : int
        Seed of the subsample.
    """

    step_size: StepSize | str = "trial"
    stopping: StoppingRule = field(default_factory=lambda: StoppingRule(relative_gap=1e-2))
    seed: int = 0
    audited: ClassVar[bool] = False

    @in_split_form
    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return the best weights and the best dual vector; `start` is made feasible."""
        return run_subgradient_method("subgradient", self.begin, problem, start, self.stopping, callback)

    def begin(self, bounds: PrimalBounds) -> SubgradientRun:
        """Return the method before its first step."""
        step = choose_step_size(
            self.step_size, lambda: scaled_subsample(bounds.problem, self.seed), self._value_after_trial
        )
        return SubgradientRun(bounds, step, self.step_size)

    def _value_after_trial(self, problem: DualProblem, step: StepSize) -> float:
        run = SubgradientRun(PrimalBounds(problem, None), step, step)
        least = float("inf")
        for _ in range(TRIAL_STEPS):
            run.advance()
            least = min(least, run.primal)
        return least


class SubgradientRun:
    """The state of the method: `weights` and their objective `primal`, which may increase; `bounds` keep the best."""

    def __init__(self, bounds: PrimalBounds, step: StepSize, requested: StepSize | str) -> None:
        self.bounds = bounds
        self.step = step
        self.requested = requested
        self.iterations = self._since_restart = 0
        self._move_to(bounds.dual_weights)

    def _move_to(self, weights: Floats) -> None:
        bounds = self.bounds
        self.primal, slack, _ = bounds.evaluate(weights)
        responses = feasible_responses(bounds.problem, slack)
        self.weights, self.target = weights, bounds.rows.weights(responses)
        bounds.combine(responses, self.target)

    def advance(self) -> None:
        """Take a step."""
        self.iterations += 1
        self._since_restart += 1
        self._move_to(self.weights - self.step(self._since_restart) * (self.weights - self.target))

    def update_bounds(self) -> None:
        """Do nothing: the bounds are up to date after each step."""

    def restart(self) -> None:
        """Continue from the best weights with shorter steps."""
        self.step, self._since_restart = reduced_step_size(self.requested, self.step), 0
        self._move_to(self.bounds.weights)
