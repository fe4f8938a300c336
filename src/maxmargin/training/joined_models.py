"""Trained models of problems that were posed and solved as one, such as all pairs of classes.

Five hundred classes are 124,750 problems of a few samples: an object for each takes longer than their solution. What a
fit needs of them is in arrays, and a model becomes an object when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.formulations.formulation import Formulation, KernelExpansion
from maxmargin.problems import Counters, DualProblem, Solution, Status
from maxmargin.training.trained_model import TrainedModel


@dataclass(frozen=True)
class JoinedProblem:
    """Problems whose variables follow each other in one problem.

    Attributes
    ----------
    pose : callable
        Returns that problem. Its only group, if any, has a total of 0 and stands for one group of each problem.
    samples : int array
        The training row of each variable.
    sizes : int array
        The number of variables of each problem.
    pose_again : callable
        Poses the problem of a number for its certificate, without kernel values of the fit.
    """

    pose: Callable[[], DualProblem]
    samples: Indices
    sizes: Indices
    pose_again: Callable[[int], DualProblem]


class JoinedSolution(NamedTuple):
    """The solution of joined problems: dual vector, gradient, and offset and cost of each problem."""

    dual: Floats
    gradient: Floats
    offsets: Floats
    iterations: Indices
    kernel_evaluations: Indices
    row_requests: Indices
    seconds: float


class JoinedModels(Sequence[TrainedModel]):
    """The trained models of joined problems, whose decision functions have the dual variables as coefficients.

    Parameters
    ----------
    problems : JoinedProblem
    solution : JoinedSolution
        Converged, except for the problems of `continued`.
    continued : dict
        The models of problems that the batch solver left unfinished, by their numbers.
    formulation : Formulation
    checksum : int
        Of the training data.

    Attributes
    ----------
    samples : int array
        The training rows of the problems, one after another.
    sizes : int array
        How many of them each problem has.
    coefficients : float array
        The coefficient of each of `samples`.
    offsets : float array
        The offset of each problem.
    iterations : int array
        The number of iterations of each problem.
    """

    def __init__(
        self,
        problems: JoinedProblem,
        solution: JoinedSolution,
        continued: dict[int, TrainedModel],
        formulation: Formulation,
        checksum: int,
    ) -> None:
        self.samples, self.sizes, self._pose_again = problems.samples, problems.sizes, problems.pose_again
        self.coefficients, self.offsets, self.iterations = solution.dual, solution.offsets, solution.iterations
        self._solution, self._formulation, self._checksum = solution, formulation, checksum
        self._edges = np.concatenate([[0], np.cumsum(self.sizes)])
        self._continued, self._read = continued, dict(continued)
        for p, model in continued.items():
            self.coefficients[self._variables(p)] = model.expansion.coefficients
            self.offsets[p] = model.expansion.offset
            self.iterations[p] = model.counters.iterations

    def _variables(self, p: int) -> slice:
        return slice(int(self._edges[p]), int(self._edges[p + 1]))

    def _make(self, p: int) -> TrainedModel:
        """Return the model of a problem that the batch solver finished."""
        solved, at = self._solution, self._variables(p)
        evaluations, requests = int(solved.kernel_evaluations[p]), int(solved.row_requests[p])
        counters = Counters(int(solved.iterations[p]), evaluations, requests, seconds=solved.seconds)
        solution = Solution(solved.dual[at], solved.gradient[at], Status.CONVERGED, counters)
        expansion = KernelExpansion(solution.dual, float(solved.offsets[p]))
        pose = partial(self._pose_again, p)
        return TrainedModel(pose, solution, self.samples[at], self._formulation, expansion, self._checksum)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[p] for p in range(*position.indices(len(self)))]
        p = range(len(self))[position]
        return self._read.get(p) or self._read.setdefault(p, self._make(p))

    def __reduce__(self) -> tuple[type[list[TrainedModel]], tuple[list[TrainedModel]]]:
        return list, (list(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> JoinedModels:
        return self  # nothing of it is modified

    @property
    def unconverged(self) -> list[TrainedModel]:
        """The models that did not reach the tolerance, which are among those that the batch solver left unfinished."""
        return [model for model in self._continued.values() if not model.status.converged]

    @property
    def statuses(self) -> list[Status]:
        """How each model ended."""
        return [self._continued[p].status if p in self._continued else Status.CONVERGED for p in range(len(self))]


def unconverged(models: Sequence[Any]) -> list[Any]:
    """Return the models that did not reach the tolerance."""
    if isinstance(models, JoinedModels):
        return models.unconverged
    return [model for model in models if not model.status.converged]


def statuses(models: Sequence[Any]) -> list[Status]:
    """Return how each model ended."""
    if isinstance(models, JoinedModels):
        return models.statuses
    return [model.status for model in models]


def iteration_counts(models: Sequence[Any]) -> Indices:
    """Return the number of iterations of each model."""
    if isinstance(models, JoinedModels):
        return models.iterations
    return np.array([model.counters.iterations for model in models], dtype=np.int64)
