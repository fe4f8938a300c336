"""Progress reporting: the user's callback, a progress line, and what an estimator adds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from maxmargin.problems import Progress
from maxmargin.solvers import Callback


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
        observers += estimator._more_observers(stack)
        yield _combine(observers) if len(observers) > 1 else observers[0] if observers else None


def _combine(observers: list[Callback]) -> Callback:
    """Return one callback for several: all are called, and any of them can stop the fit."""

    def call_all(progress: Progress) -> bool:
        answers = [observer(progress) for observer in observers]
        return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)

    return call_all
