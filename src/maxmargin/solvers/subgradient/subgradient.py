"""The subgradient method on the primal of a linear machine (Shor 1962; Lampert's lecture: "not descent").

    v ← a subgradient of P at w:   w − Fᵀ response(z)                       primal_bounds
    w ← w − η_t v                                                           step_sizes
    keep the w of least P

A step may raise P, however short it is, but brings w closer to the optimum; so the best iterate is kept. A step takes
two passes over the data, and P(w) − P* falls like 1/t at best: the method is here to be understood and compared with.
The offset is a coordinate of P that would need a step size of its own; instead P is minimised over it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from maxmargin._typing import Floats
from maxmargin.problems import DualProblem, Solution
from maxmargin.solvers.stopping import Callback, StoppingRule
from maxmargin.solvers.subgradient.primal_bounds import PrimalBounds, responses_with_sums
from maxmargin.solvers.subgradient.primal_method import first_step, follow, part_of, shorter
from maxmargin.solvers.subgradient.step_sizes import StepSize

#: How many steps a trial takes.
TRIAL_STEPS = 10


@dataclass(frozen=True)
class SubgradientSolver:
    """The batch subgradient method; an iteration is a step.

    Parameters
    ----------
    step_size : StepSize or {"trial", "inverse_time"}
        η_t. "inverse_time" is 1/t, that is 1/(λt) for the objective scaled by λ; "trial" is 1/(t + t0), with the t0
        that serves best in a few steps on a part of the data.
    stopping : StoppingRule
        When to stop; after 1000 iterations if it has no limit.
    seed : int
        Chooses the part of the data for the trial.
    """

    step_size: StepSize | str = "trial"
    stopping: StoppingRule = field(default_factory=lambda: StoppingRule(relative_gap=1e-2))
    seed: int = 0
    audited: ClassVar[bool] = False

    def solve(self, problem: DualProblem, start: Floats | None = None, callback: Callback | None = None) -> Solution:
        """Return the best weights and the best dual vector, from `start` (made feasible) or from the simplest point."""
        return follow("subgradient", self.begin, problem, start, self.stopping, callback)

    def begin(self, bounds: PrimalBounds) -> SubgradientRun:
        """Return the method before its first step, to be watched step by step."""
        step = first_step(self.step_size, lambda: part_of(bounds.problem, self.seed), self._value_after_trial)
        return SubgradientRun(bounds, step, self.step_size)

    def _value_after_trial(self, part: DualProblem, step: StepSize) -> float:
        run = SubgradientRun(PrimalBounds(part, None), step, step)
        least = float("inf")
        for _ in range(TRIAL_STEPS):
            run.advance()
            least = min(least, run.primal)
        return least


class SubgradientRun:
    """The method on its way: `weights` and their value `primal`, which may rise; `bounds` keep the best."""

    def __init__(self, bounds: PrimalBounds, step: StepSize, wish: StepSize | str) -> None:
        self.bounds = bounds
        self.step = step
        self.wish = wish
        self.iterations = self._since = 0
        self._move_to(bounds.dual_weights)

    def _move_to(self, weights: Floats) -> None:
        bounds = self.bounds
        self.primal, slack, _ = bounds.evaluate(weights)
        answers = responses_with_sums(bounds.problem, slack)
        self.weights, self.target = weights, bounds.rows.weights(answers)
        bounds.offer(answers, self.target)

    def advance(self) -> None:
        """Take a step."""
        self.iterations += 1
        self._since += 1
        self._move_to(self.weights - self.step(self._since) * (self.weights - self.target))

    def settle(self) -> None:
        """Do nothing: the bounds are up to date after each step."""

    def restart(self) -> None:
        """Go on from the best weights with shorter steps."""
        self.step, self._since = shorter(self.wish, self.step), 0
        self._move_to(self.bounds.weights)
