"""Progress reports and limits of a running solver.

A monitor only observes: it reads the clock, the iteration count and copies of the solver's state, and never changes the
sequence of steps. A callback or a limit that does not stop the solver leaves its result the same bit for bit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from maxmargin._typing import Floats
from maxmargin.deadline import TimeLimitReachedError, postpone_deadline
from maxmargin.problems import Counters, Progress, Status
from maxmargin.solvers.recorder import RecordedCallback, Recorder
from maxmargin.solvers.stopping import Callback, StoppingRule, requests_stop
from maxmargin.solvers.trace import Trace

#: Seconds between two progress reports.
REPORT_INTERVAL = 0.1

#: Seconds that a native loop may run before it returns to Python, which handles Ctrl-C, limits and reports in between.
TIME_SLICE = 0.05


#: What ends a solver from outside, between any two of its operations.
Interruption = (KeyboardInterrupt, TimeLimitReachedError)


def status_of(interruption: BaseException) -> Status:
    """Return how a solve ended that was ended by Ctrl-C or the deadline in force."""
    return Status.MAX_SECONDS if isinstance(interruption, TimeLimitReachedError) else Status.INTERRUPTED


class SolverStoppedError(Exception):
    """Ends a solver from within its steps: a limit was reached, the callback requested a stop, or it cannot proceed."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


class SharedCallback:
    """A callback, or none, for several solves: one thread calls it at a time, and a requested stop holds for all."""

    def __init__(self, callback: Callback | None) -> None:
        self.callback = callback
        self.stopped = threading.Event()
        self.finished, self.problems = 0, 1
        self._lock = threading.Lock()

    def begin(self, problems: int, finished: int = 0) -> None:
        """Announce the number of problems, and how many of them are solved already."""
        self.finished, self.problems = finished, problems

    def count_finished(self) -> None:
        """Count a problem whose solve has ended."""
        with self._lock:
            self.finished += 1

    def needs_no_report(self) -> bool:
        """Return whether a report can be skipped: there is no callback, or it has requested a stop already."""
        return self.callback is None or self.stopped.is_set()

    def __call__(self, progress: Progress) -> bool:
        if self.callback is not None:
            with self._lock:
                if self.problems > 1:
                    progress = replace(progress, finished=self.finished, problems=self.problems)
                if requests_stop(self.callback(progress)):
                    self.stopped.set()
        return self.stopped.is_set()


@dataclass
class Monitor:
    """Clock, limits and callback of one solve."""

    rule: StoppingRule
    callback: Callback | None = None
    report_every: float = field(default_factory=lambda: REPORT_INTERVAL)
    started: float = field(default_factory=lambda: time.perf_counter())  # of the module: tests replace its clock
    _next_report: float = 0.0
    _next_entry: int = 0
    _stopped: bool = False
    _recording: bool = False

    def __post_init__(self) -> None:
        self.recorder = Recorder()
        if isinstance(recorded := self.callback, RecordedCallback):
            self.callback, self.recorder = recorded.callback, recorded.recorder
        callback = self.callback.callback if isinstance(self.callback, SharedCallback) else self.callback
        self._trace = callback if isinstance(callback, Trace) else None
        if self._trace is not None:
            self.report_every = self._trace.interval
            self._trace.begin()

    @property
    def trace(self) -> tuple[Progress, ...]:
        """The entries of a `Trace` so far; empty for other callbacks."""
        return () if self._trace is None else tuple(self._trace.entries)

    @property
    def traced(self) -> bool:
        """Whether the callback is a `Trace`: its entries cover all variables, and their cost is not counted."""
        return self._trace is not None

    @property
    def nested_callback(self) -> Callback | None:
        """The callback for solves of other, smaller problems on the way, which a `Trace` does not record."""
        return self.callback if self._trace is None else self._trace.callback

    @property
    def seconds(self) -> float:
        """Seconds since the start, without the time spent on a `Trace`."""
        return time.perf_counter() - self.started

    def time_slice(self) -> float:
        """Return the seconds that a native loop may run before it must return."""
        left = self.seconds_left()
        return TIME_SLICE if left is None else min(TIME_SLICE, left)

    def seconds_left(self) -> float | None:
        """Return the seconds until the time limit, None if there is none."""
        return None if self.rule.max_seconds is None else max(0.0, self.rule.max_seconds - self.seconds)

    def iterations_left(self, iterations: int) -> int | None:
        """Return the number of iterations until the limit, None if there is none."""
        return None if self.rule.max_iterations is None else max(0, self.rule.max_iterations - iterations)

    def limit_reached(self, iterations: int) -> Status | None:
        """Return the status of the limit that is reached, None if there is none."""
        if self.rule.max_iterations is not None and iterations >= self.rule.max_iterations:
            return Status.MAX_ITERATIONS
        if self.rule.max_seconds is not None and self.seconds >= self.rule.max_seconds:
            return Status.MAX_SECONDS
        return None

    def is_slow(self, steps: int, limit: int) -> bool:
        """Return whether a solver has reached its own limit on steps, which holds unless the user has set one."""
        return self.rule.max_iterations is None and steps >= limit

    def next_steps(self, iterations: int, wanted: int) -> int:
        """Return how many of the wanted steps to take before the iteration limit or the next entry of a `Trace`."""
        left = self.iterations_left(iterations)
        wanted = wanted if left is None else min(wanted, left)
        return wanted if self._trace is None else min(wanted, max(1, self._next_entry - iterations))

    def copy_point(self, dual: Floats, start: Floats | None = None) -> Floats | None:
        """Return a copy of the dual vector if a `Trace` or the recorder keeps points.

        The recorder keeps `start` if the solver starts from something else than the dual vector of its reports.
        """
        if self._recording:
            return (dual if start is None else start).copy()
        return dual.copy() if self._trace is not None and self._trace.points else None

    def report_start(self, progress: Callable[[], Progress]) -> None:
        """Report the starting point to a `Trace`; other callbacks receive their first report later."""
        if self._trace is not None:
            self.report(progress, now=True)

    def check(self, progress: Callable[[], Progress], iterations: int) -> None:
        """Report progress if a report is due; raise `SolverStoppedError` at a limit or if the callback requests it."""
        if (status := self.limit_reached(iterations)) is not None:
            raise SolverStoppedError(status)
        if self.report(progress, iterations=iterations):
            raise SolverStoppedError(Status.STOPPED)

    def report(self, progress: Callable[[], Progress], now: bool = False, iterations: int | None = None) -> bool:
        """Call the callback if a report is due, or `now`; return whether it requests a stop.

        With `iterations`, a `Trace` is called when an entry is due after so many steps.
        """
        if self.recorder.is_due():
            self._record_point(progress)
        if self.callback is None or self._stopped:
            return self._stopped
        if isinstance(self.callback, SharedCallback) and self.callback.needs_no_report():
            return self.callback.stopped.is_set()
        if not now and self.seconds < self._next_report:
            return False
        if self._trace is None:
            self._next_report = self.seconds + self.report_every
            return requests_stop(self.callback(progress()))
        if not now and iterations is not None and iterations < self._next_entry:
            return False
        return self._record(self._trace, progress)

    def _record_point(self, progress: Callable[[], Progress]) -> None:
        """Record the point of a progress report."""
        self._recording = True
        try:
            report = progress()
        finally:
            self._recording = False
        if report.point is not None:
            cost = Counters(report.iteration, report.kernel_evaluations, seconds=report.seconds)
            self.recorder.record(report.point, cost)

    def _record(self, trace: Trace, progress: Callable[[], Progress]) -> bool:
        """Call a `Trace` with the clock stopped."""
        assert self.callback is not None
        began = time.perf_counter()
        self._next_report = began - self.started + self.report_every
        try:
            entry = replace(progress(), seconds=began - self.started)
            self._next_entry = trace.next_entry(entry.iteration)
            self._stopped = requests_stop(self.callback(entry))
        finally:
            spent = time.perf_counter() - began
            self.started += spent
            postpone_deadline(spent)
        return self._stopped
