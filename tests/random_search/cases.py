"""Random cases: an estimator with random options and a data set for it, determined by a seed and a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import has_fit_parameter

import maxmargin as mm
from maxmargin import kernels

from . import data_sets
from .draws import Draw

#: Most samples of a case, and of a ranking, which has a loss for each pair.
MAX_SAMPLES, MAX_RANKED = 60, 25


def minimum_kernel(X: Any, Z: Any) -> Any:
    """Return Σ min(x_k, z_k) + 1, a user's function: the same bits for a pair of samples in any block."""
    X, Z = (table.toarray() if sparse.issparse(table) else np.asarray(table) for table in (X, Z))
    return np.minimum(np.abs(X)[:, None, :].astype(np.float64), np.abs(Z)[None].astype(np.float64)).sum(axis=2) + 1.0


@dataclass(frozen=True)
class Case:
    """An unfitted estimator and what it is fitted on.

    Attributes
    ----------
    seed, number : int
        What determines the case.
    extreme : bool
        Whether values far outside the usual ranges may occur.
    """

    seed: int
    number: int
    extreme: bool
    estimator: Any
    X: Any
    y: Any
    sample_weight: Any

    @property
    def snippet(self) -> str:
        """Python code that makes the case again."""
        call = (
            f"random_case({self.seed}, {self.number}, extreme={self.extreme}, name={type(self.estimator).__name__!r})"
        )
        return f"from tests.random_search.cases import random_case; case = {call}; model = case.fit()"

    def __str__(self) -> str:
        layout = "CSR" if sparse.issparse(self.X) else "C" if self.X.flags.c_contiguous else "F or strided"
        values = abs(self.X.data if sparse.issparse(self.X) else self.X)
        largest = float(values.max(initial=0.0))
        table = f"{self.X.shape[0]} × {self.X.shape[1]} {self.X.dtype} {layout}, up to {largest:.2g}"
        text = f"{self.estimator!r} on {table}"
        if self.y is not None and self.y.dtype.kind == "f":
            text += f", targets up to {np.abs(self.y).max():.2g}"
        if self.sample_weight is not None:
            text += f", weights {self.sample_weight.min():.2g} to {self.sample_weight.max():.2g}"
        return " ".join(text.split())

    def fit(self) -> Any:
        """Fit the estimator."""
        arguments = {} if self.sample_weight is None else {"sample_weight": self.sample_weight}
        return (
            self.estimator.fit(self.X, **arguments)
            if self.y is None
            else self.estimator.fit(self.X, self.y, **arguments)
        )


def random_case(seed: int, number: int, extreme: bool = False, name: str | None = None) -> Case:
    """Return the case of a seed and a number; of one estimator, if a name is given."""
    draw = Draw(seed, number, extreme)
    drawn = draw.one_of(tuple(ESTIMATORS))
    name = name or drawn
    kind, options = ESTIMATORS[name]
    X = data_sets.samples(draw, MAX_RANKED if name == "RankSVC" else MAX_SAMPLES)
    y = None
    if kind == "classes":
        y = data_sets.labels(draw, X)
    elif kind == "ranks":
        y = draw.rng.integers(4, size=len(X)).astype(np.float64)
        y[: min(2, len(X))] = [0.0, 1.0][: len(X)]
    elif kind == "targets":
        y = data_sets.targets(draw, X)
    parameters = options(draw)
    with np.errstate(all="ignore"):
        X = _for_kernel(draw, X, parameters)
    estimator = getattr(mm, name)(**parameters)
    weights = data_sets.weights(draw, X.shape[0]) if has_fit_parameter(estimator, "sample_weight") else None
    return Case(seed, number, extreme, estimator, X, y, weights)


def _for_kernel(draw: Draw, X: np.ndarray, parameters: dict[str, Any]) -> Any:
    """Return samples that the kernel is defined on: a Gram matrix, histograms, or any."""
    kernel = parameters.get("kernel")
    if isinstance(kernel, str) and kernel == "precomputed":
        scale = float(np.abs(X).max()) or 1.0
        Z = X / (scale if np.isfinite(scale) else 1.0)
        gram = Z @ Z.T if draw.chance(0.5) else np.exp(-((Z[:, None] - Z[None]) ** 2).sum(axis=2))
        gram = 0.5 * (gram + gram.T) * draw.mostly(1.0, draw.power(-4, 4))
        return data_sets.presented(draw, gram, sparse_allowed=False)
    return data_sets.presented(draw, np.abs(X) if "chi_squared" in str(kernel) or "Chi" in repr(kernel) else X)


# Options.


def _cost(draw: Draw) -> float:
    return draw.factor("costs", draw.mostly(1.0, draw.power(-3, 4), probability=0.6))


def _common(draw: Draw) -> dict[str, Any]:
    """Options of all estimators."""
    options: dict[str, Any] = {"n_jobs": draw.mostly(1, 2)}
    if draw.chance(0.3):
        options["tol"] = draw.pick(0.1, 1e-5, 1e-8, 1e-10)
    return options


def _kernel_options(draw: Draw) -> dict[str, Any]:
    """Options of all estimators with a kernel."""
    options = _common(draw)
    gamma = draw.mostly("scale", "auto", draw.power(-3, 2), 10.0, probability=0.5)
    value = gamma if isinstance(gamma, float) else 0.5
    options["kernel"] = draw.pick(
        "rbf", "rbf", "linear", "poly", "poly", "sigmoid", "laplacian", "chi_squared", "precomputed", minimum_kernel,
        kernels.Gaussian(value) + kernels.Linear(), 0.3 * kernels.Laplacian(value) * kernels.Polynomial(2, value, 1.0),
        kernels.Gaussian(value) + 2.0 * kernels.ChiSquared(value),
    )  # fmt: skip
    options["gamma"] = gamma
    if options["kernel"] in ("poly", "sigmoid"):
        options |= {"coef0": draw.pick(0.0, 1.0, -1.0, draw.power(-2, 2)), "degree": draw.mostly(3, 0, 1, 2, 5)}
    return options


def _solver_options(draw: Draw, solvers: tuple[str, ...]) -> dict[str, Any]:
    """Options of the kernel estimators that are solved as a dual problem."""
    options = _kernel_options(draw)
    options["solver"] = draw.mostly("auto", *solvers)
    options["cache_size"] = draw.mostly("auto", 0.001, 1, probability=0.15)
    if draw.chance(0.1):
        options["gap_tol"] = draw.pick(1e-1, 1e-4, 1e-9)
    if draw.chance(0.05):
        options["max_iter"] = draw.pick(1, 10, 100)
    return options


PAIR_SOLVERS = (
    "pairwise",
    "block",
    "quadratic_program",
    "decomposition",
    "gradient_projection",
    "active_set",
    "chunking",
    "platt",
)


def _smo_options(draw: Draw) -> dict[str, Any]:
    options = _solver_options(draw, PAIR_SOLVERS)
    return options | {
        "shrinking": draw.mostly(True, False),
        "selection": draw.mostly("second_order", "most_violating_pair", "maximum_gain"),
    }


def _classes(draw: Draw, probability: bool = True) -> dict[str, Any]:
    options: dict[str, Any] = {"class_weight": draw.mostly(None, "balanced")}
    return options | ({"probability": True} if probability and draw.chance(0.1) else {})


def _svc(draw: Draw) -> dict[str, Any]:
    options = _smo_options(draw) | _classes(draw) | {"C": _cost(draw)}
    options["loss"] = draw.mostly("hinge", "squared_hinge")
    options["multi_class"] = draw.mostly("ovo", "ovr", "crammer_singer", "weston_watkins", probability=0.4)
    if options["loss"] == "hinge" and options["multi_class"] in ("ovo", "ovr") and draw.chance(0.07):
        options["C"] = np.inf
        options.pop("probability", None)
    if options["multi_class"] not in ("ovo", "ovr"):
        options |= {"loss": "hinge", "solver": draw.mostly("auto", "pairwise", "block")}
        options.pop("probability", None)
    return options | {"fit_intercept": draw.mostly(True, False)}


def _nu_svc(draw: Draw) -> dict[str, Any]:
    return _smo_options(draw) | _classes(draw) | {"nu": draw.pick(0.01, 0.1, 0.3, 0.5)}


def _ls_options(draw: Draw) -> dict[str, Any]:
    options = _solver_options(draw, ("linear_system", "pairwise", "block", "active_set"))
    options.pop("max_iter", None)
    return options | {"C": _cost(draw), "fit_intercept": draw.mostly(True, False)}


def _svr(draw: Draw) -> dict[str, Any]:
    options = _smo_options(draw) | {"C": _cost(draw), "epsilon": draw.pick(0.0, 0.1, 0.5)}
    options |= {"noise": draw.mostly(False, True, probability=0.1), "fit_intercept": draw.mostly(True, False)}
    return options | {"loss": draw.mostly("epsilon_insensitive", "squared_epsilon_insensitive")}


def _nu_svr(draw: Draw) -> dict[str, Any]:
    return _smo_options(draw) | {"C": _cost(draw), "nu": draw.pick(0.01, 0.3, 0.5, 0.9, 1.0)}


def _quantile_svr(draw: Draw) -> dict[str, Any]:
    return _smo_options(draw) | {"C": _cost(draw), "quantile": draw.pick(0.01, 0.5, 0.7, 0.9)}


def _one_class(draw: Draw) -> dict[str, Any]:
    return _smo_options(draw) | {"nu": draw.pick(0.01, 0.1, 0.5, 0.9, 1.0)}


def _rank_svc(draw: Draw) -> dict[str, Any]:
    return _kernel_options(draw) | {"C": _cost(draw)}


LINEAR_SOLVERS = ("dual_coordinate_ascent", "semismooth_newton", "pairwise")


def _linear_svc(draw: Draw) -> dict[str, Any]:
    options = _common(draw) | _classes(draw) | {"C": _cost(draw)}
    options |= {"fit_intercept": draw.mostly(True, False), "intercept_scaling": draw.mostly(None, 1.0, 10.0)}
    kind = draw.pick("l2", "l2", "hinge", "l1", "crammer_singer")
    if kind == "l1":
        return options | {"penalty": "l1"}
    if kind == "crammer_singer":
        options.pop("probability", None)
        return options | {"multi_class": "crammer_singer", "loss": "hinge"}
    return options | {
        "loss": "hinge" if kind == "hinge" else "squared_hinge",
        "solver": draw.mostly("auto", *LINEAR_SOLVERS),
    }


def _linear_svr(draw: Draw) -> dict[str, Any]:
    options = _common(draw) | {"C": _cost(draw), "epsilon": draw.pick(0.0, 0.1)}
    options |= {"noise": draw.mostly(False, True, probability=0.1), "fit_intercept": draw.mostly(True, False)}
    options["solver"] = draw.mostly("auto", *LINEAR_SOLVERS)
    return options | {"loss": draw.pick("epsilon_insensitive", "squared_epsilon_insensitive")}


def _linear_one_class(draw: Draw) -> dict[str, Any]:
    return _common(draw) | {
        "nu": draw.pick(0.01, 0.1, 0.5, 1.0),
        "solver": draw.mostly("auto", *LINEAR_SOLVERS),
    }


def _approximation(draw: Draw) -> dict[str, Any]:
    options = _kernel_options(draw) | _classes(draw) | {"C": _cost(draw), "random_state": 0}
    if options["kernel"] in ("precomputed", "sigmoid") or callable(options["kernel"]):
        options["kernel"] = "rbf"
    return options | {"n_components": draw.pick(5, 20, 1000), "loss": draw.mostly("hinge", "squared_hinge")}


def _online(draw: Draw) -> dict[str, Any]:
    options = _kernel_options(draw) | {"random_state": 0, "finishing": draw.chance(0.5)}
    if options["kernel"] == "precomputed":
        options["kernel"] = "rbf"
    return options


def _online_svc(draw: Draw) -> dict[str, Any]:
    return _online(draw) | {"C": _cost(draw), "multi_class": draw.pick("ovr", "ovo")}


def _online_one_class(draw: Draw) -> dict[str, Any]:
    return _online(draw) | {"nu": draw.pick(0.1, 0.5, 0.9)}


#: What each estimator is fitted on, and its random options.
ESTIMATORS: dict[str, tuple[str, Callable[[Draw], dict[str, Any]]]] = {
    "SVC": ("classes", _svc),
    "NuSVC": ("classes", _nu_svc),
    "LSSVC": ("classes", lambda draw: _ls_options(draw) | _classes(draw, False)),
    "SVR": ("targets", _svr),
    "NuSVR": ("targets", _nu_svr),
    "LSSVR": ("targets", _ls_options),
    "QuantileSVR": ("targets", _quantile_svr),
    "OneClassSVM": ("none", _one_class),
    "SVDD": ("none", _one_class),
    "RankSVC": ("ranks", _rank_svc),
    "LinearSVC": ("classes", _linear_svc),
    "LinearSVR": ("targets", _linear_svr),
    "LinearOneClassSVM": ("none", _linear_one_class),
    "KernelApproximationSVC": ("classes", _approximation),
    "OnlineSVC": ("classes", _online_svc),
    "OnlineOneClassSVM": ("none", _online_one_class),
}
