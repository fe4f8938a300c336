"""Adapters of maxmargin and its peers to one interface.

An adapter imports its library when it is constructed, so that a missing library does not affect the others. `take`
converts the data to the preferred format of the library and is not timed; `fit` is.
"""

from __future__ import annotations

import logging
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Parameters:
    """The parameters of a fit, the same for all. maxmargin uses its default cache size."""

    C: float
    gamma: float
    tolerance: float
    threads: int
    cache_mb: int


@dataclass(frozen=True)
class Coefficients:
    """Dual coefficients in the layout of LIBSVM, for any number of classes.

    Attributes
    ----------
    support : int array
        The training row of each column of `values`.
    values : float array of shape (classes − 1, support vectors)
        For the pair of the classes p < q (by their position in `order`): row q − 1 for the columns of class p,
        row p for those of class q.
    order : int array
        Class codes by position.
    first_sign : float
        The sign of the first class of a pair in the expansion.
    """

    support: np.ndarray
    values: np.ndarray
    order: np.ndarray
    first_sign: float


class Library(ABC):
    """A library that trains support vector machines."""

    #: The distribution whose version is reported.
    package: str
    #: Environment variables for the best performance.
    environment: ClassVar[dict[str, str]] = {}

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self.remarks: list[str] = []

    def take(self, X: Any, y: np.ndarray) -> None:
        """Receive the data and convert them as the library would."""
        self.X, self.y = X, y

    @abstractmethod
    def fit(self) -> None:
        """Train; this part is timed."""

    @abstractmethod
    def coefficients(self) -> Any:
        """Return the solution for the verification."""

    def memory_estimate(self, X: Any) -> int:
        """Return the bytes that a fit may allocate: all kernel rows."""
        return 4 * int(X.shape[0]) ** 2

    def evaluations(self) -> int | None:
        """Return the number of kernel evaluations of `fit`, if the library counts them."""
        return None

    def passes(self) -> float | None:
        """Return the number of passes of `fit` over the data, if the library counts them."""
        return None

    def trace(self) -> list[tuple[float, float]] | None:
        """Record seconds and duality gap during `fit`; None if the library does not report them."""
        return None


class _LikeScikitLearn(Library):
    """Shared by estimators with scikit-learn's attributes."""

    model: Any

    def fit(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model.fit(self.X, self.y)
        self.remarks += [str(warning.message).splitlines()[0] for warning in caught]

    def coefficients(self) -> Coefficients:
        values = self.model.dual_coef_
        values = values.toarray() if sparse.issparse(values) else np.asarray(values)
        classes = np.asarray(self.model.classes_)
        # With two classes the second is positive; with more, the first of each pair.
        return Coefficients(np.asarray(self.model.support_), values, classes, -1.0 if len(classes) == 2 else 1.0)


class MaxMargin(_LikeScikitLearn):
    """The library of this repository, with its default solver and cache."""

    package = "maxmargin"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from maxmargin import SVC

        p = parameters
        self.model = SVC(C=p.C, gamma=p.gamma, tol=p.tolerance, n_jobs=None)

    def evaluations(self) -> int | None:
        return int(sum(machine.counters.kernel_evaluations for machine in self.model._models_))

    def trace(self) -> list[tuple[float, float]] | None:
        points: list[tuple[float, float]] = []
        self.model.set_params(callback=lambda progress: points.append((perf_counter() - self.began, progress.gap)))
        return points

    def fit(self) -> None:
        self.began = perf_counter()
        super().fit()


class ScikitLearn(_LikeScikitLearn):
    """scikit-learn's SVC: LIBSVM on dense rows, one core."""

    package = "scikit-learn"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from sklearn.svm import SVC

        p = parameters
        self.model = SVC(C=p.C, gamma=p.gamma, tol=p.tolerance, cache_size=p.cache_mb)


class Sklearnex(_LikeScikitLearn):
    """Intel's extension for scikit-learn (oneDAL), all cores. A fallback to scikit-learn is reported."""

    package = "scikit-learn-intelex"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from sklearnex.svm import SVC

        p = parameters
        self.model = SVC(C=p.C, gamma=p.gamma, tol=p.tolerance, cache_size=p.cache_mb)

    def fit(self) -> None:
        messages: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("sklearnex")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(handler)
        super().fit()
        logger.removeHandler(handler)
        if any("fallback" in message for message in messages):
            self.remarks.append("fell back to scikit-learn")


class Libsvm(Library):
    """LIBSVM with its own Python interface; its nodes are created before the timed part.

    The wheel computes kernel rows with OpenMP on all cores. Its threads must not spin while waiting: with
    any other load on a core, each row would take milliseconds and a fit a hundred times as long.
    """

    package = "libsvm-official"
    environment: ClassVar[dict[str, str]] = {"OMP_WAIT_POLICY": "passive"}

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from libsvm import svmutil

        self.library = svmutil

    def take(self, X: Any, y: np.ndarray) -> None:
        p = self.parameters
        self.problem = self.library.svm_problem(y.astype(np.float64), sparse.csr_matrix(X))
        options = f"-t 2 -c {p.C!r} -g {p.gamma!r} -e {p.tolerance!r} -m {p.cache_mb} -q"
        self.options = self.library.svm_parameter(options)

    def fit(self) -> None:
        self.model = self.library.svm_train(self.problem, self.options)

    def coefficients(self) -> Coefficients:
        model = self.model
        values = np.array([model.sv_coef[row][: model.l] for row in range(model.nr_class - 1)])
        return Coefficients(np.array(model.sv_indices[: model.l]) - 1, values, np.array(model.get_labels()), 1.0)


class ThunderSVM(Library):
    """ThunderSVM's wheel, on the CPU if it was built for it. It numbers classes in order of appearance."""

    package = "thundersvm"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from thundersvm import SVC

        p = parameters
        self.model = SVC(kernel="rbf", C=p.C, gamma=p.gamma, tol=p.tolerance, n_jobs=p.threads)

    def fit(self) -> None:
        self.model.fit(self.X, self.y)

    def coefficients(self) -> Coefficients:
        support, values = np.asarray(self.model.support_), np.asarray(self.model.dual_coef_)
        _, first_seen = np.unique(self.y, return_index=True)
        order = np.argsort(first_seen)
        of_first = values[0, self.y[support] == order[0]]
        return Coefficients(support, values, order, 1.0 if of_first.sum() >= 0 else -1.0)


#: maxmargin first; the others in the order of the tables.
LIBRARIES: dict[str, type[Library]] = {
    "maxmargin": MaxMargin,
    "scikit-learn": ScikitLearn,
    "sklearnex": Sklearnex,
    "libsvm": Libsvm,
    "thundersvm": ThunderSVM,
}
OURS = "maxmargin"
