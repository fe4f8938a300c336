"""Training with labelled and unlabelled samples of two classes: a sequence of convex problems.

The labels of the unlabelled samples are variables, too, so that the problem is not convex:

    minimise over w, b and y_u     ½‖w‖² + Σ C_i max(0, 1 − y_i f(x_i)),   both labelled and unlabelled

`switch_labels` is Joachims' method (1999). The fraction of positive labels is fixed. The labels of the inductive
solution are improved by switching pairs of them, while the cost of the unlabelled samples grows to its final value. All
pairs that lower the objective are switched before the problem is solved again (Sindhwani & Keerthi 2006).

`concave_convex` is the concave–convex procedure of Collobert et al. (2006): the label of an unlabelled sample is the
sign of f, its loss is linearised where it is concave, and the mean of f is fixed in place of the fraction.

Both end at a point that no step of theirs improves, which need not be the global optimum. The convex problems have the
same kernel values, start from each other's solutions, and are solved and verified like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations import c_classification
from maxmargin.formulations.formulation import Formulation
from maxmargin.formulations.ramp_classification import RampClassification
from maxmargin.matrices import SymmetricMatrix
from maxmargin.matrices.centred_matrix import centred
from maxmargin.matrices.numerics import inner
from maxmargin.problems import Counters, DualProblem, Status
from maxmargin.training.trained_model import TrainedModel

#: The part of its final value at which the cost of unlabelled samples begins, and its growth from solution to solution
#: (Joachims 1999).
FIRST_COST, COST_GROWTH = 1e-5, 2.0

#: Statuses after which no further problem is solved.
ENDING = (Status.MAX_SECONDS, Status.STOPPED, Status.INTERRUPTED, Status.UNBOUNDED)

#: From a posed problem, its formulation and a start to the trained model.
Train = Callable[[DualProblem, Formulation, Floats | None], TrainedModel]


class Transduction(NamedTuple):
    """The result for two classes.

    Attributes
    ----------
    model : TrainedModel
        Of the last problem; its status is STATIONARY if the tolerance of that problem was reached.
    signs : float array
        The label of each sample, given or found, as ±1.
    values : float array
        The decision value of each sample.
    problems : int
        How many convex problems were solved.
    """

    model: TrainedModel
    signs: Floats
    values: Floats
    problems: int


@dataclass(frozen=True)
class PartlyLabelled:
    """Samples of two classes of which some have no label.

    Attributes
    ----------
    matrix : SymmetricMatrix
        Their kernel matrix.
    signs : float array
        ±1, or 0 without a label.
    costs : float array
        The cost of slack of each sample.
    weights : float array
        The weights by which unlabelled samples are counted.
    fraction : float
        The part of them that is positive.
    tolerance : float
        The violation up to which problems are solved.
    """

    matrix: SymmetricMatrix
    signs: Floats
    costs: Floats
    weights: Floats
    fraction: float
    tolerance: float

    @property
    def unlabelled(self) -> Indices:
        """The positions of the samples without a label."""
        return np.flatnonzero(self.signs == 0)


@dataclass(frozen=True)
class _Solved:
    """The model of a convex problem, its decision values and ‖w‖²."""

    model: TrainedModel
    values: Floats
    squared_norm: float

    @property
    def ended(self) -> bool:
        """Whether a limit or an interruption ends the fit here."""
        return self.model.status in ENDING


class _Sequence:
    """The convex problems of a fit, and their cost."""

    def __init__(self, train: Train) -> None:
        self._train, self._solved, self._spent = train, 0, Counters()

    def solve(self, problem: DualProblem, start: Floats | None) -> _Solved:
        """Return the solution of one more problem of labelled samples."""
        model = self._add(self._train(problem, c_classification, start))
        product = problem.linear - model.gradient_for(problem)
        return _Solved(model, product + float(model.expansion.offset), inner(model.dual, product))

    def solve_ramp(self, problem: DualProblem, step: RampClassification, start: Floats) -> _Solved:
        """Return the solution of one more step of the concave–convex procedure."""
        model = self._add(self._train(problem, step, start))
        values = step.values(model.gradient_for(problem))
        return _Solved(model, values, inner(step.linearised + model.dual, values - step.mean))

    def _add(self, model: TrainedModel) -> TrainedModel:
        self._solved += 1
        self._spent = self._spent + model.counters
        return model

    def result(self, last: _Solved, signs: Floats, values: Floats) -> Transduction:
        """Return the result, of which `last` is the model."""
        last.model.counters = self._spent
        if last.model.status is Status.CONVERGED:
            last.model.status = Status.STATIONARY
        return Transduction(last.model, signs, values, self._solved)


def hinge(values: Floats) -> Floats:
    """Return the loss max(0, 1 − y f) of values y f."""
    return np.maximum(0.0, 1.0 - values)


def switch_labels(data: PartlyLabelled, train: Train) -> Transduction:
    """Return the result of label switching."""
    problems, unlabelled = _Sequence(train), data.unlabelled
    current = _solve_inductively(data, problems)
    signs = data.signs.copy()
    signs[unlabelled] = _most_positive(current.values[unlabelled], data.weights[unlabelled], data.fraction)
    part, growth = FIRST_COST if len(unlabelled) else 1.0, 0.0  # of the variables without cost so far
    while not current.ended:
        costs = np.where(data.signs == 0, part, 1.0) * data.costs
        start = current.model.dual * np.where(data.signs == 0, growth, 1.0)
        current, signs = _switch_at_cost(data, problems, signs, costs, start)
        if part == 1.0:
            break
        before, part = part, min(1.0, COST_GROWTH * part)
        growth = part / before
    return problems.result(current, signs, current.values)


def _switch_at_cost(
    data: PartlyLabelled, problems: _Sequence, signs: Floats, costs: Floats, start: Floats
) -> tuple[_Solved, Floats]:
    """Return the solution at a cost of the unlabelled samples, and the labels that no switched pair improves."""

    def solve(labels: Floats, from_: Floats) -> _Solved:
        return problems.solve(c_classification.pose(data.matrix, labels, costs), from_)

    def objective(solved: _Solved, labels: Floats) -> float:
        return 0.5 * solved.squared_norm + inner(costs, hinge(labels * solved.values))

    current = solve(signs, start)
    while not current.ended:
        pairs = _improving_pairs(data, current.values, signs, costs)
        if not len(pairs):
            break
        switched = signs.copy()
        switched[pairs] *= -1.0
        following = solve(switched, current.model.dual)
        # Both are optimal within the tolerance: the labels stay if the difference is smaller than that.
        if not following.ended and objective(following, switched) >= objective(current, signs):
            break
        current, signs = following, switched
    return current, signs


def _improving_pairs(data: PartlyLabelled, values: Floats, signs: Floats, costs: Floats) -> Indices:
    """Return the unlabelled samples of opposite labels that lower the objective by switching them, pair by pair."""
    of_values, unlabelled = signs * values, data.unlabelled
    slack = unlabelled[of_values[unlabelled] < 1.0]
    slack = slack[np.argsort(of_values[slack], kind="stable")]
    positive, negative = slack[signs[slack] > 0], slack[signs[slack] < 0]
    count = min(len(positive), len(negative))
    pairs = np.stack([positive[:count], negative[:count]])
    decrease = (costs[pairs] * (hinge(of_values[pairs]) - hinge(-of_values[pairs]))).sum(axis=0)
    improving = decrease > data.tolerance * costs[pairs].sum(axis=0)
    return np.asarray(pairs[:, : int(np.logical_and.accumulate(improving).sum())]).ravel()


def _most_positive(values: Floats, weights: Floats, fraction: float) -> Floats:
    """Return labels of which a fraction of the weight is positive: those of the largest values."""
    order = np.argsort(-values, kind="stable")
    ends = np.cumsum(weights[order])
    signs = np.full(len(values), -1.0)
    signs[order[ends - 0.5 * weights[order] <= fraction * weights.sum()]] = 1.0
    return signs


def concave_convex(data: PartlyLabelled, train: Train, ramp: float) -> Transduction:
    """Return the result of the concave–convex procedure; the loss is constant where y f(x) < `ramp`."""
    problems, unlabelled = _Sequence(train), data.unlabelled
    current = _solve_inductively(data, problems)
    if not len(unlabelled) or current.ended:
        return problems.result(current, _labels(data, current.values), current.values)
    counted = np.where(data.signs == 0, data.weights, 0.0)
    shares, mean = counted / counted.sum(), 2.0 * data.fraction - 1.0
    matrix, costs = centred(data.matrix, shares), data.costs

    def linearise(values: Floats) -> Floats:
        below = (values < ramp).astype(np.float64) - (-values < ramp)
        return np.where(data.signs == 0, -costs * below, 0.0)

    def objective(solved: _Solved) -> float:
        loss, opposite = (np.minimum(hinge(values), 1.0 - ramp) for values in (solved.values, -solved.values))
        losses = np.where(data.signs == 0, loss + opposite, hinge(data.signs * solved.values))
        return 0.5 * solved.squared_norm + inner(costs, losses)

    linearised, coefficients, best = linearise(current.values), current.model.dual, np.inf
    while not current.ended:
        step = RampClassification(data.signs, shares, mean, linearised, matrix.matvec(linearised))
        following = problems.solve_ramp(step.pose(matrix, costs), step, coefficients - linearised)
        value = objective(following)
        if not following.ended and value >= best:
            break  # equal within the tolerance
        current, coefficients, best = following, linearised + following.model.dual, value
        before, linearised = linearised, linearise(current.values)
        if np.array_equal(before, linearised):
            break
    return problems.result(current, _labels(data, current.values), current.values)


def _solve_inductively(data: PartlyLabelled, problems: _Sequence) -> _Solved:
    """Return the solution of the labelled samples alone: unlabelled ones have no cost, but values."""
    costs = np.where(data.signs == 0, 0.0, data.costs)
    signs = np.where(data.signs == 0, 1.0, data.signs)
    return problems.solve(c_classification.pose(data.matrix, signs, costs), None)


def _labels(data: PartlyLabelled, values: Floats) -> Floats:
    """Return the label of each sample: as given, or the sign of its value."""
    return np.where(data.signs == 0, np.where(values >= 0, 1.0, -1.0), data.signs)
