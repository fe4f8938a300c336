"""A fit on a terminal: a bar with violation, gap and time left; what became of it when Ctrl-C or a limit ended it.

How long a fit will take nobody knows. The violation falls about geometrically, so its logarithm on the way from where
it began to the tolerance is how far a fit is, and its fall over the second half of the time so far says how long the
rest takes. Of several machines, those that have finished are counted.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Timer
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from maxmargin.cli.machine_options import name_of, purpose_of
from maxmargin.cli.output import Output
from maxmargin.datasets import Samples
from maxmargin.problems import Progress as Report

#: What takes less is not shown.
WORTH_SHOWING = 1.0

#: An estimate of the time left needs reports of so many seconds, and a fall of so many decades in their second half.
LEAST_SECONDS, LEAST_FALL = 2.0, 0.05

#: A solver that works on so many times more variables than before has begun with another problem.
JUMP = 2.0


class Outlook:
    """How far a fit is and how long it may still take, from what its solver reports.

    Parameters
    ----------
    tolerance : float
        The violation that ends it, or for a linear machine the gap relative to the optimum.
    linear : bool
        Which of the two it is.
    samples : int
        How many there are: a problem of much fewer variables is solved on the way, and says nothing of the whole.
    """

    def __init__(self, tolerance: float, linear: bool = False, samples: int = 0) -> None:
        self.tolerance, self.linear, self.samples = tolerance, linear, samples
        self._history: list[tuple[float, float]] = []  # seconds, and the least decades to go until then
        self._size = 0  # variables of the problem that the history is about
        self._last: Report | None = None
        self._began = self._now = 0.0

    def hear(self, report: Report, now: float) -> None:
        """Take a report into account; `now` is a reading of a clock."""
        before, self._last, self._now = self._last, report, now
        if before is None:
            self._began = now
        if before is None or report.iteration < before.iteration or report.active > JUMP * self._size:
            self._history, self._size = [], report.active  # another problem
        decades = self._decades(report)
        if decades is not None:
            least = self._history[-1][1] if self._history else decades
            self._history.append((now, min(least, decades)))

    def _decades(self, report: Report) -> float | None:
        """Return how many powers of ten lie between a point and the tolerance."""
        size = max(abs(report.primal), abs(report.dual), 1e-300)
        measure = report.gap / size if self.linear else report.violation
        return math.log10(max(1.0, measure / self.tolerance)) if math.isfinite(measure) else None

    @property
    def in_part(self) -> bool:
        """Whether the solver works on a part of the data, to find a start or to hold others out."""
        return not self.linear and JUMP * self._size < self.samples

    @property
    def done(self) -> float:
        """The part that is done, between 0 and 1."""
        if self._last is not None and self._last.problems > 1:
            return self._last.finished / self._last.problems
        if self.in_part or not self._history or self._history[0][1] == 0:
            return 0.0
        return 1.0 - self._history[-1][1] / self._history[0][1]

    @property
    def seconds_left(self) -> float | None:
        """The seconds that may be left, None if nobody can tell."""
        if self._last is not None and self._last.problems > 1:
            finished, elapsed = self._last.finished, self._now - self._began
            return elapsed * (self._last.problems - finished) / finished if finished else None
        if self.in_part or not self._history or self._now - self._history[0][0] < LEAST_SECONDS:
            return None
        now, left = self._history[-1]
        half = 0.5 * (self._history[0][0] + now)
        since, before = next(entry for entry in self._history if entry[0] >= half)
        fall = before - left
        return left * (now - since) / fall if fall >= LEAST_FALL else None


class _Clock(ProgressColumn):
    """The time since the beginning, which goes on while a solver is silent."""

    def __init__(self, started: float) -> None:
        super().__init__()
        self.started = started

    def render(self, task: Task) -> Text:
        return Text(f" {clock(perf_counter() - self.started)},")


class TrainingBar:
    """A callback for estimators that draws a bar on a terminal once a fit takes longer than a second."""

    def __init__(
        self,
        console: Console,
        outlook: Outlook,
        max_seconds: float | None = None,
        shown: bool = True,
        what: str = "training",
    ) -> None:
        self.console, self.outlook, self.max_seconds, self.what = console, outlook, max_seconds, what
        self.shown = shown and console.is_terminal
        self.started = perf_counter()
        self._bar: Progress | None = None

    def __call__(self, report: Report) -> None:
        now = perf_counter()
        self.outlook.hear(report, now)
        if not self.shown or now - self.started < WORTH_SHOWING:
            return
        which = self.what if report.problems == 1 else f"{self.what} {report.finished}/{report.problems}"
        if report.problems == 1 and self.outlook.in_part:
            which += ", a part"
        shown: dict[str, Any] = {
            "description": which,
            "completed": self.outlook.done,
            "state": f"violation {report.violation:.1e}  gap {report.gap:.1e}",
            "left": self._left(now),
        }
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),  # what the words leave of the line
                TextColumn("{task.fields[state]}"),
                _Clock(self.started),
                TextColumn("left: {task.fields[left]}"),
                console=self.console,
                transient=True,
                expand=True,
            )
            self._bar.add_task(total=1.0, **shown)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], **shown)

    def _left(self, now: float) -> str:
        left = self.outlook.seconds_left
        limit = None if self.max_seconds is None else max(0.0, self.max_seconds - (now - self.started))
        if left is not None:
            return clock(left if limit is None else min(left, limit))
        return "unknown" if limit is None else f"≤ {clock(limit)}"

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def clock(seconds: float) -> str:
    """Return seconds as people read them: 0:42, 12:05, 3:04:05, or 2 days."""
    if seconds >= 2 * 86400:
        return f"{seconds / 86400:.0f} days"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


@contextmanager
def spinner(console: Console, text: str, shown: bool = True) -> Iterator[None]:
    """Show on a terminal what is going on, once it takes longer than a second."""
    status = console.status(Text(text))  # names of files are no markup
    timer = Timer(WORTH_SHOWING, status.start)
    timer.daemon = True
    if shown and console.is_terminal:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.is_alive():  # it may be drawing right now
            timer.join()
        status.stop()


@dataclass
class Ending:
    """How a fit ended.

    Attributes
    ----------
    seconds : float
    interrupted : bool
        By Ctrl-C.
    limited : bool
        By a limit that the user has set.
    unfinished : str or None
        Why the tolerance was not reached, in a sentence.
    remarks : list of str
        What else the estimator had to say.
    """

    seconds: float = 0.0
    interrupted: bool = False
    limited: bool = False
    unfinished: str | None = None
    remarks: list[str] = field(default_factory=list)


def fit_watched(model: Any, arguments: tuple[Any, ...], bar: TrainingBar) -> Ending:
    """Fit a model while a bar watches; an interrupted one is kept if there is something to keep."""
    from sklearn.exceptions import ConvergenceWarning

    from maxmargin.problems import Status

    ending = Ending()
    model.set_params(callback=bar)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model.fit(*arguments)
        except KeyboardInterrupt:
            if not hasattr(model, "status_"):
                raise
            ending.interrupted = True
        finally:
            bar.close()
            model.set_params(callback=None)
    ending.seconds = perf_counter() - bar.started
    statuses = model.status_ if isinstance(model.status_, list) else [model.status_]
    ending.limited = any(status in (Status.MAX_ITERATIONS, Status.MAX_SECONDS) for status in statuses)
    ending.unfinished = next((status.value for status in statuses if not status.converged), None)
    for warning in said:
        about_limits = issubclass(warning.category, ConvergenceWarning)
        if about_limits and ending.unfinished is None:
            ending.limited = True  # in cross-validation, which no status tells
        if not about_limits or ending.unfinished is None:
            ending.remarks.append(str(warning.message))
    return ending


def train_watched(
    model: Any, samples: Samples, output: Output, max_seconds: float | None = None, what: str = "training"
) -> Ending:
    """Fit a model to samples; on a terminal a bar shows how it comes along."""
    from maxmargin.estimators.kernel.kernel_estimator import KernelEstimator

    # Machines without a kernel matrix take the gap relative to the optimum for their tolerance.
    outlook = Outlook(model.tol, not isinstance(model, KernelEstimator), len(samples))
    bar = TrainingBar(output.errors, outlook, max_seconds, not output.quiet, what)
    return fit_watched(model, fit_arguments(model, samples), bar)


def fit_arguments(model: Any, samples: Samples) -> tuple[Any, ...]:
    """Return what the machine is fitted to, or raise if the data lack something."""
    name, purpose = name_of(model), purpose_of(model)
    if purpose == "novelty":
        return (samples.X,)
    if samples.y is None:
        raise ValueError(f"{samples.name} has no labels, which {name} needs; --machine one-class does without")
    if purpose != "classification" and samples.y.dtype.kind not in "biuf":
        raise ValueError(f"the labels of {samples.name} are words, and {name} needs numbers")
    if purpose == "ranking":
        return samples.X, samples.y, samples.query
    return samples.X, samples.y
