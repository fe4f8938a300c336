"""Observers of a problem for the solver of an equivalent one: in other units, or with other variables."""

from __future__ import annotations

from collections.abc import Callable

from maxmargin._typing import Floats
from maxmargin.problems import Counters, Progress
from maxmargin.solvers.monitor import SharedCallback
from maxmargin.solvers.recorder import RecordedCallback, Recorder
from maxmargin.solvers.stopping import Callback

#: From a progress report of the solved problem to one of the original problem.
TranslateProgress = Callable[[Progress], Progress]

#: From a point that the solver can start from to one of the original problem.
TranslateStart = Callable[[Floats], Floats]


def translated(callback: Callback, progress: TranslateProgress, start: TranslateStart) -> Callback:
    """Return the callback of the original problem for the solver of the equivalent one."""
    if isinstance(callback, RecordedCallback):
        inner = translated(callback.callback, progress, start)
        return RecordedCallback(inner, TranslatedRecorder(callback.recorder, start))
    return TranslatedCallback(callback if isinstance(callback, SharedCallback) else SharedCallback(callback), progress)


class TranslatedCallback(SharedCallback):
    """Passes progress reports on, as those of the original problem."""

    def __init__(self, base: SharedCallback, translate: TranslateProgress) -> None:
        super().__init__(base.callback)
        self.stopped = base.stopped
        self._base, self._translate = base, translate

    def __call__(self, progress: Progress) -> bool:
        return self._base(self._translate(progress))


class TranslatedRecorder(Recorder):
    """Passes points on, as those of the original problem."""

    def __init__(self, base: Recorder, translate: TranslateStart) -> None:
        self._base, self._translate = base, translate

    def is_due(self) -> bool:
        return self._base.is_due()

    def record(self, start: Floats, counters: Counters) -> None:
        self._base.record(self._translate(start), counters)
