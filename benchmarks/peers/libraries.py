"""Adapters of maxmargin and its peers to one interface, for all machines.

An adapter imports its library when it is constructed, so that a missing library does not affect the others. `take`
converts the data to the preferred format of the library and is not timed; `fit` is.
"""

from __future__ import annotations

import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

#: The parameters of each machine besides those of the kernel.
MACHINE_PARAMETERS = {
    "SVC": ("C",),
    "NuSVC": ("nu",),
    "OneClassSVM": ("nu",),
    "SVR": ("C", "epsilon"),
    "NuSVR": ("C", "nu"),
    "LinearSVC": ("C",),
    "LinearSVR": ("C", "epsilon"),
}
CLASSIFIERS = ("SVC", "NuSVC", "LinearSVC")
LINEAR_MACHINES = ("LinearSVC", "LinearSVR")
KERNEL_MACHINES = tuple(name for name in MACHINE_PARAMETERS if name not in LINEAR_MACHINES)

#: The tolerance of linear machines, the default of all libraries.
LINEAR_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Parameters:
    """The parameters of a fit, the same for all. maxmargin uses its default cache size."""

    C: float
    gamma: float
    tolerance: float
    threads: int
    cache_mb: int
    machine: str = "SVC"
    kernel: str = "rbf"
    degree: int = 3
    coef0: float = 0.0
    nu: float = 0.5
    epsilon: float = 0.1

    def options(self) -> dict[str, Any]:
        """Return the options of an estimator with scikit-learn's names."""
        own = {name: getattr(self, name) for name in MACHINE_PARAMETERS[self.machine]}
        if self.machine in LINEAR_MACHINES:
            return {**own, "tol": LINEAR_TOLERANCE}
        of_kernel = {name: getattr(self, name) for name in ("kernel", "gamma", "degree", "coef0")}
        return {**own, **of_kernel, "tol": self.tolerance}


@dataclass(frozen=True)
class Coefficients:
    """Dual coefficients in the layout of LIBSVM, for any number of classes.

    Attributes
    ----------
    support : int array
        The training row of each column of `values`; empty for a linear machine.
    values : float array of shape (classes − 1, support vectors)
        For the pair of the classes p < q (by their position in `order`): row q − 1 for the columns of class p,
        row p for those of class q. One row for regression and the one-class SVM. For a linear machine the weights
        with the intercept in the last column, a row for each binary model.
    order : int array
        Class codes by position; empty without classes.
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
    #: The machines that the library has.
    machines: ClassVar[tuple[str, ...]] = tuple(MACHINE_PARAMETERS)

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
        """Record seconds and duality gap during the last `fit`; None if the library does not report them."""
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
        if self.parameters.machine in LINEAR_MACHINES:
            weights = np.column_stack([np.atleast_2d(self.model.coef_), np.ravel(self.model.intercept_)])
            return Coefficients(np.empty(0, dtype=np.int64), weights, np.empty(0), 1.0)
        values = self.model.dual_coef_
        values = np.atleast_2d(values.toarray() if sparse.issparse(values) else np.asarray(values))
        if self.parameters.machine not in CLASSIFIERS:
            return Coefficients(np.asarray(self.model.support_), values, np.empty(0), 1.0)
        classes = np.asarray(self.model.classes_)
        # With two classes the second is positive; with more, the first of each pair.
        return Coefficients(np.asarray(self.model.support_), values, classes, -1.0 if len(classes) == 2 else 1.0)


class MaxMargin(_LikeScikitLearn):
    """The library of this repository, with its default solver and cache."""

    package = "maxmargin"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        import maxmargin

        self.points: list[tuple[float, float]] = []
        # Peers regularise the intercept of linear machines.
        scaling = {"intercept_scaling": 1} if parameters.machine in LINEAR_MACHINES else {}
        self.model = getattr(maxmargin, parameters.machine)(**parameters.options(), **scaling)

    def evaluations(self) -> int | None:
        if self.parameters.machine in LINEAR_MACHINES:
            return None
        return int(sum(machine.counters.kernel_evaluations for machine in self.model._models_))

    def trace(self) -> list[tuple[float, float]] | None:
        points = self.points
        self.model.set_params(callback=lambda progress: points.append((perf_counter() - self.began, progress.gap)))
        return points

    def fit(self) -> None:
        self.points.clear()
        self.began = perf_counter()
        super().fit()


class Baseline(MaxMargin):
    """Another version of this repository's library, found through PYTHONPATH in `environment`."""


class ScikitLearn(_LikeScikitLearn):
    """scikit-learn: LIBSVM on dense rows or LIBLINEAR, one core."""

    package = "scikit-learn"

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from sklearn import svm

        cache = {} if parameters.machine in LINEAR_MACHINES else {"cache_size": parameters.cache_mb}
        self.model = getattr(svm, parameters.machine)(**parameters.options(), **cache)


class Sklearnex(_LikeScikitLearn):
    """Intel's extension for scikit-learn (oneDAL), all cores. A fallback to scikit-learn is reported."""

    package = "scikit-learn-intelex"
    machines: ClassVar[tuple[str, ...]] = ("SVC", "NuSVC", "SVR", "NuSVR")

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from sklearnex import svm

        self.model = getattr(svm, parameters.machine)(**parameters.options(), cache_size=parameters.cache_mb)

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
    machines: ClassVar[tuple[str, ...]] = KERNEL_MACHINES
    #: Machines and kernels by their number in LIBSVM's options.
    codes: ClassVar[tuple[str, ...]] = ("SVC", "NuSVC", "OneClassSVM", "SVR", "NuSVR")
    kernels: ClassVar[tuple[str, ...]] = ("linear", "poly", "rbf", "sigmoid", "precomputed")

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from libsvm import svmutil

        self.library = svmutil

    def take(self, X: Any, y: np.ndarray) -> None:
        p = self.parameters
        computed = p.kernel == "precomputed"
        if computed:  # a row starts with its number
            X = np.column_stack([np.arange(1.0, len(X) + 1), X])
        self.problem = self.library.svm_problem(y.astype(np.float64), sparse.csr_matrix(X), computed)
        options = f"-s {self.codes.index(p.machine)} -t {self.kernels.index(p.kernel)} -c {p.C!r} -n {p.nu!r} "
        options += f"-p {p.epsilon!r} -g {p.gamma!r} -d {p.degree} -r {p.coef0!r} "
        self.options = self.library.svm_parameter(f"{options} -e {p.tolerance!r} -m {p.cache_mb} -q")

    def fit(self) -> None:
        self.model = self.library.svm_train(self.problem, self.options)

    def coefficients(self) -> Coefficients:
        model = self.model
        values = np.array([model.sv_coef[row][: model.l] for row in range(model.nr_class - 1)])
        order = np.array(model.get_labels()) if self.parameters.machine in CLASSIFIERS else np.empty(0)
        return Coefficients(np.array(model.sv_indices[: model.l]) - 1, values, order, 1.0)


class ThunderSVM(Library):
    """ThunderSVM's wheel, on the CPU if it was built for it. It numbers classes in order of appearance."""

    package = "thundersvm"
    machines: ClassVar[tuple[str, ...]] = ("SVC",)

    def __init__(self, parameters: Parameters) -> None:
        super().__init__(parameters)
        from thundersvm import SVC

        p = parameters
        self.model = SVC(**p.options(), n_jobs=p.threads)

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
    "baseline": Baseline,
    "scikit-learn": ScikitLearn,
    "sklearnex": Sklearnex,
    "libsvm": Libsvm,
    "thundersvm": ThunderSVM,
}
OURS, BASELINE = "maxmargin", "baseline"


def peers_among(names: Iterable[str]) -> list[str]:
    """Return the names of other libraries, each once."""
    return [name for name in dict.fromkeys(names) if name not in (OURS, BASELINE)]
