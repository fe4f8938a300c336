"""Adapters of libraries for linear models, each with an accuracy setting and variants of which the fastest counts.

The accuracy setting is the tolerance of the library, or its number of epochs where a tolerance does not help. For
maxmargin it is the relative duality gap.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from benchmarks.peers.libraries import BASELINE, OURS, Library

#: Tolerances to try, in half decades from 10 to 1e-8.
TOLERANCES = tuple(10.0 ** (1 - step / 2) for step in range(19))

#: Numbers of epochs of stochastic methods, in half decades.
EPOCHS = (1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)

#: An iteration limit that is larger than any time limit allows.
NO_ITERATION_LIMIT = 1_000_000


@dataclass(frozen=True)
class LinearParameters:
    """The parameters of a fit; `setting` is the accuracy setting, `variant` an algorithm of the library."""

    C: float
    loss: str
    threads: int
    setting: float
    variant: str = ""
    max_seconds: float | None = None


@dataclass(frozen=True)
class Weights:
    """A linear model f(x) = w·x + b, with a row of `coef` for each binary model.

    Attributes
    ----------
    coef : float array of shape (models, features)
        One model for two classes, positive for code 1; else one for each class (one-vs-rest).
    intercept : float array of shape (models,)
    primal, dual : float
        Values of the certificate, summed over models; NaN for libraries without one.
    """

    coef: np.ndarray
    intercept: np.ndarray
    primal: float = np.nan
    dual: float = np.nan


class LinearLibrary(Library):
    """A library that trains linear models."""

    settings: ClassVar[tuple[float, ...]] = TOLERANCES
    #: Whether it is an interface of LIBLINEAR.
    is_liblinear: ClassVar[bool] = False

    @classmethod
    def variants(cls, loss: str, rows: int, features: int) -> list[str]:
        """Return the algorithms of the library for the problem, the most promising first; empty if there is none."""
        return [""]

    @abstractmethod
    def set_accuracy(self, setting: float) -> None:
        """Change the accuracy setting, after `take`."""

    @abstractmethod
    def coefficients(self) -> Weights: ...

    def memory_estimate(self, X: Any) -> int:
        """Return the bytes of a copy of the data with an index for every value, as in LIBLINEAR."""
        values = X.nnz if sparse.issparse(X) else X.size
        return 16 * int(values)


class _Estimator(LinearLibrary):
    """Shared by estimators with scikit-learn's attributes."""

    model: Any

    def fit(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model.fit(self.X, self.y)
        self.remarks += [str(warning.message).splitlines()[0] for warning in caught]

    def set_accuracy(self, setting: float) -> None:
        self.model.set_params(tol=setting)

    def coefficients(self) -> Weights:
        return Weights(np.asarray(self.model.coef_, dtype=float), np.asarray(self.model.intercept_, dtype=float))


class MaxMargin(_Estimator):
    """The library of this repository, with its default solver.

    The variant "passes" runs as many passes of coordinate ascent as the setting says, to measure the time of one.
    """

    package = "maxmargin"

    def __init__(self, parameters: LinearParameters) -> None:
        super().__init__(parameters)
        from maxmargin import LinearSVC

        p = parameters
        self.model = LinearSVC(C=p.C, loss=p.loss, tol=p.setting, intercept_scaling=1, max_seconds=p.max_seconds)
        if p.variant == "passes":
            self.model.set_params(dual=True, tol=1e-15, max_iter=int(p.setting))

    def coefficients(self) -> Weights:
        found = self.model.certificate_
        certificates = found if isinstance(found, list) else [found]
        return replace(
            super().coefficients(), primal=sum(c.primal for c in certificates), dual=sum(c.dual for c in certificates)
        )

    def passes(self) -> float | None:
        """Return the passes of coordinate ascent and the gap evaluations between them, of all binary models."""
        counters = [machine.counters for machine in self.model._models_]
        return float(sum(c.iterations + c.rounds for c in counters))


class Baseline(MaxMargin):
    """Another version of this repository's library, found through PYTHONPATH in `environment`."""


class ScikitLearn(_Estimator):
    """scikit-learn's LinearSVC: LIBLINEAR on one core, which copies the data into its nodes during the fit."""

    package = "scikit-learn"
    is_liblinear = True

    @classmethod
    def variants(cls, loss: str, rows: int, features: int) -> list[str]:
        if loss == "hinge":
            return ["dual"]
        return ["dual", "primal"] if rows < features else ["primal", "dual"]  # the first is that of dual="auto"

    def __init__(self, parameters: LinearParameters) -> None:
        super().__init__(parameters)
        from sklearn.svm import LinearSVC

        p = parameters
        self.model = LinearSVC(
            C=p.C, loss=p.loss, tol=p.setting, dual=p.variant == "dual", max_iter=NO_ITERATION_LIMIT, random_state=0
        )


class Liblinear(LinearLibrary):
    """LIBLINEAR with its own Python interface, one core; its nodes are created before the timed part."""

    package = "liblinear-official"
    is_liblinear = True

    @classmethod
    def variants(cls, loss: str, rows: int, features: int) -> list[str]:
        if loss == "hinge":
            return ["-s 3"]
        return ["-s 1", "-s 2"] if rows < features else ["-s 2", "-s 1"]

    def __init__(self, parameters: LinearParameters) -> None:
        super().__init__(parameters)
        from liblinear import liblinearutil

        self.library = liblinearutil

    def take(self, X: Any, y: np.ndarray) -> None:
        p = self.parameters
        self.problem = self.library.problem(y.astype(np.float64), sparse.csr_matrix(X), 1.0)
        self.options = self.library.parameter(f"{p.variant} -c {p.C!r} -e {p.setting!r} -B 1 -q")

    def set_accuracy(self, setting: float) -> None:
        self.options.eps = setting

    def fit(self) -> None:
        self.model = self.library.train(self.problem, self.options)

    def coefficients(self) -> Weights:
        labels = np.array(self.model.get_labels())
        models = 1 if len(labels) == 2 else len(labels)
        columns = np.ctypeslib.as_array(self.model.w, ((self.model.nr_feature + 1) * models,))
        weights = columns.reshape(-1, models).T.copy()
        if models == 1:
            weights *= 1.0 if labels[0] > labels[1] else -1.0
        else:
            weights = weights[np.argsort(labels)]
        return Weights(weights[:, :-1], weights[:, -1])


class StochasticGradient(_Estimator):
    """scikit-learn's SGDClassifier; a column of ones for the intercept is added before the timed part.

    Its default step sizes diverge with the squared hinge: there the first step is half of the largest stable one.
    """

    package = "scikit-learn"
    settings = EPOCHS

    @classmethod
    def variants(cls, loss: str, rows: int, features: int) -> list[str]:
        return ["optimal", "averaged"] if loss == "hinge" else ["invscaling", "adaptive"]

    def take(self, X: Any, y: np.ndarray) -> None:
        from sklearn.linear_model import SGDClassifier

        super().take(with_ones(X), y)
        p = self.parameters
        values = self.X.data if sparse.issparse(X) else self.X.ravel()
        safe = 0.5 * len(y) / float(values @ values)
        steps: dict[str, dict[str, Any]] = {
            "optimal": {},
            "averaged": {"average": True},
            "invscaling": {"learning_rate": "invscaling", "eta0": safe, "power_t": 0.5},
            "adaptive": {"learning_rate": "adaptive", "eta0": safe, "tol": 1e-5},
        }
        options = {"tol": None, **steps[p.variant]}
        self.model = SGDClassifier(
            loss=p.loss, alpha=1 / (p.C * len(y)), fit_intercept=False, max_iter=int(p.setting), random_state=0,
            n_jobs=p.threads, **options,
        )  # fmt: skip

    def set_accuracy(self, setting: float) -> None:
        self.model.set_params(max_iter=int(setting))

    def coefficients(self) -> Weights:
        weights = np.asarray(self.model.coef_)
        return Weights(weights[:, :-1], weights[:, -1])


class Skglm(_Estimator):
    """skglm's LinearSVC: dual coordinate descent, compiled by Numba, hinge loss only; a column of ones as above."""

    package = "skglm"

    @classmethod
    def variants(cls, loss: str, rows: int, features: int) -> list[str]:
        return [""] if loss == "hinge" else []

    def __init__(self, parameters: LinearParameters) -> None:
        super().__init__(parameters)
        from skglm import LinearSVC

        p = parameters
        self.model = LinearSVC(C=p.C, tol=p.setting, max_iter=1_000, fit_intercept=False)

    def take(self, X: Any, y: np.ndarray) -> None:
        super().take(with_ones(X), y)

    def coefficients(self) -> Weights:
        weights = np.atleast_2d(np.asarray(self.model.coef_))
        return Weights(weights[:, :-1], weights[:, -1])


class SnapML(_Estimator):
    """Snap ML's SupportVectorMachine: parallel coordinate descent, all cores."""

    package = "snapml"

    def __init__(self, parameters: LinearParameters) -> None:
        super().__init__(parameters)
        from snapml import SupportVectorMachine

        p = parameters
        self.model = SupportVectorMachine(
            regularizer=1 / p.C, loss=p.loss, tol=p.setting, max_iter=NO_ITERATION_LIMIT,
            n_jobs=p.threads, fit_intercept=True, intercept_scaling=1.0,
        )  # fmt: skip

    def coefficients(self) -> Weights:
        return Weights(np.atleast_2d(self.model.coef_), np.atleast_1d(self.model.intercept_))


def with_ones(X: Any) -> Any:
    """Return the data with a constant feature 1, whose weight is a regularised intercept."""
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


#: maxmargin first; the others in the order of the tables.
LIBRARIES: dict[str, type[LinearLibrary]] = {
    OURS: MaxMargin,
    BASELINE: Baseline,
    "scikit-learn": ScikitLearn,
    "liblinear": Liblinear,
    "sgd": StochasticGradient,
    "skglm": Skglm,
    "snapml": SnapML,
}
