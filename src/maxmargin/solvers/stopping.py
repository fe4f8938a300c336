"""When to stop, shared by all solvers, and who is told on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite

import numpy as np

from maxmargin._typing import Floats
from maxmargin.problems import Counters, Progress, Status

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
        if not (isfinite(primal) and isfinite(dual)):
            return False
        if self.gap is not None and primal - dual <= self.gap:
            return True
        return self.relative_gap is not None and primal - dual <= self.relative_gap * max(abs(primal), abs(dual))


class SharedCallback:
    """A callback, or none, for several solves: called by one thread at a time, and a wish to stop holds for all."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.stopped = threading.Event()
        self.finished, self.machines = 0, 1  # of the solves that share it
        self._lock = threading.Lock()

    def begin(self, machines: int) -> None:
        """Tell of so many solves from now on."""
        self.finished, self.machines = 0, machines

    def finish_one(self) -> None:
        """Count a solve that has ended."""
        with self._lock:
            self.finished += 1

    def answers_already(self) -> bool:
        """Whether the answer is known without a report: somebody stopped, or nobody listens."""
        return self.callback is None or self.stopped.is_set()

    def __call__(self, progress: Progress) -> bool:
        if self.callback is not None:
            with self._lock:
                if self.machines > 1:
                    progress = replace(progress, finished=self.finished, machines=self.machines)
                if _says_stop(self.callback(progress)):
                    self.stopped.set()
        return self.stopped.is_set()


class Trace:
    """A callback that keeps what it is told, for pictures and tables of the way that a solver took.

    Values in its entries are those of all variables, shrunk ones included. The clock of the solver stands still while
    they are computed and the trace is told, so that the `seconds` of its entries, and a limit on them, are those of the
    solver alone. A later solve with the same trace is counted on from its last entry. An entry
    that only repeats the one before is left out.

    Parameters
    ----------
    interval : float
        Seconds between two entries at least; with 0 a solver tells of every round.
    callback : callable, optional
        Is told the same, and may stop the solver.
    steps : int, optional
        The most steps between two entries of a solver that takes many at a time: 1 tells of each pair of the pairwise
        solver. By default a twentieth of the steps so far, so that entries are evenly spread on a logarithmic axis.
    points : bool
        Whether each entry keeps a copy of the dual vector as its `point`. The variables that a step has changed are
        those where it differs from the one before.
    """

    def __init__(
        self, interval: float = 0.0, callback: Callback | None = None, steps: int | None = None, points: bool = False
    ) -> None:
        if steps is not None and steps < 1:
            raise ValueError(f"there must be at least 1 step between two entries, not {steps}")
        self.interval, self.callback, self.steps, self.points = interval, callback, steps, points
        self.entries: list[Progress] = []
        self._before = Counters()

    def begin(self) -> None:
        """Count a new solve on from the last entry."""
        if self.entries:
            last = self.entries[-1]
            self._before = Counters(last.iteration, last.kernel_evaluations, seconds=last.seconds)

    def next_entry(self, iterations: int) -> int:
        """Return the number of steps at which the next entry is due."""
        return iterations + (max(1, iterations // 20) if self.steps is None else self.steps)

    def __call__(self, progress: Progress) -> bool:
        progress = replace(
            progress,
            iteration=progress.iteration + self._before.iterations,
            seconds=progress.seconds + self._before.seconds,
            kernel_evaluations=progress.kernel_evaluations + self._before.kernel_evaluations,
        )
        if not self.entries or progress != replace(self.entries[-1], seconds=progress.seconds):
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
    _next_entry: int = 0
    _stopped: bool = False

    def __post_init__(self) -> None:
        listener = self.callback.callback if isinstance(self.callback, SharedCallback) else self.callback
        self._trace = listener if isinstance(listener, Trace) else None
        if self._trace is not None:
            self.report_every = self._trace.interval
            self._trace.begin()

    @property
    def trace(self) -> tuple[Progress, ...]:
        """What a `Trace` was told so far; empty for other callbacks."""
        return () if self._trace is None else tuple(self._trace.entries)

    @property
    def traced(self) -> bool:
        """Whether the callback is a `Trace`: what it is told should be true of all variables, and may take its time."""
        return self._trace is not None

    @property
    def listener(self) -> Callback | None:
        """Who may listen to the solves of other problems on the way: the callback, but a `Trace` does not keep them."""
        return self.callback if self._trace is None else self._trace.callback

    @property
    def seconds(self) -> float:
        """Seconds since the start, without those in which a `Trace` was told."""
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

    def stretch(self, iterations: int, wanted: int) -> int:
        """Return how many of the wanted steps to take at once: fewer if an entry of a `Trace` is due before."""
        return wanted if self._trace is None else min(wanted, max(1, self._next_entry - iterations))

    def copy_for_trace(self, dual: Floats) -> Floats | None:
        """Return a copy of the dual vector if a `Trace` keeps points."""
        return dual.copy() if self._trace is not None and self._trace.points else None

    def begin(self, progress: Callable[[], Progress]) -> None:
        """Tell a `Trace` of the first point; other callbacks are told of what a solver has done."""
        if self._trace is not None:
            self.report(progress, now=True)

    def report(self, progress: Callable[[], Progress], now: bool = False, iterations: int | None = None) -> bool:
        """Tell the callback where the solver stands, at most ten times a second; return whether it wants to stop.

        With `iterations`, a `Trace` is told when an entry is due after so many steps.
        """
        if self.callback is None or self._stopped:
            return self._stopped
        if isinstance(self.callback, SharedCallback) and self.callback.answers_already():
            return self.callback.stopped.is_set()
        if not now and self.seconds < self._next_report:
            return False
        if self._trace is None:
            self._next_report = self.seconds + self.report_every
            return _says_stop(self.callback(progress()))
        if not now and iterations is not None and iterations < self._next_entry:
            return False
        return self._tell(self._trace, progress)

    def _tell(self, trace: Trace, progress: Callable[[], Progress]) -> bool:
        """Tell a `Trace` while the clock stands still."""
        assert self.callback is not None
        began = time.perf_counter()
        self._next_report = began - self.started + self.report_every
        try:
            told = replace(progress(), seconds=began - self.started)
            self._next_entry = trace.next_entry(told.iteration)
            self._stopped = _says_stop(self.callback(told))
        finally:
            self.started += time.perf_counter() - began
        return self._stopped


def _says_stop(answer: object) -> bool:
    return isinstance(answer, bool | np.bool_) and bool(answer)
