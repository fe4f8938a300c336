"""Who hears how a fit gets on: the user's callback, a progress line, and scikit-learn's callbacks (from 1.9 on).

To scikit-learn a fit is a task, and every report of its solver a task within it, of which nobody knows how many there
will be. The report itself is in the metadata, under "progress".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from maxmargin.problems import Progress
from maxmargin.solvers import Callback


class Reporting:
    """What estimators can do whose fit is a task to scikit-learn's callbacks."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set scikit-learn's callbacks, such as ``sklearn.callback.ProgressBar()``; it must be 1.9 or newer.

        A fit is a task to them, and every report of its solver (up to ten a second) one within it, with the
        ``"progress"`` in the metadata of its end. Without arguments, callbacks are removed.
        """
        try:
            from sklearn.callback import CallbackSupportMixin  # loads rich
        except ImportError as error:
            raise ImportError("set_callbacks needs scikit-learn 1.9; the parameter callback does not") from error
        return CallbackSupportMixin.set_callbacks(self, *callbacks)


@contextmanager
def reporting(estimator: Any) -> Iterator[Callback | None]:
    """Yield what a solver should call, or None if nobody listens; what listeners set up is taken down at the end."""
    listeners: list[Callback] = []
    if estimator.callback is not None:
        if not callable(estimator.callback):
            raise ValueError(
                f"callback must be a function of one argument, the progress, not {estimator.callback!r}; objects for "
                "scikit-learn's set_callbacks go there"
            )
        listeners.append(estimator.callback)
    with ExitStack() as stack:
        if estimator.verbose:
            from maxmargin.progress import ProgressLine  # rich is only loaded when it is wanted

            line = ProgressLine()
            stack.callback(line.close)
            listeners.append(line)
        if hasattr(estimator, "_skl_callbacks"):
            listeners.append(_as_tasks(estimator, stack))
        yield _all_of(listeners) if len(listeners) > 1 else listeners[0] if listeners else None


def _all_of(listeners: list[Callback]) -> Callback:
    """Return one callback for several: all are told, and one is enough to stop."""

    def tell(progress: Progress) -> bool:
        answers = [listener(progress) for listener in listeners]
        return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)

    return tell


def _as_tasks(estimator: Any, stack: ExitStack) -> Callback:
    """Begin the task of a fit, which ends with the stack; return a callback that makes a report a task within it."""
    from sklearn.callback import CallbackSupportMixin  # loads rich, as `set_callbacks` has by now
    from sklearn.callback._callback_support import callback_management_context

    stack.enter_context(callback_management_context(estimator))
    fit = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=None)
    fit.call_on_fit_task_begin(estimator=estimator)
    stack.callback(fit.call_on_fit_task_end, estimator=estimator)

    def report(progress: Progress) -> bool:
        task = fit.subcontext(task_name="report").call_on_fit_task_begin(estimator=estimator)
        return bool(task.call_on_fit_task_end(estimator=estimator, metadata={"progress": progress}))

    return report


def trained_elsewhere(estimator: Any, attribute: str) -> str:
    """Return the sentence about a model that predicts, but was not trained by `fit`."""
    name = type(estimator).__name__
    judge = "; certify(X, y) judges it on any data" if hasattr(estimator, "certify") else ""
    return (
        f"this {name!r} object has no attribute {attribute!r}: it was not trained by fit (it comes from another "
        f"program, or from partial_fit), and a proof needs the training data and the dual variables. Calling fit with "
        f"the training data makes one{judge}"
    )
