"""The regularisation path: the solutions of a kernel machine for all values of C."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline, TimeLimitReachedError, check_deadline
from maxmargin.estimators.kernel import SVC, SVR
from maxmargin.kernels import Points
from maxmargin.machines.validation.parameters import check_count, check_number
from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import Certificate, Counters, DualProblem, Progress, Solution, Status, certify
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.resources import check_memory
from maxmargin.selection.error_estimates import ErrorEstimates, error_estimates
from maxmargin.selection.piecewise_path import PiecewisePath
from maxmargin.solvers import Callback, PairwiseSolver, StoppingRule
from maxmargin.solvers.stopping import requests_stop
from maxmargin.training import TrainedModel

#: Up to so many samples all break points are computed: a step takes the square of the free variables, and the number
#: of samples times them.
MAX_EXACT = 1000

#: Values of C between the smallest and the largest where there are more samples.
GRID = 41

#: The violation of the solutions from which break points are followed, relative to the linear term.
TOLERANCE = 1e-11

#: Distances from a bound, relative to C, that are rounding errors of interpolation.
ROUNDING = 1e-9

#: Values of C at which leave-one-out is computed.
LEFT_OUT_GRID = 25


class LeftOutErrors(NamedTuple):
    """Estimates of the error along the path: values of C, and the estimates of each (`ErrorEstimates`)."""

    Cs: Floats
    estimates: list[ErrorEstimates]

    def values(self, name: str) -> Floats:
        """Return one of the estimates by the name of its attribute; NaN where it is not defined."""
        found = [getattr(one, name) for one in self.estimates]
        return np.array([np.nan if value is None else value for value in found])


@dataclass(frozen=True)
class RegularizationPath:
    """The solutions of a two-class `SVC`, or an `SVR`, for all C between two values.

    Attributes
    ----------
    Cs : float array
        The break points in ascending order, the first and the last C among them. In between, dual coefficients and
        offset are linear in C. Where the offset jumps, because no support vector is free any more, there are two next
        to each other.
    dual_coefs : float array of shape (n_breaks, n_samples)
        The coefficient of every training sample.
    intercepts : float array of shape (n_breaks,)
    exact : bool
        Whether these are all break points. With many samples they are solutions of a grid of C: in between the
        interpolation is feasible, and ``certificate`` says how close to the optimum; ``at`` solves for any C.
    restarts : int
        How often several events coincided, so that the problem was solved anew at a slightly different C.
    status : Status
        How the search ended; after a limit or Ctrl-C the path covers the part that was reached.
    seconds : float
    """

    Cs: Floats = field(repr=False)
    dual_coefs: Floats = field(repr=False)
    intercepts: Floats = field(repr=False)
    exact: bool
    restarts: int
    status: Status
    seconds: float
    _model: Any = field(repr=False)
    _data: tuple[Any, Any, Any] = field(repr=False)

    def __str__(self) -> str:
        kind = "break points" if self.exact else "values of C of a grid"
        most, least = int(self.n_support.max()), int(self.n_support.min())
        return (
            f"Regularisation path from C={self.Cs[0]:g} to {self.Cs[-1]:g}: {len(self.Cs):,} {kind}, "
            f"{least:,} to {most:,} support vectors, {self.seconds:.2g} s; {self.status.value}"
        )

    @property
    def n_support(self) -> Indices:
        """The number of support vectors at each break point."""
        return np.asarray(np.count_nonzero(self.dual_coefs, axis=1), dtype=np.int64)

    def _check(self, C: float) -> float:
        C = check_number("C", C, above=0)
        if not self.Cs[0] <= C <= self.Cs[-1]:
            raise ValueError(f"the path reaches from C={self.Cs[0]:g} to {self.Cs[-1]:g}, which does not include {C:g}")
        return float(C)

    def _weights(self, C: float) -> tuple[int, float]:
        """Return the break point before C, and the weight of the one after it."""
        after = max(1, min(int(np.searchsorted(self.Cs, C)), len(self.Cs) - 1))
        if len(self.Cs) == 1:
            return 0, 0.0
        return after - 1, float((C - self.Cs[after - 1]) / (self.Cs[after] - self.Cs[after - 1]))

    def _interpolated(self, values: Floats, C: float) -> Floats:
        before, weight = self._weights(C)
        after = min(before + 1, len(self.Cs) - 1)
        return np.asarray((1.0 - weight) * values[before] + weight * values[after])

    def dual_coef(self, C: float) -> Floats:
        """Return the coefficient of every training sample at C; those at a bound are exactly there."""
        C = self._check(C)
        coefficients, problem = self._interpolated(self.dual_coefs, C), self._problem(C)
        samples = self._model._models_[0].samples
        dual, close = coefficients[samples], ROUNDING * np.maximum(problem.upper, -problem.lower)
        dual = np.where(np.abs(dual) <= close, 0.0, np.clip(dual, problem.lower, problem.upper))
        dual = np.where(problem.upper - dual <= close, problem.upper, dual)
        dual = np.where((dual - problem.lower <= close) & (problem.lower < 0), problem.lower, dual)
        coefficients[samples] = np.where(np.abs(coefficients[samples]) <= close, 0.0, dual)
        return coefficients

    def intercept(self, C: float) -> float:
        """Return the offset at C."""
        return float(self._interpolated(self.intercepts, self._check(C)))

    def _problem(self, C: float) -> DualProblem:
        problem = self._model._models_[0].training_problem()[0]
        return _with_cost(problem, C / self._model.C)

    def certificate(self, C: float) -> Certificate:
        """Return the certificate of optimality of the solution at C, computed independently of the path."""
        return certify(self._problem(C), self.dual_coef(C)[self._model._models_[0].samples])

    def at(self, C: float) -> Any:
        """Return the fitted estimator at C: the answer of an independent fit, started from the path."""
        C = self._check(C)
        model, trained = copy(self._model), self._model._models_[0]
        solution = Solution(self.dual_coef(C)[trained.samples], None, Status.CONVERGED, Counters())
        problem, formulation = trained.training_problem()
        model._models_ = [TrainedModel(problem, solution, trained.samples, formulation)]
        model.set_params(C=C, warm_start=True)
        X, y, weights = self._data
        model.fit(X, y, sample_weight=weights)
        return model.set_params(warm_start=self._model.warm_start)

    def decision_values(self, X: Any) -> Floats:
        """Return the decision values, or targets, of samples at every break point: linear in C in between.

        The result has a row for each break point.
        """
        model = self._model
        samples = model._check_samples(X)
        if model._kernel_ is None:
            values = np.asarray(samples, dtype=np.float64)
        else:
            values = model._kernel_.evaluate(Points.wrap(samples), Points.wrap(self._training_samples()))
        return np.asarray(self.dual_coefs @ values.T + self.intercepts[:, None])

    def _training_samples(self) -> Any:
        return self._model._validate_samples(self._data[0], reset=False)

    def errors(self, X: Any, y: Any) -> tuple[Floats, Floats]:
        """Return values of C and the error from each up to the next: the whole error curve on validation data.

        Classification: the fraction of wrong classes, which changes where a decision value is 0. Regression: the mean
        squared error at the break points.
        """
        values, y = self.decision_values(X), np.asarray(y)
        if values.shape[1] != len(y):
            raise ValueError(f"X has {values.shape[1]} samples, but y has {len(y)}")
        if not is_classifier(self._model):
            return self.Cs, np.mean((values - y) ** 2, axis=1)
        right = np.where(y == self._model.classes_[1], 1.0, -1.0)
        right[~np.isin(y, self._model.classes_)] = np.nan
        wrong = (values >= 0) != (right > 0)
        wrong[:, np.isnan(right)] = True
        changes = wrong[1:] != wrong[:-1]
        segment, sample = np.nonzero(changes)
        first, last = values[segment, sample], values[segment + 1, sample]
        at = self.Cs[segment] + (self.Cs[segment + 1] - self.Cs[segment]) * (first / (first - last))
        order = np.argsort(at, kind="stable")
        steps = np.where(wrong[segment + 1, sample], 1, -1)[order]
        Cs = np.concatenate([self.Cs[:1], at[order]])
        counts = int(wrong[0].sum()) + np.concatenate([[0], np.cumsum(steps)])
        kept = np.append(np.diff(Cs) > 0, True)  # of several changes at one C the last
        return Cs[kept], counts[kept] / len(y)

    def leave_one_out(self, Cs: Iterable[float] | None = None) -> LeftOutErrors:
        """Return the leave-one-out error and its estimates at some C, by default 25 evenly on a log scale."""
        if Cs is None:
            Cs = np.geomspace(self.Cs[0], self.Cs[-1], LEFT_OUT_GRID).clip(self.Cs[0], self.Cs[-1])
        costs = np.array([self._check(C) for C in Cs])
        return LeftOutErrors(costs, [error_estimates(self.at(C), loo=True) for C in costs])

    def best(self, X: Any = None, y: Any = None, *, Cs: Iterable[float] | None = None) -> float:
        """Return the C of least error: on validation data, or without them by leave-one-out.

        On validation data the error of classification is known for all C: of the stretches of least error the longest
        on a log scale is chosen, and its middle. By leave-one-out the C is one of `Cs`, the middle one of several that
        are equally good.
        """
        if X is None:
            found = self.leave_one_out(Cs)
            errors = found.values("leave_one_out")
            equal = np.flatnonzero(errors == errors.min())
            return float(found.Cs[equal[(len(equal) - 1) // 2]])
        if y is None:
            raise ValueError("validation data need labels or targets y, too")
        edges, errors = self.errors(X, y)
        if not is_classifier(self._model):
            return float(edges[errors.argmin()])
        least = errors == errors.min()
        ends = np.append(edges[1:], self.Cs[-1])
        starts = np.flatnonzero(least & ~np.append(False, least[:-1]))
        lasts = np.flatnonzero(least & ~np.append(least[1:], False))
        longest = int(np.argmax(ends[lasts] / edges[starts]))
        return float(np.sqrt(edges[starts[longest]] * ends[lasts[longest]]))


def regularization_path(
    X: Any,
    y: Any,
    *,
    estimator: Any = None,
    C_min: float = 1e-2,
    C_max: float = 1e3,
    max_exact: int = MAX_EXACT,
    sample_weight: Any = None,
    max_seconds: float | None = None,
    callback: Callback | None = None,
) -> RegularizationPath:
    """Solve a support vector machine for all values of C at once.

    The solution is piecewise linear in C (Hastie et al. 2004). From a solution at the C of the estimator, or the
    nearest end, the path is followed to both ends, from one break point to the next.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of two classes, or targets where the estimator is an `SVR`.
    estimator : SVC or SVR, optional
        Holds all other parameters, with the loss that is linear in the slack; ``SVC()`` by default. It is not changed.
    C_min, C_max : float
        The ends of the path.
    max_exact : int, default=1000
        Up to so many samples all break points are computed, for which the whole kernel matrix is held in memory; of
        more samples, solutions of a grid.
    sample_weight : array-like of shape (n_samples,), optional
        Factors on C by sample.
    max_seconds : float, optional
        Limit on the time; the path then covers the part that was reached.
    callback : callable, optional
        Called with the progress, of which `iteration` counts break points; returning True ends the search.

    Returns
    -------
    RegularizationPath
        After Ctrl-C the part that was reached, with the status INTERRUPTED.

    Examples
    --------
    >>> from maxmargin import SVC, regularization_path
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> path = regularization_path(X, y, estimator=SVC(kernel="linear"), C_min=0.1, C_max=10)
    >>> path.Cs.round(3)
    array([ 0.1  ,  0.333,  0.333,  1.   , 10.   ])
    >>> path.certificate(0.5).relative_gap < 1e-9
    True
    """
    started = perf_counter()
    base = clone(SVC() if estimator is None else estimator)
    if not isinstance(base, SVC | SVR) or base.loss not in ("hinge", "epsilon_insensitive"):
        raise ValueError(
            "estimator must be an SVC with loss='hinge' or an SVR with loss='epsilon_insensitive', whose solutions are "
            f"piecewise linear in C, not {base!r}; for linear machines use linear_path"
        )
    C_min, C_max = check_number("C_min", C_min, above=0), check_number("C_max", C_max, above=0)
    if not C_min < C_max:
        raise ValueError(f"C_min must be below C_max, but they are {C_min:g} and {C_max:g}")
    check_count("max_exact", max_exact, 0)
    limit = None if max_seconds is None else check_number("max_seconds", max_seconds, least=0)
    deadline = Deadline.after(limit, started)
    base.set_params(C=float(np.clip(base.C, C_min, C_max)))
    model = base.fit(X, y, sample_weight=sample_weight)
    if len(model._models_) != 1:
        what = f"{len(model.classes_)} classes" if is_classifier(model) else f"{len(model._models_)} targets"
        raise ValueError(f"a path is that of one problem, but there are {what}; use y == label, or one column")
    if getattr(model, "_multi_class_", "ovo") != "ovo":
        raise ValueError(f"multi_class={model.multi_class!r} is another problem; use multi_class='ovo'")
    search = _Search(model, callback, started)
    exact = len(model._models_[0].samples) <= max_exact
    try:
        with deadline.in_force():
            status = search.follow(C_min, C_max) if exact else search.grid(C_min, C_max, (X, y, sample_weight))
    except (TimeLimitReachedError, KeyboardInterrupt, _StopSearchError) as ended:
        status = _status_of(ended)
    return search.result(status, exact, (X, y, sample_weight))


class _StopSearchError(Exception):
    """A callback has asked to stop."""


class _Search:
    """The search for break points from the solution of a fitted model."""

    def __init__(self, model: Any, callback: Callback | None, started: float) -> None:
        self.model, self.callback, self.started = model, callback, started
        self.problem = model._models_[0].training_problem()[0]
        self.points: dict[float, tuple[Floats, float]] = {
            model.C: (model._models_[0].dual, float(np.asarray(model.intercept_).ravel()[0]))
        }
        self.restarts = 0

    def follow(self, C_min: float, C_max: float) -> Status:
        """Follow the path from the C of the model to both ends."""
        split, C = SplitProblem.of(self.problem), self.model.C
        whole, n = split.problem, split.problem.size
        check_memory(24 * n * n, "the matrix of an exact path", "lower max_exact, for a grid of C")
        matrix = whole.matrix.block(np.arange(n), np.arange(n))
        stored = PrecomputedMatrix(matrix)
        scale = float(np.abs(whole.linear).max()) or 1.0
        solver = PairwiseSolver(stopping=StoppingRule(TOLERANCE * scale, max_iterations=1000 * n + 10**6))

        def solve(C: float, near: Floats | None) -> Floats:
            check_deadline()
            posed = _with_cost(whole, C / self.model.C).with_matrix(stored)
            return solver.solve(posed, near).dual

        near = split.dual(self.model._models_[0].dual)
        for end in (C_min, C_max):
            path = PiecewisePath(matrix, whole.linear, whole.lower / C, whole.upper / C, whole.groups == 1, solve)
            try:
                path.start(C, near)
                for point in path.steps(end):
                    self.points[point.C] = split.combined_dual(point.dual), point.offset
                    check_deadline()
                    self._report()
            finally:
                self.restarts += path.restarts
        return Status.CONVERGED

    def grid(self, C_min: float, C_max: float, data: tuple[Any, Any, Any]) -> Status:
        """Solve the problem at values of C, from that of the model to both ends."""
        X, y, weights = data
        Cs = np.geomspace(C_min, C_max, GRID).clip(C_min, C_max)
        for part in (Cs[Cs < self.model.C][::-1], Cs[Cs > self.model.C]):
            model = self.model
            for C in part:
                model = copy(model).set_params(C=float(C), warm_start=True)
                check_deadline()
                model.fit(X, y, sample_weight=weights)
                self.points[float(C)] = model._models_[0].dual, float(np.asarray(model.intercept_).ravel()[0])
                self._report()
        return Status.CONVERGED

    def _report(self) -> None:
        if self.callback is not None:
            seconds = perf_counter() - self.started
            progress = Progress(len(self.points), 0.0, 0.0, 0.0, self.problem.size, seconds)
            if requests_stop(self.callback(progress)):
                raise _StopSearchError

    def result(self, status: Status, exact: bool, data: tuple[Any, Any, Any]) -> RegularizationPath:
        """Return the path through the points that were found."""
        Cs = np.array(sorted(self.points))
        samples, size = self.model._models_[0].samples, self.model.shape_fit_[0]
        duals = np.zeros((len(Cs), size))
        duals[:, samples] = [self.points[C][0] for C in Cs]
        offsets = np.array([self.points[C][1] for C in Cs])
        seconds = perf_counter() - self.started
        return RegularizationPath(Cs, duals, offsets, exact, self.restarts, status, seconds, self.model, data)


def _status_of(ended: BaseException) -> Status:
    if isinstance(ended, TimeLimitReachedError):
        return Status.MAX_SECONDS
    return Status.INTERRUPTED if isinstance(ended, KeyboardInterrupt) else Status.STOPPED


def _with_cost(problem: DualProblem, factor: float) -> DualProblem:
    """Return the problem with bounds that are multiplied by a factor."""
    lower, upper = problem.lower * factor, problem.upper * factor
    return DualProblem(
        problem.matrix, problem.linear, lower, upper, problem.ridge, problem.group, problem.total, problem.kink
    )
