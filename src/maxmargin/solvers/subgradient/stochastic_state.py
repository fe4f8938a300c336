"""The weights of a stochastic subgradient method on their way: the state that a stream of samples changes.

A step takes a few variables i of the n that the objective counts, and with their responses r_i = response(z_i)

    w ← (1 − η_t) w + η_t n mean(r_i f_i)
    ρ ← ρ + η_t s² n (mean(r_i in the group) − total / n)

which is a subgradient step on P(w, ρ) in expectation (Lampert's lecture, "Stochastic Primal SVMs Training"). Offsets
are not regularised; their steps are longer by s², the mean of ‖f_i‖², so that the unit of the features does not matter.

The state holds numbers and arrays only: it can be stored, and goes on from there bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem
from maxmargin.solvers.linear.linear_point import features_of
from maxmargin.solvers.subgradient.step_sizes import StepSize

NOTHING = np.empty(0)


@dataclass
class StochasticState:
    """Weights and offsets, their averages, and the number of steps.

    Parameters
    ----------
    direction : float array
        The weights divided by `scale`; one for each feature, and the last for the constant feature.
    offset : float array
        ρ of each group.
    samples : float
        n, how many variables the objective counts: the samples of the whole data, twice as many for regression. In a
        stream the number for which C is meant.
    step_size : StepSize
        η_t.
    offset_rate : float
        s², how much longer the steps of the offsets are.
    radius : float
        The weights are put back into a ball of this radius after each step; infinite for none.
    growing : bool
        Whether the t-th step counts t times in the average, or all steps the same.
    """

    direction: Floats
    offset: Floats
    samples: float
    step_size: StepSize
    offset_rate: float = 1.0
    radius: float = np.inf
    growing: bool = True
    steps: int = 0
    sums: Floats = field(default_factory=lambda: NOTHING)
    offset_sums: Floats = field(default_factory=lambda: NOTHING)
    #: scale, factor, squared length of the direction, weight of the last step, weights of all steps
    numbers: Floats = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0, 0.0]))

    def __post_init__(self) -> None:
        self.numbers[2] = self.direction @ self.direction if not self.steps else self.numbers[2]
        if not len(self.offset_sums):
            self.offset_sums = np.zeros(len(self.offset))

    @property
    def weights(self) -> Floats:
        """The weights as they are now."""
        return np.asarray(self.numbers[0] * self.direction)

    def start_average(self) -> None:
        """Forget the average and begin a new one with the next step."""
        self.sums, self.offset_sums = np.zeros(len(self.direction)), np.zeros(len(self.offset))
        self.numbers[[1, 3, 4]] = 0.0

    def average(self) -> tuple[Floats, Floats]:
        """Return the average of weights and offsets since `start_average`, or those of now if there was no step."""
        total = self.numbers[4]
        if not total:
            return self.weights, self.offset.copy()
        return (self.numbers[1] * self.direction + self.sums) / total, self.offset_sums / total

    def update(
        self,
        problem: DualProblem,
        order: Indices | None = None,
        batch_size: int = 1,
        answers: Floats = NOTHING,
        visits: Floats = NOTHING,
        stretch: slice = slice(None),
    ) -> None:
        """Take the steps of the samples of a problem: of all in turn, or as `order` says, `batch_size` in each step.

        The problem may be a batch of a stream. Responses and how much they count are added to `answers` and `visits`.
        """
        rows = features_of(problem, "stochastic_subgradient")
        if rows.dimension != len(self.direction) or problem.groups != len(self.offset):
            raise ValueError(
                f"the samples have {rows.width} features and {problem.groups} groups, "
                f"but those before had {len(self.direction) - 1} and {len(self.offset)}"
            )
        order = np.arange(problem.size) if order is None else order
        begin, end, _ = stretch.indices(len(order))
        weights = _native.AveragedWeights(
            direction=self.direction,
            sums=self.sums,
            offset=self.offset,
            offset_sums=self.offset_sums,
            numbers=self.numbers,
            steps=self.steps,
        )
        options = _native.SubgradientOptions(
            constant=rows.constant,
            samples=self.samples,
            share=problem.total / problem.size,
            numerator=self.step_size.numerator,
            growth=self.step_size.growth,
            delay=self.step_size.delay,
            offset_rate=self.offset_rate,
            radius=self.radius,
            growing=self.growing,
        )
        self.steps = _native.subgradient_steps(
            rows.native, problem.native, weights, options, order[begin:end], batch_size, answers, visits
        )
