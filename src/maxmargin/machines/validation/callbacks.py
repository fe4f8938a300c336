"""Progress reporting: the user's callback, a progress line, and scikit-learn's callbacks (from version 1.9).

For scikit-learn a fit is a task, and every progress report of its solver is a task within it, of unknown number. The
report itself is in the metadata, under "progress".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from maxmargin.problems import Progress
from maxmargin.solvers import Callback


class SklearnCallbacks:
    """Mixin of estimators that support scikit-learn's callbacks."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set scikit-learn's callbacks, such as ``sklearn.callback.ProgressBar()``; needs scikit-learn 1.9 or newer.

        A fit is a task, and every progress report of its solver (up to ten a second) a task within it, with the
        ``"progress"`` in the metadata of its end. Without arguments, callbacks are removed.
        """
        try:
            from sklearn.callback import CallbackSupportMixin  # loads rich
        except ImportError as error:
            raise ImportError("set_callbacks needs scikit-learn 1.9; the parameter callback does not") from error
        return CallbackSupportMixin.set_callbacks(self, *callbacks)


@contextmanager
def reporting(estimator: Any) -> Iterator[Callback | None]:
    """Yield the callback for the solver, None without observers; observers are closed at the end."""
    observers: list[Callback] = []
    if estimator.callback is not None:
        if not callable(estimator.callback):
            raise ValueError(
                f"callback must be a function of one argument, the progress, not {estimator.callback!r}; use "
                "set_callbacks for scikit-learn's callbacks"
            )
        observers.append(estimator.callback)
    with ExitStack() as stack:
        if estimator.verbose:
            from maxmargin.progress import ProgressLine  # loads rich

            line = ProgressLine()
            stack.callback(line.close)
            observers.append(line)
        if hasattr(estimator, "_skl_callbacks"):
            observers.append(_as_tasks(estimator, stack))
        yield _combine(observers) if len(observers) > 1 else observers[0] if observers else None


def _combine(observers: list[Callback]) -> Callback:
    """Return one callback for several: all are called, and any of them can stop the fit."""

    def call_all(progress: Progress) -> bool:
        answers = [observer(progress) for observer in observers]
        return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)

    return call_all


def _as_tasks(estimator: Any, stack: ExitStack) -> Callback:
    """Begin the task of a fit, which ends with the stack; return a callback that makes each report a subtask."""
    from sklearn.callback import CallbackSupportMixin  # loads rich, as `set_callbacks` did
    from sklearn.callback._callback_support import callback_management_context

    stack.enter_context(callback_management_context(estimator))
    fit = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=None)
    fit.call_on_fit_task_begin(estimator=estimator)
    stack.callback(fit.call_on_fit_task_end, estimator=estimator)

    def report(progress: Progress) -> bool:
        task = fit.subcontext(task_name="report").call_on_fit_task_begin(estimator=estimator)
        return bool(task.call_on_fit_task_end(estimator=estimator, metadata={"progress": progress}))

    return report
