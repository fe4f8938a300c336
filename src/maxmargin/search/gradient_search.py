"""Choice of C, γ and ε by the gradient of a held-out loss: one γ for all features, or one for each.

A grid has two or three axes; a γ for each feature has as many as there are features. The loss on held-out samples is a
smooth function of them almost everywhere, and its gradient costs about as much as its value
(`maxmargin.search.hyperparameter_gradient`), so some tens of evaluations suffice (Chapelle, Vapnik, Bousquet &
Mukherjee 2002; Keerthi, Sindhwani & Chapelle 2006):

1. one γ: the best of a few points, then L-BFGS steps in log C, log γ and log ε;
2. a γ for each feature, from there: L-BFGS steps in log C, log ε and the roots s_j = √(γ_j · mean distance in feature
   j), within s_j ≥ 0, of the loss plus sparsity · Σ s_j. The penalty sets features to exactly 0 that reduce the loss by
   too little, as the lasso does. Few steps are a regularisation as well.

s_j has no unit: a change of units of a feature changes nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline, TimeLimitReachedError, inheriting_deadline
from maxmargin.estimators import LSSVC, LSSVR, SVC, SVR
from maxmargin.machines.validation.parameters import check_choice, check_count, check_number
from maxmargin.machines.validation.samples import check_random_state
from maxmargin.machines.validation.training_data import check_sample_weights
from maxmargin.resources import blas_thread_limit, thread_count
from maxmargin.search.feature_spread import feature_spread
from maxmargin.search.fold_scoring import assign_folds
from maxmargin.search.gradient_search_result import Evaluation, GradientSearchResult
from maxmargin.search.grid_search_result import COMPLETE, INTERRUPTED, STOPPED, TIME_LIMIT
from maxmargin.search.held_out_loss import HeldOutLoss

#: Called with the result so far after every evaluation; returning True stops the search.
GradientSearchCallback = Callable[[GradientSearchResult], object]

#: Kernels that have a γ for each feature.
KERNELS = ("rbf", "gaussian", "laplacian", "chi_squared")

#: Ranges: C (in units of the targets' deviation where it bounds a regression's dual variables), γ_j · distance_j with
#: one γ and its root with several, and ε over the deviation of the targets.
C_RANGE, COMMON_RANGE, ROOT_RANGE, EPSILON_RANGE = (1e-3, 1e5), (1e-6, 1e2), (0.0, 10.0), (1e-4, 1.0)

#: The points that are evaluated first: values of C, and of Σ_j γ_j distance_j, of which 2 is ``gamma="scale"``.
FIRST_COSTS, FIRST_WIDTHS = (0.1, 1.0, 10.0, 100.0), (0.03, 0.3, 2.0, 10.0)

#: L-BFGS steps with one γ.
MAX_COMMON_STEPS = 10

#: sparsity="auto" is this times √(log(1 + features) / samples), the rate of the penalty of the lasso. Chosen together
#: with 30 steps on generated data and on heart, diabetes and splice.
AUTO_SPARSITY = 0.2

#: A root below this fraction of the largest is 0: γ_j is less than 1e-6 of the largest, in units of the features.
NEGLIGIBLE_ROOT = 1e-3

#: Deviation of the logarithms of the roots of further starts.
START_DEVIATION = 1.0


def gradient_search(
    X: Any,
    y: Any,
    estimator: Any = None,
    *,
    gammas: str = "ard",
    sparsity: Any = "auto",
    folds: Any = 5,
    validation: tuple[Any, ...] | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    max_iter: int = 30,
    starts: int = 3,
    random_state: Any = 0,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    callback: GradientSearchCallback | None = None,
) -> GradientSearchResult:
    """Choose C, γ of each feature and ε by gradient steps on a held-out loss.

    Features that do not help get γ = 0. Ctrl-C ends the search; the result so far is returned.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Need not be scaled: the result does not depend on the units of the features, but their values should not be far
        from 0 compared with their spread.
    y : array-like of shape (n_samples,)
    estimator : SVC, LSSVC, SVR or LSSVR, optional
        Defines all other parameters; ``SVC()`` by default. Its kernel is "rbf", "laplacian" or "chi_squared". It is not
        modified.
    gammas : {"ard", "common"}, default="ard"
        A γ for each feature (automatic relevance determination), or one for all.
    sparsity : "auto" or float, default="auto"
        Factor of the penalty on Σ_j √(γ_j · mean distance in feature j), in units of the loss: the larger, the fewer
        features; 0 for none. "auto" is 0.2 √(log(1 + n_features) / n_samples).
    folds : int, splitter or iterable of (train, test), default=5
        Number of folds, stratified for classifiers and shuffled by an integer `random_state`; or a splitter such as
        ``GroupKFold()``.
    validation : tuple (X, y) or (X, y, sample_weight), optional
        Samples on which the loss is computed, of models trained on all of `X`, instead of folds.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the samples, in training and in the loss.
    groups : array-like of shape (n_samples,), optional
        For the splitter.
    max_iter : int, default=30
        Limit on the L-BFGS steps with a γ for each feature, from each start.
    starts : int, default=3
        Number of starts: the best common γ, then random factors by feature. The best result is taken.
    random_state : int or RandomState, default=0
        Of the folds and of further starts.
    max_seconds : float, optional
        Time limit; the best result so far is returned.
    n_jobs : int, optional
        Number of threads that train models of folds; None and −1 mean all cores. The result does not depend on it.
    callback : callable, optional
        Called with the result so far after every evaluation; returning True stops the search.

    Returns
    -------
    GradientSearchResult
        ``best_params``, ``best_estimator``, ``relevance``, ``relevant``.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC, gradient_search
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(200, 6))
    >>> y = X[:, 1] * X[:, 4] > 0  # the other features are noise
    >>> result = gradient_search(X, y, SVC())
    >>> sorted(result.relevant[:2].tolist())
    [1, 4]
    >>> model = result.best_estimator.fit(X, y)
    """
    started = perf_counter()
    estimator = SVC() if estimator is None else estimator
    _check_estimator(estimator)
    check_choice("gammas", gammas, ("ard", "common"))
    deadline = Deadline.after(
        None if max_seconds is None else check_number("max_seconds", max_seconds, least=0), started
    )
    names, loss = _posed(X, y, estimator, folds, validation, sample_weight, groups, random_state)
    search = _Search.of(loss, names, sparsity, started, callback)
    limits = check_count("max_iter", max_iter, 0), check_count("starts", starts, 1)
    random = check_random_state(random_state)
    threads = min(thread_count(n_jobs), len(loss.splits))
    status = COMPLETE
    try:
        with ExitStack() as stack:
            stack.enter_context(deadline.in_force())
            stack.enter_context(blas_thread_limit(1))
            # A fit at an extreme point may warn; the search goes elsewhere. Filters are shared by threads, so set here.
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", ConvergenceWarning)
            if threads > 1:
                pool = stack.enter_context(ThreadPoolExecutor(threads))
                loss.map = lambda function, items: pool.map(inheriting_deadline(function), items)
            search.minimise_common()
            if gammas == "ard" and limits[0]:
                for start in range(limits[1]):
                    search.minimise_by_feature(limits[0], random if start else None)
    except TimeLimitReachedError:
        status = TIME_LIMIT
    except _StoppedError:
        status = STOPPED
    except KeyboardInterrupt:
        status = INTERRUPTED
    return search.result(status)


def _check_estimator(estimator: Any) -> None:
    if not isinstance(estimator, SVC | LSSVC | SVR | LSSVR):
        raise ValueError(f"{type(estimator).__name__} has no gradient search; use SVC, LSSVC, SVR or LSSVR")
    if not isinstance(estimator.kernel, str) or estimator.kernel not in KERNELS:
        raise ValueError(f"a gradient search is for the kernels {', '.join(KERNELS)}, not for {estimator.kernel!r}")
    if getattr(estimator, "multi_class", "ovo") not in ("ovo", "ovr"):
        raise ValueError(f"multi_class={estimator.multi_class!r} has no gradient search; use 'ovo' or 'ovr'")


def _posed(
    X: Any, y: Any, estimator: Any, folds: Any, validation: Any, sample_weight: Any, groups: Any, random_state: Any
) -> tuple[list[str], HeldOutLoss]:
    """Return the names of the features and the loss, of validated data."""
    classifies = is_classifier(estimator)
    names = [str(name) for name in getattr(X, "columns", ())]
    X, y = _validated(estimator, X, y)
    weights = check_sample_weights(sample_weight, X)
    if validation is not None:
        if not isinstance(validation, tuple) or len(validation) not in (2, 3):
            raise ValueError("validation must be (X, y) or (X, y, sample_weight)")
        others, labels = _validated(estimator, *validation[:2])
        if others.shape[1] != X.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features, but the X of validation has {others.shape[1]}")
        splits = [(np.arange(X.shape[0]), X.shape[0] + np.arange(others.shape[0]))]
        more = check_sample_weights(validation[2] if len(validation) == 3 else None, others)
        weights = np.concatenate([weights, more])
        X, y = _stacked(X, others), np.concatenate([y, labels])
    elif isinstance(folds, int | np.integer) and not isinstance(folds, bool):
        fold_of = assign_folds(y, check_count("folds", folds, 2), _seed(random_state), classifies)
        splits = [(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(folds)]
    else:
        from sklearn.model_selection import check_cv

        splitter = check_cv(folds, y, classifier=classifies)
        splits = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(X, y, groups)]
    used = [_with_weight(split, weights) for split in splits]
    return names or [f"x{j}" for j in range(X.shape[1])], HeldOutLoss(clone(estimator), X, y, weights, used)


def _validated(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    from sklearn.utils import check_X_y

    numeric = not is_classifier(estimator)
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=np.float64, y_numeric=numeric, estimator=estimator)
    return X, y.astype(np.float64) if numeric else y


def _stacked(first: Any, second: Any) -> Any:
    from scipy import sparse

    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([sparse.csr_array(first), sparse.csr_array(second)], format="csr")
    return np.concatenate([first, second])


def _with_weight(split: tuple[Indices, Indices], weights: Floats) -> tuple[Indices, Indices]:
    first, second = split
    return first[weights[first] > 0], second[weights[second] > 0]


def _seed(random_state: Any) -> int:
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


class _StoppedError(Exception):
    """The callback has stopped the search."""


@dataclass
class _Search:
    """The state of a search: the loss, units, and the evaluations so far."""

    loss: HeldOutLoss
    names: list[str]
    spread: Floats
    inverse: Floats
    sparsity: float
    cost_unit: float
    epsilon_unit: float
    started: float
    callback: GradientSearchCallback | None
    common: list[Evaluation] = field(default_factory=list)
    by_feature: list[Evaluation] = field(default_factory=list)

    @classmethod
    def of(
        cls, loss: HeldOutLoss, names: list[str], sparsity: Any, started: float, callback: GradientSearchCallback | None
    ) -> _Search:
        """Return the search before its first evaluation."""
        spread = feature_spread(loss.estimator.kernel, loss.X, loss.weights)
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        samples, features = loss.X.shape
        if isinstance(sparsity, str):
            check_choice("sparsity", sparsity, ("auto",))
            factor = AUTO_SPARSITY * float(np.sqrt(np.log1p(features) / samples))
        else:
            factor = check_number("sparsity", sparsity, least=0)
        squared = loss.classifies or getattr(loss.estimator, "loss", "squared").startswith("squared")
        has_tube = isinstance(loss.estimator, SVR) and loss.estimator.epsilon > 0
        unit = loss.unit if has_tube else 0.0
        return cls(loss, names, spread, inverse, factor, 1.0 if squared else loss.unit, unit, started, callback)

    def minimise_common(self) -> None:
        """Evaluate a few points, then take steps from the best one, with one γ in units of the features."""
        features = max(1, int(np.count_nonzero(self.spread)))
        epsilon = [0.0]
        if self.epsilon_unit:
            epsilon = [float(np.log(np.clip(self.loss.estimator.epsilon / self.epsilon_unit, *EPSILON_RANGE)))]
        points = [np.array([np.log(C), np.log(width / features), *epsilon][: 2 + bool(self.epsilon_unit)])
                  for C in FIRST_COSTS for width in FIRST_WIDTHS]  # fmt: skip
        values = [self._common(point, with_gradient=False)[0] for point in points]
        start = points[int(np.argmin(values))]
        ranges = [C_RANGE, COMMON_RANGE, EPSILON_RANGE][: len(start)]
        self._minimise(self._common, start, [np.log(ends) for ends in ranges], MAX_COMMON_STEPS)

    def minimise_by_feature(self, steps: int, random: Any) -> None:
        """Take steps from the best common γ, multiplied by random factors for each feature if `random` is given."""
        best = min(self.common, key=lambda evaluation: evaluation.objective)
        roots = np.sqrt(np.asarray(best.gamma) * self.spread)
        if random is not None:
            roots = roots * np.exp(START_DEVIATION * random.standard_normal(len(roots)))
        others = [np.log(best.C / self.cost_unit)]
        if best.epsilon is not None:
            others.append(np.log(best.epsilon / self.epsilon_unit))
        start = np.concatenate([others, np.clip(roots, *ROOT_RANGE)])
        ranges = [np.log(C_RANGE), np.log(EPSILON_RANGE)][: len(others)] + [np.array(ROOT_RANGE)] * len(roots)
        self._minimise(self._by_feature, start, ranges, steps)

    @staticmethod
    def _minimise(function: Callable[..., Any], start: Floats, ranges: list[Any], steps: int) -> None:
        bounds, options = [tuple(ends) for ends in ranges], {"maxiter": steps}
        start = np.clip(start, *np.transpose(bounds))
        optimize.minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    def _common(self, point: Floats, with_gradient: bool = True) -> tuple[float, Floats]:
        """Return the loss and its derivatives at log C, log γ and log ε, in their units."""
        C, width = self.cost_unit * float(np.exp(point[0])), float(np.exp(point[1]))
        epsilon = self.epsilon_unit * float(np.exp(point[2])) if self.epsilon_unit else None
        gamma = width * self.inverse
        value = self._evaluate(C, gamma, epsilon, with_gradient)
        self._record(self.common, Evaluation(C, gamma, epsilon, value.loss, 0.0))
        if value.gradient is None:
            return value.loss, np.empty(0)
        slopes = [C * value.gradient.C, float(gamma @ value.gradient.gamma), (epsilon or 0.0) * value.gradient.epsilon]
        return value.loss, np.array(slopes[: len(point)])

    def _by_feature(self, point: Floats) -> tuple[float, Floats]:
        """Return loss and penalty, and their derivatives, at log C, log ε and the roots."""
        known = 2 if self.epsilon_unit else 1
        C, roots = self.cost_unit * float(np.exp(point[0])), point[known:]
        epsilon = self.epsilon_unit * float(np.exp(point[1])) if self.epsilon_unit else None
        kept = np.where(roots > NEGLIGIBLE_ROOT * roots.max(), roots, 0.0)
        value = self._evaluate(C, kept**2 * self.inverse, epsilon, True)
        penalty = self.sparsity * float(roots.sum())
        self._record(self.by_feature, Evaluation(C, kept**2 * self.inverse, epsilon, value.loss, penalty))
        assert value.gradient is not None
        slopes = [C * value.gradient.C, (epsilon or 0.0) * value.gradient.epsilon][:known]
        of_roots = 2.0 * roots * self.inverse * value.gradient.gamma + self.sparsity
        return value.loss + penalty, np.concatenate([slopes, of_roots])

    def _evaluate(self, C: float, gamma: Floats, epsilon: float | None, with_gradient: bool) -> Any:
        parameters = {"C": C, "gamma": gamma}
        return self.loss(parameters if epsilon is None else {**parameters, "epsilon": epsilon}, with_gradient)

    def _record(self, evaluations: list[Evaluation], evaluation: Evaluation) -> None:
        evaluations.append(evaluation)
        if self.callback is not None and self.callback(self.result(COMPLETE)) is True:
            raise _StoppedError

    def result(self, status: str) -> GradientSearchResult:
        """Return the result so far."""
        found = GradientSearchResult(
            self.loss.estimator, tuple(self.common), tuple(self.by_feature), self.spread, self.names, status
        )
        return replace(found, fits=self.loss.fits, seconds=perf_counter() - self.started)
