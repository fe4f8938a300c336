"""Fixed fits on which `benchmarks.threshold_sensitivity` measures thresholds, by group of thresholds."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, make_classification

from benchmarks.regression import noisy, text_like, three_classes
from maxmargin.datasets import chessboard, sinc


@dataclass(frozen=True)
class Counts:
    """What a fit took, a digest of its solution, and whether the solution meets the tolerance."""

    steps: int
    kernel_values: int
    rounds: int
    digest: str
    met: bool


Case = Callable[[], Counts]


@cache
def wide() -> tuple:
    """More features than most data have."""
    return make_classification(4200, 100, n_informative=30, n_redundant=0, flip_y=0.05, random_state=0)


@cache
def wider() -> tuple:
    """Kernel values that are expensive enough to be cached."""
    return make_classification(4200, 200, n_informative=30, n_redundant=0, flip_y=0.05, random_state=0)


@cache
def tall() -> tuple:
    """Enough samples for subsamples of the linear solver."""
    return make_classification(30000, 20, n_informative=12, n_redundant=0, flip_y=0.1, random_state=0)


@cache
def many_values() -> tuple:
    """Enough values for two threads in a pass of coordinate ascent."""
    return make_classification(5200, 400, n_informative=30, n_redundant=0, flip_y=0.05, random_state=0)


@cache
def separable() -> tuple:
    """More features than samples."""
    return make_classification(200, 300, n_informative=30, n_redundant=0, random_state=0)


DATA: dict[str, Callable[[], tuple]] = {
    "iris": cache(lambda: load_iris(return_X_y=True)),
    "chessboard": cache(lambda: chessboard(5000)),
    "noisy": cache(noisy),
    "three classes": cache(three_classes),
    "text": cache(text_like),
    "sinc": cache(lambda: sinc(2500, noise=0.1)),
    "wide": wide,
    "wider": wider,
    "tall": tall,
    "many values": many_values,
    "separable": separable,
}


def case(estimator: str, data: str, rows: int | None = None, /, **options: Any) -> Case:
    """Return a function that fits an estimator to the first rows of a data set and returns the counts of its models."""

    def fit() -> Counts:
        import maxmargin

        X, y = (part[:rows] for part in DATA[data]())
        settings = {key: value() if callable(value) else value for key, value in options.items()}
        model = getattr(maxmargin, estimator)(**{"n_jobs": 1, **settings}).fit(X, y)
        models = model._models_
        counters = [one.counters for one in models]
        arrays = [one.weights if hasattr(one, "weights") else one.dual for one in models]
        return Counts(
            sum(c.iterations for c in counters),
            sum(c.kernel_evaluations for c in counters),
            sum(c.rounds for c in counters),
            _digest(arrays),
            all(_meets(one, model, settings) for one in models),
        )

    return fit


def _meets(one: Any, model: Any, settings: dict[str, Any]) -> bool:
    """Whether the certificate of a trained model meets the tolerance of its estimator."""
    certificate = one.certificate
    if hasattr(one, "weights"):
        return bool(certificate.relative_gap <= model.tol)
    rule = getattr(settings.get("solver"), "stopping", None)
    if rule is not None and rule.gap is not None and certificate.gap <= rule.gap:
        return True
    return bool(certificate.violation <= model.tol)


def calibrated(estimator: str, data: str, rows: int, /, **options: Any) -> Case:
    """Return a function that fits with cross-validation and returns the counts of all solves, those of folds included.

    The fit must meet its tolerance, and every fold must converge.
    """

    def fit() -> Counts:
        import maxmargin

        X, y = (part[:rows] for part in DATA[data]())
        with _recorded_solutions() as solutions:
            model = getattr(maxmargin, estimator)(n_jobs=1, **options).fit(X, y)
        fitted = model.predict_proba(X[:100]) if hasattr(model, "predict_proba") else model.predict(X[:100])
        counters = [solution.counters for solution in solutions]
        return Counts(
            sum(c.iterations for c in counters),
            sum(c.kernel_evaluations for c in counters),
            sum(c.rounds for c in counters),
            _digest([fitted]),
            all(one.certificate.violation <= model.tol for one in model._models_)
            and all(solution.status.converged for solution in solutions),
        )

    return fit


@contextmanager
def _recorded_solutions() -> Iterator[list[Any]]:
    """Collect all solutions that solvers create meanwhile."""
    from maxmargin.problems import Solution

    found: list[Any] = []
    create = Solution.__init__

    def record(self: Any, *arguments: Any, **options: Any) -> None:
        create(self, *arguments, **options)
        found.append(self)

    Solution.__init__ = record  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Solution.__init__ = create  # type: ignore[method-assign]


def _digest(arrays: list[Any]) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def _solver(name: str, **options: Any) -> Callable[[], Any]:
    """Return a function that makes a solver of the package as it is imported then."""

    def make() -> Any:
        solvers = importlib.import_module("maxmargin.solvers")
        rule = {key: options[key] for key in ("violation", "gap") if key in options}
        rest = {key: value for key, value in options.items() if key not in rule}
        return getattr(solvers, name)(stopping=solvers.StoppingRule(**rule), **rest)

    return make


CASES: dict[str, dict[str, Case]] = {
    "Block solver": {
        "chessboard 5,000, C = 100": case("SVC", "chessboard", C=100, gamma=0.5),
        "chessboard 3,000, C = 1e5": case("SVC", "chessboard", 3000, C=1e5, gamma=0.5),
        "noisy 4,200": case("SVC", "noisy", 4200, C=1),
        "noisy 3,100, mostly free": case("SVC", "noisy", 3100, C=10, gamma=0.5),
        "200 features, 10 MB": case("SVC", "wider", C=10, cache_size=10),
        "noisy 4,200, stopped by the gap": case(
            "SVC", "noisy", 4200, C=1, solver=_solver("BlockSolver", violation=1e-6, gap=10.0)
        ),
    },
    "Block solver: nested start": {
        "noisy 4,200, mostly bounded": case("SVC", "noisy", 4200, C=0.1),
        "noisy 6,000, mostly bounded": case("SVC", "noisy", C=0.1),
        "noisy 6,000": case("SVC", "noisy", C=1),
    },
    "Block solver: other cases": {
        "noisy 3,000, stopped by the gap": case(
            "SVC", "noisy", 3000, C=1, solver=_solver("BlockSolver", violation=1e-6, gap=10.0)
        ),
        "noisy 1,200, stored rows": case(
            "SVC", "noisy", 1200, C=10, gamma=0.5, solver=_solver("BlockSolver", working_set=64)
        ),
        "200 features 1,200, few stored rows": case(
            "SVC", "wider", 1200, C=10, solver=_solver("BlockSolver", working_set=64, cache_bytes=2**20)
        ),
        "three classes 300, Crammer-Singer": case(
            "SVC", "three classes", 300, multi_class="crammer_singer", solver=_solver("BlockSolver", working_set=256)
        ),
    },
    "Pairwise solver": {
        "chessboard 400, C = 1e5": case("SVC", "chessboard", 400, C=1e5, gamma=0.5, solver="pairwise"),
        "noisy 1,500": case("SVC", "noisy", 1500, C=10, solver="pairwise"),
        "100 features, 1,000": case("SVC", "wide", 1000, C=10, solver="pairwise"),
        "sinc 300": case("SVR", "sinc", 300, C=100, solver="pairwise"),
    },
    "Batches of small problems": {
        "iris": case("SVC", "iris"),
        "three classes 900": case("SVC", "three classes", 900, C=10),
        "three classes 900, C = 1e4": case("SVC", "three classes", 900, C=1e4, gamma=0.01),
        "chessboard 500, C = 1e6": case("SVC", "chessboard", 500, C=1e6, gamma=0.5),
    },
    "Linear solver: choice of the method, dual coordinate ascent": {
        "tall": case("LinearSVC", "tall"),
        "tall, hinge": case("LinearSVC", "tall", loss="hinge"),
        "text, hinge, C = 100": case("LinearSVC", "text", loss="hinge", C=100),
        "separable, hinge, C = 1e6": case("LinearSVC", "separable", loss="hinge", C=1e6),
        "text, conjugate gradients": case("LinearSVC", "text", C=10, solver="semismooth_newton"),
        "many values, coordinate ascent, two threads": case(
            "LinearSVC", "many values", C=1e-3, loss="hinge", solver="dual_coordinate_ascent", n_jobs=2
        ),
    },
    "Semismooth Newton method": {
        "tall": case("LinearSVC", "tall"),
        "tall, hinge": case("LinearSVC", "tall", loss="hinge"),
        "text, conjugate gradients": case("LinearSVC", "text", C=10, solver="semismooth_newton"),
        "separable, hinge, C = 100": case("LinearSVC", "separable", loss="hinge", C=100, solver="semismooth_newton"),
    },
    "Coordinate descent for the l1 penalty": {
        "noisy": case("LinearSVC", "noisy", penalty="l1"),
        "separable": case("LinearSVC", "separable", penalty="l1", C=10),
        "text 600": case("LinearSVC", "text", 600, penalty="l1"),
    },
    "Linear system": {
        "noisy 1,000": case("LSSVC", "noisy", 1000),
        "noisy 2,100": case("LSSVC", "noisy", 2100),
        "noisy 1,000, 2 MB": case("LSSVC", "noisy", 1000, C=100, cache_size=2),
    },
    "Training": {
        "noisy 400": case("SVC", "noisy", 400),
        "SVR, noisy 400": case("SVR", "noisy", 400),
        "noisy 1,500": case("SVC", "noisy", 1500),
        "noisy 3,000": case("SVC", "noisy", 3000),
    },
    "Cross-validation for calibration": {
        "noisy 600": calibrated("SVC", "noisy", 600, probability=True, random_state=0),
        "noisy 3,000": calibrated("SVC", "noisy", 3000, probability=True, random_state=0),
        "noisy 3,000, C = 100": calibrated("SVC", "noisy", 3000, C=100, probability=True, random_state=0),
        "three classes 1,500": calibrated("SVC", "three classes", 1500, C=10, probability=True, random_state=0),
    },
}
