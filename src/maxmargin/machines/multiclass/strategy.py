"""Multi-class strategies: the two-class problems of several classes, their training, and the layout of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from maxmargin._typing import Floats, Indices
from maxmargin.models import OneVsOneVote, OneVsRestArgmax
from maxmargin.problems import DualProblem
from maxmargin.training import Solver, TrainedModel
from maxmargin.training.fit_context import FitContext
from maxmargin.training.small_problems import TwoClassFormulation, TwoClassSamples


@dataclass(frozen=True)
class LabelledData:
    """Validated training data of a classifier.

    Attributes
    ----------
    X : array or sparse matrix
        The samples, or their kernel matrix.
    classes : array
        The labels that occur, sorted.
    labels : int array
        The class number of each row, −1 for rows without weight, which are left out.
    members : list of int arrays
        The rows of each class.
    rows : int array
        The rows of all classes, in order.
    costs : float array
        The slack cost of each row: C times its class weight times its sample weight.
    bounded : bool
        Whether costs are finite.
    """

    X: Any
    classes: Any
    labels: Indices
    members: list[Indices]
    rows: Indices
    costs: Floats
    bounded: bool


class TrainedClasses(NamedTuple):
    """The trained models of a strategy, and what cross-validation of pairs needs.

    Attributes
    ----------
    models : sequence of TrainedModel
    solver : Solver
    problem : function, optional
        From the position of a pair to its dual problem; None if there are no pairs.
    workers, threads : int
        How many problems were trained at the same time, and the threads of each.
    held_out_values : function, optional
        From the fold of each sample and a tolerance to its decision values by models trained without that fold.
    """

    models: Sequence[TrainedModel]
    solver: Solver
    problem: Callable[[int], DualProblem] | None = None
    workers: int = 1
    threads: int = 1
    held_out_values: Callable[[Indices, float], list[Floats] | None] | None = None


class MulticlassStrategy(Protocol):
    """A reduction of several classes to dual problems."""

    @property
    def each(self) -> str:
        """The name of the unit that has one problem each, for messages."""
        ...

    @property
    def pairwise(self) -> bool:
        """Whether there is a model for each pair of classes."""
        ...

    def parts(self, data: LabelledData) -> Sequence[TwoClassSamples]:
        """Return the rows and the signs of each problem."""
        ...

    def train(
        self,
        context: FitContext,
        two_class: TwoClassFormulation,
        data: LabelledData,
        parts: Sequence[TwoClassSamples],
        starts: Sequence[Floats | None],
    ) -> TrainedClasses:
        """Return the trained models."""
        ...

    def lay_out(self, models: Sequence[TrainedModel], data: LabelledData) -> tuple[Floats, Floats]:
        """Return the coefficients of all rows in the layout of ``dual_coef_``, and the offsets."""
        ...

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsOneVote | OneVsRestArgmax:
        """Return the predictor, from the coefficients of the support vectors, `counts` of each class."""
        ...
