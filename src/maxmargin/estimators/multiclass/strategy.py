"""How a classifier tells several classes apart: which machines it trains, and what they say together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from maxmargin._typing import Floats, Indices
from maxmargin.estimators.multiclass.parallel_training import Pose
from maxmargin.kernels import Kernel
from maxmargin.models import OneVsOneVote, OneVsRestArgmax
from maxmargin.solvers import Callback
from maxmargin.training import Machine, Solver

if TYPE_CHECKING:
    from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier


@dataclass(frozen=True)
class LabelledData:
    """Training data that have passed the door.

    Attributes
    ----------
    X : array or sparse matrix
        The samples, or their kernel matrix.
    classes : array
        The labels that occur, sorted.
    labels : int array
        The class of each row by its number, −1 for rows without weight, which are left out.
    members : list of int arrays
        The rows of each class.
    taking_part : int array
        The rows of all classes, in order.
    costs : float array
        The cost of slack of each row: C times the factor of its class times its weight.
    bounded : bool
        Whether costs are finite.
    """

    X: Any
    classes: Any
    labels: Indices
    members: list[Indices]
    taking_part: Indices
    costs: Floats
    bounded: bool


class Trained(NamedTuple):
    """What a strategy has trained, and how.

    Attributes
    ----------
    machines : list of Machine
    solver : Solver
    pose : function, optional
        From two classes to the problem of their machine and its samples; None if there are no pairs.
    side_by_side, threads : int
        How many machines were trained at the same time, and on how many threads each.
    held_out : function, optional
        From the fold of each sample to its values by machines without that fold, if all can be had at once.
    """

    machines: list[Machine]
    solver: Solver
    pose: Pose | None = None
    side_by_side: int = 1
    threads: int = 1
    held_out: Callable[[Indices], list[Floats] | None] | None = None


class Strategy(Protocol):
    """A way from several classes to machines and back."""

    @property
    def each(self) -> str:
        """What there is one machine for, in words."""
        ...

    def check(self, classifier: KernelClassifier) -> None:
        """Raise if the strategy cannot do what the parameters ask for."""
        ...

    def train(
        self, classifier: KernelClassifier, data: LabelledData, kernel: Kernel | None, report: Callback | None
    ) -> Trained:
        """Return the trained machines; `report` hears of the progress."""
        ...

    def lay_out(self, machines: list[Machine], data: LabelledData) -> tuple[Floats, Floats]:
        """Return the coefficients of all rows, one line below the other as in ``dual_coef_``, and the offsets."""
        ...

    def model(self, coefficients: Floats, offsets: Floats, counts: Any) -> OneVsOneVote | OneVsRestArgmax:
        """Return what predicts, from the coefficients of so many support vectors of each class."""
        ...


def check_shape(classifier: KernelClassifier) -> None:
    """Raise if decision values of pairs of classes are asked for where there are no pairs."""
    if classifier.decision_function_shape == "ovo":
        raise ValueError(
            "decision_function_shape='ovo' needs machines of pairs of classes; "
            f"multi_class={_strategy_of(classifier)!r} has one decision function per class: "
            "use decision_function_shape='ovr', or fit with multi_class='ovo'"
        )


def _strategy_of(classifier: KernelClassifier) -> str:
    """Return the strategy that was fitted, or else the one that is asked for."""
    return str(getattr(classifier, "_multi_class_", classifier.multi_class))


def check_no_probabilities(classifier: KernelClassifier) -> None:
    """Raise if probabilities are asked for where there are no pairs of classes to couple."""
    if wants_probabilities(classifier):
        raise ValueError(
            "probability=True needs machines of pairs of classes, which "
            f"multi_class={classifier.multi_class!r} does not train: use multi_class='ovo'"
        )


def wants_probabilities(estimator: Any) -> bool:
    """Whether the estimator was asked for probabilities; "deprecated" is scikit-learn's default and means no."""
    return bool(estimator.probability) and estimator.probability != "deprecated"
