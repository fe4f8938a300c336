"""Leave-one-out: every training sample predicted by the model that is trained on all others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline, TimeLimitReachedError
from maxmargin.kernels.points import rows_of
from maxmargin.machines.kernel.function_estimator import FunctionEstimator, KernelRegressor
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.validation.parameters import check_number
from maxmargin.models import OneVsOneVote
from maxmargin.problems import DualProblem, Progress, Status
from maxmargin.resources import default_cache_bytes, thread_count
from maxmargin.selection import least_squares
from maxmargin.selection.common_point import CommonPoint
from maxmargin.selection.left_out_result import LeftOut
from maxmargin.selection.problem_without_each import leave_each_out
from maxmargin.solvers import Callback
from maxmargin.solvers.stopping import requests_stop
from maxmargin.training import TrainedModel


@dataclass(frozen=True)
class LeaveOneOut:
    """Each training sample, predicted by the model that is trained on all others.

    Attributes
    ----------
    error : float
        Classification: the fraction of samples whose class is predicted wrongly. Regression: the mean squared error.
        Novelty detection: the fraction that is predicted to be outside. Over the samples with a positive weight whose
        prediction is known.
    error_interval : tuple of two floats
        The error if all other predictions were right, and if all were wrong: equal if all are known.
    predictions : array of shape (n_samples,), or (n_samples, n_outputs)
        Class, target, or ±1. Where they are not known, None, NaN, or 0.
    decision_function : float array, optional
        Decision values in the shape of ``decision_function``; None if only the predictions were asked for.
    known : bool array
        Which predictions are known: all, unless a limit or Ctrl-C ended the search.
    proved : bool array
        Whether a bound that is computed from kernel values shows the prediction, up to the rounding of its sums;
        otherwise it is that of a model within the tolerance of a fit.
    solves : int
        The number of problems that were solved, at any tolerance. Samples that are no support vectors need none.
    seconds : float
    status : Status
        How the search ended.
    """

    error: float
    error_interval: tuple[float, float]
    predictions: Any = field(repr=False)
    decision_function: Floats | None = field(repr=False)
    known: np.ndarray = field(repr=False)
    proved: np.ndarray = field(repr=False)
    solves: int
    seconds: float
    status: Status = Status.CONVERGED


def leave_one_out(
    model: Any,
    *,
    values: bool = False,
    max_seconds: float | None = None,
    callback: Callback | None = None,
    verbose: bool = False,
    n_jobs: int | None = None,
) -> LeaveOneOut:
    """Predict each training sample by the model without it, at the cost of a few fits.

    The answer is that of refitting the machine without each sample, with the kernel coefficient γ and the class
    weights of the fit on all samples: ``gamma="scale"`` and ``class_weight="balanced"`` are not computed again. ν keeps
    its meaning: the fractions are of the other samples; where ν would be infeasible without a sample, the largest
    feasible one holds. Where a class has no other sample, the remaining ones are predicted.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR, OneClassSVM, LSSVC or LSSVR
        Fitted on the data, which must not have been changed since.
    values : bool, default=False
        Whether decision values are needed, too. Of `SVC` and `OneClassSVM`, predictions alone take less time: they
        are known as soon as the sign of the decision value is proved.
    max_seconds : float, optional
        Limit on the time: the result then has what is known, and the interval of the error.
    callback : callable, optional
        Called with the progress (`finished` of `problems` samples); returning True ends the search with what is known.
    verbose : bool, default=False
        Show a progress line on the terminal if it takes longer than a second.
    n_jobs : int, optional
        Threads; by default those of the model. The predictions do not depend on it.

    Returns
    -------
    LeaveOneOut
        After Ctrl-C with what is known until then and the status INTERRUPTED.

    Examples
    --------
    >>> from maxmargin import SVC, leave_one_out
    >>> model = SVC(kernel="linear").fit([[0], [1], [4], [5]], [0, 0, 1, 1])
    >>> leave_one_out(model).error
    0.0
    """
    started = perf_counter()
    check_machine(model, "leave_one_out")
    limit = None if max_seconds is None else check_number("max_seconds", max_seconds, least=0)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be a function of one argument, the progress, not {callback!r}")
    with ExitStack() as stack:
        observers = [] if callback is None else [callback]
        if verbose:
            from maxmargin.progress import ProgressLine, format_count

            line = ProgressLine(text=format_count)
            stack.callback(line.close)
            observers.append(line)
        search = LeftOutSearch(
            model, values, thread_count(model.n_jobs if n_jobs is None else n_jobs), observers, started
        )
        status = search.run(Deadline.after(limit, started))
    return search.result(status)


#: The machines whose samples can be left out, by name.
MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "LSSVC", "LSSVR")


def check_machine(model: Any, function: str) -> None:
    """Raise unless the samples of a model can be left out."""
    name = type(model).__name__
    if name not in MACHINES or not isinstance(model, KernelClassifier | FunctionEstimator):
        raise ValueError(
            f"{function} takes a fitted {', '.join(MACHINES[:-1])} or {MACHINES[-1]}, not {name}; for others use "
            "sklearn.model_selection.cross_val_predict with cv=LeaveOneOut()"
        )
    model._check_fitted()
    strategy = getattr(model, "_multi_class_", "ovo")
    if strategy not in ("ovo", "ovr"):
        raise ValueError(
            f"{function} is not available for multi_class={strategy!r}, where a sample has a variable for each "
            "class; use multi_class='ovo' or 'ovr'"
        )
    model._trained("loo_error_")


class _StopSearchError(Exception):
    """A callback has asked to stop."""


class LeftOutSearch:
    """The search of one call: problem after problem.

    `use_point` is called with each problem that is finished, and its solution to a small tolerance.
    """

    def __init__(
        self,
        model: Any,
        values: bool,
        threads: int,
        observers: list[Callback],
        started: float,
        use_point: Callable[[TrainedModel, CommonPoint], None] | None = None,
    ) -> None:
        self.use_point = use_point
        self.model, self.threads, self.observers, self.started = model, threads, observers, started
        self.models: list[TrainedModel] = list(model._models_)
        regression = isinstance(model, KernelRegressor)
        self.values = values or regression or getattr(model, "_multi_class_", "") == "ovr"
        self.count = model.shape_fit_[0]
        self.found = [LeftOut.of(len(one.samples)) for one in self.models]
        self.finished, self.total = 0, sum(len(one.samples) for one in self.models)

    def run(self, deadline: Deadline) -> Status:
        """Leave out the samples of all problems; return how that ended."""
        inverse: tuple[DualProblem, Floats] | None = None
        try:
            with deadline.in_force():
                for trained, found in zip(self.models, self.found, strict=True):
                    problem, formulation = trained.training_problem()
                    if least_squares.is_least_squares(problem):
                        inverse = self._inverse(problem, trained.samples, inverse)
                        found.values[:] = least_squares.left_out_values(problem, inverse[1])
                        found.signs[:] = np.where(found.values >= 0, 1.0, -1.0)
                        found.proved[:] = True
                        self.report(problem.size)
                        continue
                    point = leave_each_out(
                        problem,
                        trained.dual,
                        formulation,
                        values=self.values,
                        tolerance=self.model._solver_options().stopping.violation,
                        cache_bytes=self.model._cache_budget() or default_cache_bytes(),
                        threads=self.threads,
                        found=found,
                        report=self.report,
                    )
                    if self.use_point is not None and point is not None:
                        self.use_point(trained, point)
        except TimeLimitReachedError:
            return Status.MAX_SECONDS
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        except _StopSearchError:
            return Status.STOPPED
        return Status.CONVERGED

    def _inverse(
        self, problem: DualProblem, samples: Indices, before: tuple[DualProblem, Floats] | None
    ) -> tuple[DualProblem, Floats]:
        """Return the inverse of the matrix plus the ridge: for several outputs that of the first."""
        one_set = all(np.array_equal(samples, model.samples) for model in self.models[:2])
        if before is not None and one_set and np.array_equal(before[0].ridge, problem.ridge):
            return problem, before[1]
        return problem, least_squares.inverse_of(problem, self.threads)

    def report(self, finished: int) -> None:
        """Report how many more samples are finished."""
        self.finished += finished
        seconds = perf_counter() - self.started
        progress = Progress(
            0, 0.0, 0.0, 0.0, self.total - self.finished, seconds, finished=self.finished, problems=self.total
        )
        answers = [requests_stop(observer(progress)) for observer in self.observers]  # all of them are called
        if any(answers):
            raise _StopSearchError

    def result(self, status: Status) -> LeaveOneOut:
        """Return what is known."""
        known, proved = np.ones(self.count, dtype=bool), np.ones(self.count, dtype=bool)
        weighted = np.zeros(self.count, dtype=bool)
        for trained, found in zip(self.models, self.found, strict=True):
            weighted[trained.samples] = True
            known[trained.samples] &= found.signs != 0
            proved[trained.samples] &= found.proved
        known &= weighted
        proved &= known
        read = _classified if isinstance(self.model, KernelClassifier) else _function_values
        predictions, decisions, losses = read(self, known)
        count = max(1, int(weighted.sum()))
        error = float(losses[known].mean()) if known.any() else float("nan")
        least = float(losses[known].sum()) / count
        unknown = int(weighted.sum() - known.sum())
        of_one = float("inf") if isinstance(self.model, KernelRegressor) else 1.0 / count
        most = least + of_one * unknown if unknown else least
        return LeaveOneOut(
            error,
            (least, most),
            predictions,
            decisions if self.values else None,
            known,
            proved,
            sum(found.solves for found in self.found),
            perf_counter() - self.started,
            status,
        )

    def training_samples(self) -> Any:
        """Return all rows that the model was fitted on."""
        matrix: Any = self.models[0].training_problem()[0].matrix
        while hasattr(matrix, "base") or getattr(matrix, "origin", None) is not None:
            matrix = matrix.base if hasattr(matrix, "base") else matrix.origin
        points = getattr(matrix, "points", None)
        return matrix.values if points is None else rows_of(points.data, np.arange(self.count))


def _function_values(search: LeftOutSearch, known: np.ndarray) -> tuple[Any, Floats, Floats]:
    """Return predictions, values and losses of regression or novelty detection."""
    model = search.model
    values = np.full((search.count, len(search.models)), np.nan)
    signs = np.zeros(search.count)
    for column, (trained, found) in enumerate(zip(search.models, search.found, strict=True)):
        values[trained.samples, column] = found.values
        signs[trained.samples] = found.signs
    if not isinstance(model, KernelRegressor):
        losses: Floats = np.where(signs < 0, 1.0, 0.0)
        return signs.astype(np.int64), values[:, 0], losses
    values[~known] = np.nan
    targets = np.full_like(values, np.nan)
    for column, trained in enumerate(search.models):
        targets[trained.samples, column] = trained.training_problem()[0].linear[: len(trained.samples)]
    losses = np.mean((targets - values) ** 2, axis=1)
    shaped = values if model._outputs_ is not None else values[:, 0]
    return shaped, shaped, losses


def _classified(search: LeftOutSearch, known: np.ndarray) -> tuple[Any, Floats, Floats]:
    """Return predicted classes, decision values and losses of a classifier."""
    model, classes = search.model, search.model.classes_
    labels = _labels(search)
    signed = [np.where(np.isnan(one.values), one.signs, one.values) for one in search.found]
    if len(classes) == 2 and len(search.models) == 1:
        values = np.full(search.count, np.nan)
        values[search.models[0].samples] = signed[0]
        winners, decisions = (values >= 0).astype(np.intp), values
    else:
        values = model._evaluate(search.training_samples())
        for column, trained in enumerate(search.models):
            values[trained.samples, column] = signed[column]
        predictor = model._model()
        if isinstance(predictor, OneVsOneVote):
            winners = predictor.predicted_class(values)
            by_pair = getattr(model, "decision_function_shape", "ovr") == "ovo"
            decisions = values if by_pair else predictor.scores(values)
        else:
            winners, decisions = np.argmax(values, axis=1), values
    predictions = np.full(search.count, None, dtype=object) if not known.all() else None
    named = classes[winners]
    if predictions is None:
        predictions = named
    else:
        predictions[known] = named[known]
    return predictions, np.asarray(decisions), np.asarray(winners != labels, dtype=np.float64)


def _labels(search: LeftOutSearch) -> Indices:
    """Return the class number of each row, −1 for rows without weight."""
    classes, count = len(search.model.classes_), search.count
    labels = np.full(count, -1, dtype=np.int64)
    pairs = [(a, b) for a in range(classes) for b in range(a + 1, classes)]
    for position, trained in enumerate(search.models):
        positive = _signs(trained) > 0
        if classes == 2:
            labels[trained.samples] = positive
        elif search.model._multi_class_ == "ovr":
            labels[trained.samples[positive]] = position
        else:
            labels[trained.samples[positive]], labels[trained.samples[~positive]] = pairs[position]
    return labels


def _signs(trained: TrainedModel) -> Floats:
    """Return the labels of the samples of a two-class problem as ±1."""
    problem = trained.training_problem()[0]
    if problem.linear.any():
        return problem.linear
    if problem.groups == 2:
        return np.where(problem.group > 0, 1.0, -1.0)
    signed: Any = problem.matrix  # of ν-classification without an offset
    return np.asarray(signed.signs)
