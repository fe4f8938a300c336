"""Estimates of the error on new samples from a fitted machine alone: ξα, span, support vectors, leave-one-out.

With y_i f(x_i) = 1 − ξ_i of a support vector, the model without it has y_i f(x_i) = 1 − ξ_i − α_i S_i², where S_i is
the distance of the sample from the affine span of the free support vectors, averaged over the way from α_i to 0. The
span estimate (Vapnik & Chapelle 2000) takes S_i at the solution, which is exact if no other sample becomes a support
vector or ceases to be one, free or bounded. The ξα estimate (Joachims 2000) takes the largest possible value: an upper
bound of the leave-one-out error if a free support vector remains without each sample. docs/mathematics.md derives both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline
from maxmargin.formulations.formulation import Formulation
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.radial import RadialKernel
from maxmargin.machines.kernel.function_estimator import KernelRegressor
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.matrices.signed_matrix import SignedMatrix
from maxmargin.problems import DualProblem, Status
from maxmargin.resources import default_cache_bytes, thread_count
from maxmargin.selection import least_squares
from maxmargin.selection.common_point import CommonPoint
from maxmargin.selection.leave_one_out import LeaveOneOut, LeftOutSearch, check_machine
from maxmargin.selection.left_out_result import LeftOut
from maxmargin.selection.removal_paths import RemovalPaths
from maxmargin.training import TrainedModel

#: The most rows whose largest distance is taken as a lower bound of R.
MAX_BOUND_ROWS = 64

#: Kernel values that are computed at a time.
BLOCK_VALUES = 2**22


@dataclass(frozen=True)
class ErrorEstimates:
    """Estimates of the error of a fitted machine on new samples; None where one is not defined.

    Attributes
    ----------
    measure : str
        What the numbers are: a fraction of samples, or a mean of squares.
    training : float
        The error on the training samples themselves.
    support_vectors : float or None
        The fraction of support vectors, an upper bound of the leave-one-out error.
    xi_alpha : float or None
        Joachims' ξα estimate, an upper bound of the leave-one-out error as well.
    xi_alpha_recall, xi_alpha_precision : float or None
        Of two classes, for ``classes_[1]``: lower bounds of those of leave-one-out.
    span : float or None
        The span estimate: the leave-one-out error as long as no other sample becomes a support vector, or ceases to be.
    leave_one_out : float or None
        The leave-one-out error, if it was computed.
    """

    measure: str
    training: float
    support_vectors: float | None = None
    xi_alpha: float | None = None
    xi_alpha_recall: float | None = None
    xi_alpha_precision: float | None = None
    span: float | None = None
    leave_one_out: float | None = None

    def as_dict(self) -> dict[str, float]:
        """Return the estimates that are defined, by their names."""
        named = (
            ("training", self.training),
            ("support vectors (upper bound)", self.support_vectors),
            ("ξα (upper bound)", self.xi_alpha),
            ("ξα recall (lower bound)", self.xi_alpha_recall),
            ("ξα precision (lower bound)", self.xi_alpha_precision),
            ("span", self.span),
            ("leave-one-out", self.leave_one_out),
        )
        return {name: value for name, value in named if value is not None}

    def __str__(self) -> str:
        rows = self.as_dict()
        width = max(map(len, rows))
        lines = [f"Estimates of the error ({self.measure})"]
        return "\n".join([*lines, *(f"  {name:<{width}}  {value:.4g}" for name, value in rows.items())])


def error_estimates(model: Any, *, loo: bool = False) -> ErrorEstimates:
    """Estimate the error of a fitted machine on new samples, without a test set.

    The time is that of the kernel values between support vectors and all samples, as for ``certificate_``, and of the
    factorisation of a matrix as large as the number of free support vectors. With ``loo=True`` these are those of
    leave-one-out, and the estimates take nothing noticeable beside it.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR, OneClassSVM, LSSVC or LSSVR
        Fitted on the data, which must not have been changed since. Of a `NuSVC` the ξα estimate is that of the `SVC`
        with the same solution; ν-machines have no span estimate.
    loo : bool, default=False
        Whether to compute the leave-one-out error. Without, it is there if ``loo_error_`` was read before.

    Returns
    -------
    ErrorEstimates

    Examples
    --------
    >>> from maxmargin import SVC, error_estimates
    >>> model = SVC(kernel="linear").fit([[0], [1], [2], [5], [6], [7]], [0, 0, 0, 1, 1, 1])
    >>> print(error_estimates(model, loo=True))
    Estimates of the error (fraction of wrong classes)
      training                       0
      support vectors (upper bound)  0.3333
      ξα (upper bound)               0.3333
      ξα recall (lower bound)        0.6667
      ξα precision (lower bound)     0.6667
      span                           0.3333
      leave-one-out                  0
    """
    check_machine(model, "error_estimates")
    estimated: dict[int, _Estimated] = {}
    signs_only = isinstance(model, KernelClassifier) and len(model._models_) == 1

    def estimate(trained: TrainedModel, point: CommonPoint | None = None) -> None:
        estimated[id(trained)] = _Estimated.of(model, trained, signs_only, point)

    found = _left_out(model, estimate) if loo else known_leave_one_out(model)
    for trained in model._models_:
        if id(trained) not in estimated:
            estimate(trained)
    problems = [estimated[id(trained)] for trained in model._models_]
    error = None if found is None else found.error
    if isinstance(model, KernelClassifier):
        return _of_classifier(model, problems, error)
    predictions, outputs = np.array([one.values for one in problems]), np.array([one.left_out for one in problems])
    if isinstance(model, KernelRegressor):
        targets = np.array([one.problem.linear[: len(one.samples)] for one in problems])
        span = None if np.isnan(outputs).any() else float(np.mean((targets - outputs) ** 2))
        training = float(np.mean((targets - predictions) ** 2))
        return ErrorEstimates("mean squared error", training, span=span, leave_one_out=error)
    support = float(np.mean(problems[0].dual != 0))
    outside = float(np.mean(predictions[0] < 0))
    return ErrorEstimates("fraction of samples outside", outside, support, leave_one_out=error)


def _left_out(model: Any, use_point: Callable[[TrainedModel, CommonPoint], None]) -> LeaveOneOut:
    """Return the leave-one-out of a model; the estimates take the kernel values and equations that it needs."""
    started = perf_counter()
    search = LeftOutSearch(model, False, thread_count(model.n_jobs), [], started, use_point)
    return search.result(search.run(Deadline.after(None, started)))


def span_values(model: Any) -> list[Floats]:
    """Return for each problem of a model the decision values of its samples that the span predicts without them."""
    check_machine(model, "span_values")
    return [_Estimated.of(model, trained).left_out for trained in model._models_]


def known_leave_one_out(model: Any) -> LeaveOneOut | None:
    """Return the leave-one-out of a fit that was computed before."""
    models, found = vars(model).get("_leave_one_out_", (None, None))
    return found if models is not None and models is model._models_ else None


class _Estimated:
    """What the estimates need of one trained problem."""

    def __init__(self, problem: DualProblem, samples: Indices, formulation: Formulation, dual: Floats) -> None:
        self.problem, self.samples, self.formulation, self.dual = problem, samples, formulation, dual
        self.values = self.left_out = np.empty(0)
        self.risky = np.zeros(problem.size, dtype=bool)  # may be an error when it is left out

    @classmethod
    def of(cls, model: Any, trained: Any, signs_only: bool = False, point: CommonPoint | None = None) -> _Estimated:
        """Return it for a problem, from its solution to a small tolerance if that is known.

        With `signs_only`, values of samples on the wrong side are not computed: they stay there.
        """
        problem, formulation = trained.training_problem()
        one = cls(problem, trained.samples, formulation, trained.dual)
        threads = thread_count(model.n_jobs)
        if least_squares.is_least_squares(problem):
            one.left_out = least_squares.left_out_values(problem, least_squares.inverse_of(problem, threads))
            one.values = problem.linear - problem.ridge * trained.dual
            return one
        if point is None:
            tolerance = model._solver_options().stopping.violation / (float(np.abs(problem.linear).max()) or 1.0)
            cache_bytes = model._cache_budget() or default_cache_bytes()
            point = CommonPoint(problem, len(trained.samples), trained.dual, tolerance, cache_bytes, threads)
        one.dual = point.combined_dual()
        one.values = point.values(formulation)
        one.left_out = _left_out_by_span(point, one, signs_only)
        if isinstance(model, KernelClassifier) and problem.coercive and not isinstance(problem.matrix, SignedMatrix):
            one.risky = _risky(point, one)
        return one


def _scale(point: CommonPoint, formulation: Formulation) -> float:
    """Return the factor of the decision function on the dual variables: 1, or 1/r of ν-classification."""
    return float(formulation.expand(point.whole, np.ones(point.whole.size), point.offset).coefficients[0])


def _left_out_by_span(point: CommonPoint, one: _Estimated, signs_only: bool) -> Floats:
    """Return the values that the span predicts for the samples without them; NaN if there are too many free ones."""
    left_out, problem = one.values.copy(), point.problem
    on_its_side = (one.dual * one.values >= 0) if signs_only else True
    used = np.flatnonzero((one.dual != 0) & on_its_side)
    if isinstance(one.problem.matrix, SignedMatrix) or problem.groups > 1 or point.inverse is None:
        return np.full(len(left_out), np.nan)
    lonely = problem.groups - len(np.unique(problem.group[point.inverse.variables]))
    if lonely > 0:
        spans = np.full(len(used), np.inf)
    else:
        spans = RemovalPaths(point, used[:0]).spans(point.used_variables(used))
    left_out[used] -= _scale(point, one.formulation) * one.dual[used] * spans
    return left_out


def _risky(point: CommonPoint, one: _Estimated) -> np.ndarray:
    """Return for which samples ξ_i + 2 α_i R² ≥ 1, where 2 R² is the largest squared distance of two samples.

    Without an offset it is the squared norm of the sample. Mostly bounds of R decide, without further kernel values.
    """
    problem, used = point.problem, np.flatnonzero(one.dual)
    slack = 1.0 - np.sign(one.dual) * one.values
    if problem.groups == 1 and np.isfinite(point.ends).all():  # without a free support vector, the worst offset
        slack += 0.5 * max(0.0, float(point.ends[1, 0] - point.ends[0, 0]))
    weights = abs(_scale(point, one.formulation)) * np.abs(one.dual)

    def risky(largest: float) -> np.ndarray:
        found: np.ndarray = (one.dual != 0) & (slack + weights * largest >= 1.0)
        return found

    if not problem.groups:
        return risky(float(problem.matrix.diagonal()[used].max(initial=0.0)))
    least = risky(_largest_distance(problem, point.rows.stored(used, MAX_BOUND_ROWS)))
    bound = _distance_bound(problem, used)
    most = None if bound is None else risky(bound)
    return most if most is not None and np.array_equal(least, most) else risky(_largest_distance(problem, (used, None)))


def _largest_distance(problem: DualProblem, rows: tuple[Indices, Floats | None]) -> float:
    """Return the largest squared distance of some samples from all, given the rows of these or None."""
    variables, values = rows
    diagonal, largest = problem.matrix.diagonal(), 0.0
    step = max(1, BLOCK_VALUES // problem.size)
    for first in range(0, len(variables), step):
        some = variables[first : first + step]
        block = problem.matrix.rows(some) if values is None else values[first : first + step]
        distances = diagonal[some][:, None] + problem.curvature - 2.0 * block
        largest = max(largest, float(distances.max()))
    return largest


def _distance_bound(problem: DualProblem, variables: Indices) -> float | None:
    """Return an upper bound of the largest squared distance of some samples from all, if the kernel has one."""
    kernel = getattr(problem.matrix, "kernel", None)
    if not isinstance(kernel, Kernel) or not kernel.positive_semidefinite:
        return None
    own = float(problem.matrix.diagonal()[variables].max(initial=0.0))
    others = float(problem.curvature.max())
    if isinstance(kernel, RadialKernel):  # its values are at least 0
        return own + others
    return float((np.sqrt(own) + np.sqrt(others)) ** 2)


def _of_classifier(model: KernelClassifier, problems: list[_Estimated], error: float | None) -> ErrorEstimates:
    """Return the estimates of a classifier."""
    search = LeftOutSearch(model, True, 1, [], 0.0)
    wrong = []
    for values in ([one.values for one in problems], [one.left_out for one in problems]):
        search.found = [
            LeftOut(each, np.where(each >= 0, 1.0, -1.0), np.ones(len(each), dtype=bool)) for each in values
        ]
        unknown = any(np.isnan(each).any() for each in values)
        wrong.append(None if unknown else search.result(Status.CONVERGED).error)
    assert wrong[0] is not None
    if all(least_squares.is_least_squares(one.problem) for one in problems):
        return ErrorEstimates("fraction of wrong classes", wrong[0], span=wrong[1], leave_one_out=error)
    size = model.shape_fit_[0]
    taking_part, support, risky = (np.zeros(size, dtype=bool) for _ in range(3))
    for one in problems:
        taking_part[one.samples] = True
        support[one.samples] |= one.dual != 0
        risky[one.samples] |= one.risky
    count = int(taking_part.sum())
    bounded = all(one.problem.coercive and not isinstance(one.problem.matrix, SignedMatrix) for one in problems)
    recall = precision = None
    if bounded and len(model.classes_) == 2 and len(problems) == 1:
        problem = problems[0].problem
        signs = problem.linear if problem.linear.any() else problem.group - 0.5
        positive, counted = signs > 0, problems[0].risky
        right, false = int((positive & ~counted).sum()), int((~positive & counted).sum())
        recall = right / max(1, int(positive.sum()))
        precision = right / (right + false) if right + false else 0.0
    return ErrorEstimates(
        "fraction of wrong classes",
        wrong[0],
        int(support.sum()) / count,
        int(risky.sum()) / count if bounded else None,
        recall,
        precision,
        wrong[1],
        error,
    )
