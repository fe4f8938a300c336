"""State of the stochastic subgradient method, which batches of a stream update.

A step takes a batch of variables i of the n in the objective, and with their responses r_i = response(z_i)

    w ← (1 − η_t) w + η_t n mean(r_i f_i)
    ρ ← ρ + η_t s² n (mean(r_i in the group) − total / n)

which is a subgradient step on P(w, ρ) in expectation (Lampert's lecture, "Stochastic Primal SVMs Training"). Offsets
are not regularised; their steps are scaled by s², the mean of ‖f_i‖², which makes them independent of the units.

The state holds numbers and arrays only: it can be pickled and continued bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from maxmargin import _native
from maxmargin._typing import Floats, Indices
from maxmargin.problems import DualProblem
from maxmargin.solvers.linear.linear_point import features_of
from maxmargin.solvers.subgradient.step_sizes import StepSize

EMPTY = np.empty(0)


@dataclass
class StochasticState:
    """Weights and offsets, their averages, and the step count.

    Parameters
    ----------
    direction : float array
        The weights divided by `numbers[0]`; one for each feature, and the last for the constant feature.
    offset : float array
        ρ of each group.
    samples : float
        n, the number of variables in the objective: the samples of the whole data, twice as many for regression. In a
        stream the number of samples that C refers to.
    step_size : StepSize
        η_t.
    offset_rate : float
        s², the factor on the steps of the offsets.
    radius : float
        The weights are projected on a ball of this radius after each step; infinite for none.
    growing : bool
        Whether the t-th step has the weight t in the average, or all steps the same.
    """

    direction: Floats
    offset: Floats
    samples: float
    step_size: StepSize
    offset_rate: float = 1.0
    radius: float = np.inf
    growing: bool = True
    steps: int = 0
    sums: Floats = field(default_factory=lambda: EMPTY)
    offset_sums: Floats = field(default_factory=lambda: EMPTY)
    #: scale, factor of the lazy average, squared norm of the direction, weight of the last step, sum of all weights
    numbers: Floats = field(default_factory=lambda: np.array([1.0, 0.0, 0.0, 0.0, 0.0]))

    def __post_init__(self) -> None:
        self.numbers[2] = self.direction @ self.direction if not self.steps else self.numbers[2]
        if not len(self.offset_sums):
            self.offset_sums = np.zeros(len(self.offset))

    @property
    def weights(self) -> Floats:
        """The current weights."""
        return np.asarray(self.numbers[0] * self.direction)

    def start_average(self) -> None:
        """Discard the average and start a new one with the next step."""
        self.sums, self.offset_sums = np.zeros(len(self.direction)), np.zeros(len(self.offset))
        self.numbers[[1, 3, 4]] = 0.0

    def average(self) -> tuple[Floats, Floats]:
        """Return the averages of weights and offsets since `start_average`, or the current ones before a step."""
        total = self.numbers[4]
        if not total:
            return self.weights, self.offset.copy()
        return (self.numbers[1] * self.direction + self.sums) / total, self.offset_sums / total

    def update(
        self,
        problem: DualProblem,
        order: Indices | None = None,
        batch_size: int = 1,
        responses: Floats = EMPTY,
        visits: Floats = EMPTY,
        chunk: slice = slice(None),
    ) -> None:
        """Take steps with `batch_size` samples of a problem each, in the given order.

        The problem may be a batch of a stream. Responses and their weights are added to `responses` and `visits`. Only
        a `chunk` of the order is processed.
        """
        rows = features_of(problem, "stochastic_subgradient")
        if rows.dimension != len(self.direction) or problem.groups != len(self.offset):
            raise ValueError(
                f"the samples have {rows.width} features and {problem.groups} groups, "
                f"but earlier ones had {len(self.direction) - 1} and {len(self.offset)}"
            )
        order = np.arange(problem.size) if order is None else order
        begin, end, _ = chunk.indices(len(order))
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
            rows.native, problem.native, weights, options, order[begin:end], batch_size, responses, visits
        )
