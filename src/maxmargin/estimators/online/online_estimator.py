"""Common base of the estimators that learn from a stream: validation, limits and observers."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import Deadline
from maxmargin.estimators.base import Estimator
from maxmargin.kernels import Gaussian, Kernel, Points
from maxmargin.kernels.points import rows_of
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.parameters import check_choice, check_count, check_number
from maxmargin.machines.validation.training_data import is_table
from maxmargin.matrices import NON_FINITE_MESSAGE
from maxmargin.online import OnlineLearner
from maxmargin.online.budget import BUDGET_STRATEGIES, Budget
from maxmargin.online.learner import SELECTIONS
from maxmargin.problems import Progress, Status
from maxmargin.resources import default_cache_bytes, thread_count
from maxmargin.solvers import Callback, StoppingRule
from maxmargin.solvers.monitor import Monitor
from maxmargin.training.fit_context import MAX_SINGLE_THREAD_ROWS, SolverOptions

#: Rows of a permuted table that are copied together.
CHUNK_ROWS = 4096


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Yield an event that is set by Ctrl-C instead of a KeyboardInterrupt; a second Ctrl-C interrupts at once.

    Python raises KeyboardInterrupt between any two instructions, which could leave the memory in an inconsistent state.
    Other threads and handlers set by the user are not affected.
    """
    pressed = threading.Event()
    default = signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not default:
        yield pressed
        return

    def record(number: int, frame: Any) -> None:
        if pressed.is_set():
            default(number, frame)
        pressed.set()

    signal.signal(signal.SIGINT, record)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, default)


class StreamMonitor:
    """Checks the time limit and Ctrl-C and reports progress, between two slices of samples.

    An exception of the callback is kept until the state is consistent.
    """

    def __init__(
        self, learner: OnlineLearner, deadline: Deadline, pressed: threading.Event, callback: Callback | None
    ) -> None:
        self.learner, self.deadline, self.pressed = learner, deadline, pressed
        self.status: Status | None = None
        self.error: BaseException | None = None
        self._monitor = Monitor(StoppingRule(max_seconds=deadline.seconds_left()), callback)

    def __call__(self) -> bool:
        if self.status is None:
            self.status = Status.INTERRUPTED if self.pressed.is_set() else self._monitor.limit_reached(0)
        if self.status is None:
            try:
                if self._monitor.report(self._progress):
                    self.status = Status.STOPPED
            except BaseException as error:
                self.error, self.status = error, Status.STOPPED
        return self.status is not None

    def _progress(self) -> Progress:
        learner = self.learner
        return Progress(
            iteration=learner.steps,
            violation=learner.max_violation(),
            primal=learner.primal_value(),
            dual=learner.dual_value(),
            active=learner.count,
            seconds=self._monitor.seconds,
            kernel_evaluations=learner.table.evaluations,
            support_vectors=int(np.count_nonzero(learner.dual.any(axis=0))),
        )


class OnlineEstimator(Estimator, KernelEstimator):
    """Base of the estimators that learn from a stream."""

    # Parameters of the estimators.
    epochs: Any
    budget: Any
    budget_strategy: Any
    forget: Any
    callback: Any
    verbose: Any

    solver = "auto"  # for the batch problem
    _learner_: OnlineLearner

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = False
        tags.input_tags.sparse = not self._merges
        return tags

    @property
    def _merges(self) -> bool:
        return self.budget is not None and self.budget_strategy == "merge"

    @property
    def n_samples_seen_(self) -> int:
        """The number of samples observed; a sample counts in every epoch."""
        return self._memory("n_samples_seen_").seen

    @property
    def n_iter_(self) -> int:
        """The number of pair steps."""
        return self._memory("n_iter_").steps

    @property
    def budget_loss_(self) -> float:
        """The decrease of the dual objective caused by the budget."""
        return self._memory("budget_loss_").budget_loss

    @property
    def support_(self) -> Indices:
        """The indices of the support vectors in the stream, or rows of ``fit``; −1 for merged samples."""
        learner = self._memory("support_")
        return learner.slots.identity[self._support()]

    @property
    def support_vectors_(self) -> Any:
        """The support vectors."""
        learner = self._memory("support_vectors_")
        return rows_of(learner.samples.points.data, self._support())

    def _support(self) -> Indices:
        """Return the slots of the support vectors."""
        learner = self._learner_
        return np.flatnonzero(learner.dual[:, : learner.count].any(axis=0))

    def _memory(self, attribute: str) -> OnlineLearner:
        if "_learner_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r} before fit")
        return self._learner_

    def _check_stream_parameters(self) -> None:
        check_choice("selection", self.selection, tuple(SELECTIONS))
        check_count("epochs", self.epochs, 1)
        if self.forget is not None:
            check_count("forget", self.forget, 1)
            if self.epochs > 1:
                raise ValueError("forget requires epochs=1: it is for streams, in which every sample occurs once")
        check_choice("budget_strategy", self.budget_strategy, tuple(BUDGET_STRATEGIES))
        if self.budget is not None:
            check_count("budget", self.budget, 2)
        if self._precomputed:
            raise ValueError("kernel='precomputed' is not supported for streams; use SVC or OneClassSVM")

    def _check_table(self, X: Any) -> None:
        if self._own_function and not is_table(X):
            raise ValueError(
                f"{type(self).__name__} requires a numeric table X; for kernel functions of other samples use SVC or "
                "OneClassSVM"
            )

    def _check_kernel_of(self, kernel: Kernel, X: Any) -> None:
        """Raise if samples are outside the kernel's domain, or if their kernel values are not finite."""
        points = Points(X)
        kernel.check(points)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(kernel.diagonal(points)).all():
                raise ValueError(NON_FINITE_MESSAGE)
        if self._merges and not (isinstance(kernel, Gaussian) and isinstance(points.data, np.ndarray)):
            raise ValueError(
                "budget_strategy='merge' requires a Gaussian kernel and dense samples, sparse ones are not supported; "
                "use 'project' or 'remove'"
            )

    def _make_learner(self, kernel: Kernel, X: Any, bias: bool) -> OnlineLearner:
        """Return a learner with an empty memory."""
        return OnlineLearner(
            kernel,
            X,
            bias=bias,
            selection=self.selection,
            tolerance=check_number("tol", self.tol, above=0),
            cache_bytes=self._cache_budget() or default_cache_bytes(),
            budget=None if self.budget is None else Budget(int(self.budget), self.budget_strategy),
            forget=None if self.forget is None else int(self.forget),
        )

    def _solver_options(self) -> SolverOptions:
        """Return the options of the solver of the batch problem."""
        return SolverOptions("auto", StoppingRule(violation=check_number("tol", self.tol, above=0)))

    @contextmanager
    def _monitoring(self, learner: OnlineLearner, started: float) -> Iterator[StreamMonitor]:
        """Yield the monitor of a call that began at `started`; an error of the callback is raised at the end."""
        limit = None if self.max_seconds is None else check_number("max_seconds", self.max_seconds, least=0)
        few = self.n_jobs is None and learner.count <= MAX_SINGLE_THREAD_ROWS
        learner.threads = thread_count(1 if few or not learner.kernel.vectorised else self.n_jobs)
        with reporting(self) as report, deferred_interrupt() as pressed:
            monitor = StreamMonitor(learner, Deadline.after(limit, started), pressed, report)
            yield monitor
            if monitor.error is None and monitor.status is None and pressed.is_set():
                monitor.status = Status.INTERRUPTED
        if monitor.error is not None:
            raise monitor.error

    def _observe_epochs(self, learner: OnlineLearner, X: Any, labels: Indices, costs: Floats, rows: Indices,
                        random: Any, monitor: StreamMonitor) -> int:  # fmt: skip
        """Observe rows of a table in random order, once in each epoch; return how many were observed."""
        taken = 0
        learner.next_identity = X.shape[0]
        for epoch in range(int(self.epochs)):
            order = rows[random.permutation(len(rows))]
            for start in range(0, len(order), CHUNK_ROWS):
                some = order[start : start + CHUNK_ROWS]
                taken += learner.observe(X[some], labels[some], costs[some], some, monitor, again=epoch > 0)
                if monitor.status is not None:
                    return taken
        return taken

    def _observe_batch(
        self, learner: OnlineLearner, X: Any, labels: Indices, costs: Floats, rows: Indices, monitor: StreamMonitor
    ) -> int:
        """Observe rows of a batch in their order; return how many rows of the batch are done."""
        identity = learner.next_identity + rows
        some = X if len(rows) == X.shape[0] else X[rows]
        taken = learner.observe(some, labels[rows], costs[rows], identity, monitor)
        done = X.shape[0] if taken == len(rows) else int(rows[taken])
        learner.next_identity += done
        return done

    def _warn_if_stopped(self, monitor: StreamMonitor, taken: int, rows: int, what: str, stacklevel: int = 3) -> None:
        """Raise after an interruption, warn after a limit; the model is valid and the message has the row count."""
        if monitor.status is None:
            return
        rest = "; pass the others again" if what == "batch" and taken < rows else ""
        processed = f"{taken:,} of {rows:,} rows of the {what} were processed{rest}"
        if monitor.status is Status.INTERRUPTED:
            raise KeyboardInterrupt(f"learning was interrupted; the model so far is valid, {processed}")
        warnings.warn(
            f"{type(self).__name__} stopped early: {monitor.status.value}; {processed}",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
