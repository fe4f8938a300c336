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


class StoppedProblems(NamedTuple):
    """Problems that a limit, the callback or Ctrl-C ended: their numbers, why, and their violations.

    A violation is not a number where the gradient is not known.
    """

    numbers: Indices
    status: Status
    violations: Floats


class JoinedSolution(NamedTuple):
    """The solution of joined problems: dual vector, gradient, and offset and cost of each problem.

    All problems converged, except those of `stopped`.
    """

    dual: Floats
    gradient: Floats
    offsets: Floats
    iterations: Indices
    kernel_evaluations: Indices
    row_requests: Indices
    seconds: float
    stopped: StoppedProblems | None = None


class JoinedModels(Sequence[TrainedModel]):
    """The trained models of joined problems, whose decision functions have the dual variables as coefficients.

    Parameters
    ----------
    problems : JoinedProblem
    solution : JoinedSolution
        Of all problems but those of `continued`.
    continued : dict
        The models of problems that the batch solver left unfinished and another continued, by their numbers.
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
        self.samples, self.sizes = problems.samples, problems.sizes
        self.coefficients, self.offsets, self.iterations = solution.dual, solution.offsets, solution.iterations
        self._formulation, self._checksum = formulation, checksum
        self._edges = np.concatenate([[0], np.cumsum(self.sizes)])
        self._stopped, self._continued, self._read = solution.stopped, continued, dict(continued)
        # Until all models are read: then each has what its certificate needs, and releases it.
        self._source: tuple[Callable[[int], DualProblem], JoinedSolution] | None = problems.pose_again, solution
        for p, model in continued.items():
            self.coefficients[self._variables(p)] = model.expansion.coefficients
            self.offsets[p] = model.expansion.offset
            self.iterations[p] = model.counters.iterations

    def _variables(self, p: int) -> slice:
        return slice(int(self._edges[p]), int(self._edges[p + 1]))

    def _make(self, p: int, pose_again: Callable[[int], DualProblem], solved: JoinedSolution) -> TrainedModel:
        """Return the model of a problem from the arrays of all."""
        at = self._variables(p)
        evaluations, requests = int(solved.kernel_evaluations[p]), int(solved.row_requests[p])
        counters = Counters(int(solved.iterations[p]), evaluations, requests, seconds=solved.seconds)
        solution = Solution(solved.dual[at], solved.gradient[at], self._status(p), counters)
        expansion = KernelExpansion(solution.dual, float(solved.offsets[p]))
        pose = partial(pose_again, p)
        return TrainedModel(pose, solution, self.samples[at], self._formulation, expansion, self._checksum)

    def _status(self, p: int) -> Status:
        """Return how a problem ended that was not continued."""
        stopped = self._stopped
        if stopped is None:
            return Status.CONVERGED
        place = int(np.searchsorted(stopped.numbers, p))
        found = place < len(stopped.numbers) and stopped.numbers[place] == p
        return stopped.status if found else Status.CONVERGED

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[p] for p in range(*position.indices(len(self)))]
        p = range(len(self))[position]
        model, source = self._read.get(p), self._source
        if model is None and source is None:  # another thread has read the last models in the meantime
            model = self._read[p]
        elif model is None and source is not None:
            model = self._read.setdefault(p, self._make(p, *source))
            if len(self._read) == len(self):
                self._source = None
        return model

    def __reduce__(self) -> tuple[type[list[TrainedModel]], tuple[list[TrainedModel]]]:
        return list, (list(self),)

    def __deepcopy__(self, memo: dict[int, Any]) -> JoinedModels:
        return self  # nothing of it is modified

    @property
    def unconverged(self) -> list[Status]:
        """How the models ended that did not reach the tolerance."""
        stopped = [] if self._stopped is None else [self._stopped.status] * len(self._stopped.numbers)
        return [model.status for model in self._continued.values() if not model.status.converged] + stopped

    @property
    def statuses(self) -> list[Status]:
        """How each model ended."""
        found = [Status.CONVERGED] * len(self)
        if self._stopped is not None:
            for p in self._stopped.numbers.tolist():
                found[p] = self._stopped.status
        for p, model in self._continued.items():
            found[p] = model.status
        return found

    @property
    def least_converged(self) -> list[TrainedModel]:
        """Models that did not reach the tolerance, among them the one with the largest violation."""
        models = [model for model in self._continued.values() if not model.status.converged]
        if self._stopped is not None:
            known = np.where(np.isnan(self._stopped.violations), np.inf, self._stopped.violations)
            models.append(self[int(self._stopped.numbers[known.argmax()])])
        return models


def unconverged(models: Sequence[Any]) -> list[Status]:
    """Return how the models ended that did not reach the tolerance."""
    if isinstance(models, JoinedModels):
        return models.unconverged
    return [model.status for model in models if not model.status.converged]


def farthest_from_optimal(models: Sequence[Any], distance: Callable[[Any], float]) -> Any:
    """Return the model with the largest distance from the tolerance, of those that did not reach it."""
    if isinstance(models, JoinedModels):
        return max(models.least_converged, key=distance)
    return max((model for model in models if not model.status.converged), key=distance)


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
