"""When to stop, shared by all solvers, and who is told on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from maxmargin.problems import Progress, Status

#: Called with the progress a few times a second; returning True stops the solver.
Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class StoppingRule:
    """When a solver stops. Whatever comes first ends it; the violation and the gaps count as converged.

    Parameters
    ----------
    violation : float
        Largest violation of the optimality criterion (1.21) that is accepted.
    gap : float, optional
        Duality gap that is accepted even if the violation is larger.
    max_iterations, max_seconds : optional
        Limits on the work; the point reached is valid and its certificate says how good it is.
    relative_gap : float, optional
        Duality gap that is accepted as a part of the primal or the dual value, whichever is larger. Solvers of linear
        machines go by it.
    """

    violation: float = 1e-3
    gap: float | None = None
    max_iterations: int | None = None
    max_seconds: float | None = None
    relative_gap: float | None = None

    def __post_init__(self) -> None:
        if not self.violation > 0:
            raise ValueError(f"the tolerance on the violation must be above 0, not {self.violation}")
        for name in ("gap", "relative_gap", "max_iterations", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"{name} must be at least 0, not {value}")

    def accepts_gap(self, primal: float, dual: float) -> bool:
        """Whether the gap between a primal and a dual value is small enough."""
        if not (np.isfinite(primal) and np.isfinite(dual)):
            return False
        limits = [] if self.gap is None else [self.gap]
        if self.relative_gap is not None:
            limits.append(self.relative_gap * max(abs(primal), abs(dual)))
        return any(primal - dual <= limit for limit in limits)


class SharedCallback:
    """A callback, or none, for several solves: called by one thread at a time, and a wish to stop holds for all."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.stopped = threading.Event()
        self._lock = threading.Lock()

    def answers_already(self) -> bool:
        """Whether the answer is known without a report: somebody stopped, or nobody listens."""
        return self.callback is None or self.stopped.is_set()

    def __call__(self, progress: Progress) -> bool:
        if self.callback is not None:
            with self._lock:
                if _says_stop(self.callback(progress)):
                    self.stopped.set()
        return self.stopped.is_set()


class Trace:
    """A callback that keeps what it is told, for pictures and tables of the way that a solver took.

    Parameters
    ----------
    interval : float
        Seconds between two entries at least; with 0 a solver tells of every round.
    callback : callable, optional
        Is told the same, and may stop the solver.
    """

    def __init__(self, interval: float = 0.0, callback: Callback | None = None) -> None:
        self.interval = interval
        self.callback = callback
        self.entries: list[Progress] = []

    def __call__(self, progress: Progress) -> bool:
        self.entries.append(progress)
        return self.callback is not None and _says_stop(self.callback(progress))


@dataclass
class Monitor:
    """Watches one solve: the clock, the step count, and the callback's wishes."""

    rule: StoppingRule
    callback: Callback | None = None
    report_every: float = 0.1
    started: float = field(default_factory=time.perf_counter)
    _next_report: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.callback, Trace):
            self.report_every = self.callback.interval

    @property
    def trace(self) -> tuple[Progress, ...]:
        """What a `Trace` was told so far; empty for other callbacks."""
        return tuple(self.callback.entries) if isinstance(self.callback, Trace) else ()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def time_slice(self) -> float:
        """How long a native loop may run before it must come back: Ctrl-C and the clock are heard in between."""
        if self.rule.max_seconds is None:
            return 0.05
        return min(0.05, max(0.0, self.rule.max_seconds - self.seconds))

    def time_left(self) -> float | None:
        """Return the seconds until the limit on time, None if there is none."""
        return None if self.rule.max_seconds is None else max(0.0, self.rule.max_seconds - self.seconds)

    def steps_left(self, iterations: int) -> int | None:
        """Return the steps until the limit on them, None if there is none."""
        return None if self.rule.max_iterations is None else max(0, self.rule.max_iterations - iterations)

    def limit_reached(self, iterations: int) -> Status | None:
        """Return the limit that is used up, if any."""
        if self.rule.max_iterations is not None and iterations >= self.rule.max_iterations:
            return Status.MAX_ITERATIONS
        if self.rule.max_seconds is not None and self.seconds >= self.rule.max_seconds:
            return Status.MAX_SECONDS
        return None

    def report(self, progress: Callable[[], Progress], now: bool = False) -> bool:
        """Tell the callback where the solver stands, at most ten times a second; return whether it wants to stop."""
        if self.callback is None:
            return False
        if isinstance(self.callback, SharedCallback) and self.callback.answers_already():
            return self.callback.stopped.is_set()
        if not now and self.seconds < self._next_report:
            return False
        self._next_report = self.seconds + self.report_every
        return _says_stop(self.callback(progress()))


def _says_stop(answer: object) -> bool:
    return isinstance(answer, bool | np.bool_) and bool(answer)
