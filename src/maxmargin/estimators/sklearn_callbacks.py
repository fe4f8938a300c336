"""Support of scikit-learn's callbacks (from version 1.9).

For scikit-learn a fit is a task, and every progress report of its solver is a task within it, of unknown number. The
report itself is in the metadata, under "progress".
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

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

    def _more_observers(self, stack: ExitStack) -> list[Callback]:
        return [_as_tasks(self, stack)] if hasattr(self, "_skl_callbacks") else []


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
