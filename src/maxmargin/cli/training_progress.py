"""Train an estimator with a progress bar on the terminal, and report how the training ended.

The time that a fit needs is not known in advance. The violation decreases about geometrically, so the fraction done is
measured on the logarithmic scale from the initial violation to the tolerance, and the remaining time is extrapolated
from the decrease over the second half of the elapsed time. Of several problems the finished ones are counted.
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
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.progress import Progress as RichProgress
from rich.text import Text

from maxmargin.cli.estimator_options import name_of, task_of
from maxmargin.cli.output import Output
from maxmargin.datasets import Samples
from maxmargin.problems import Progress

#: Seconds after which a progress bar or spinner appears.
DISPLAY_DELAY = 1.0

#: An estimate of the remaining time needs this many seconds of progress reports, and a decrease of this many decades
#: in their second half.
MIN_SECONDS, MIN_DECREASE = 2.0, 0.05

#: If the number of active variables grows by more than this factor, the solver works on another problem.
NEW_PROBLEM_FACTOR = 2.0


class ProgressEstimate:
    """Fraction done and remaining time of a fit, estimated from the reports of its solver.

    Parameters
    ----------
    tolerance : float
        Tolerance on the violation, or of linear models on the relative gap.
    linear : bool
        Whether it is a tolerance on the relative gap.
    samples : int
        Number of samples. Problems of much fewer variables are auxiliary ones, which say nothing about the whole fit.
    """

    def __init__(self, tolerance: float, linear: bool = False, samples: int = 0) -> None:
        self.tolerance, self.linear, self.samples = tolerance, linear, samples
        self._history: list[tuple[float, float]] = []  # times, and the least distances to the tolerance in decades
        self._size = 0  # variables of the problem to which the history belongs
        self._last: Progress | None = None
        self._started = self._now = 0.0

    def update(self, progress: Progress, now: float) -> None:
        """Add a report of the solver at the time `now`."""
        before, self._last, self._now = self._last, progress, now
        if before is None:
            self._started = now
        if before is None or progress.iteration < before.iteration or progress.active > NEW_PROBLEM_FACTOR * self._size:
            self._history, self._size = [], progress.active
        decades = self._decades(progress)
        if decades is not None:
            least = self._history[-1][1] if self._history else decades
            self._history.append((now, min(least, decades)))

    def _decades(self, progress: Progress) -> float | None:
        """Return the distance to the tolerance in powers of ten."""
        scale = max(abs(progress.primal), abs(progress.dual), 1e-300)
        value = progress.gap / scale if self.linear else progress.violation
        return math.log10(max(1.0, value / self.tolerance)) if math.isfinite(value) else None

    @property
    def is_auxiliary(self) -> bool:
        """Whether the solver works on a subset of the samples, for a start or for cross-validation."""
        return not self.linear and NEW_PROBLEM_FACTOR * self._size < self.samples

    @property
    def fraction_done(self) -> float:
        """The fraction done, between 0 and 1."""
        if self._last is not None and self._last.problems > 1:
            return self._last.finished / self._last.problems
        if self.is_auxiliary or not self._history or self._history[0][1] == 0:
            return 0.0
        return 1.0 - self._history[-1][1] / self._history[0][1]

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining time; None if there is no basis for an estimate."""
        if self._last is not None and self._last.problems > 1:
            finished, elapsed = self._last.finished, self._now - self._started
            return elapsed * (self._last.problems - finished) / finished if finished else None
        if self.is_auxiliary or not self._history or self._now - self._history[0][0] < MIN_SECONDS:
            return None
        now, left = self._history[-1]
        half = 0.5 * (self._history[0][0] + now)
        since, before = next(entry for entry in self._history if entry[0] >= half)
        decrease = before - left
        return left * (now - since) / decrease if decrease >= MIN_DECREASE else None


class _ElapsedColumn(ProgressColumn):
    """The elapsed time, which also advances between the reports of a solver."""

    def __init__(self, started: float) -> None:
        super().__init__()
        self.started = started

    def render(self, task: Task) -> Text:
        return Text(f" {format_duration(perf_counter() - self.started)},")


class TrainingProgressBar:
    """Estimator callback that draws a progress bar on a terminal once a fit takes longer than a second."""

    def __init__(
        self,
        console: Console,
        estimate: ProgressEstimate,
        max_seconds: float | None = None,
        shown: bool = True,
        title: str = "training",
    ) -> None:
        self.console, self.estimate, self.max_seconds, self.title = console, estimate, max_seconds, title
        self.shown = shown and console.is_terminal
        self.started = perf_counter()
        self._bar: RichProgress | None = None

    def __call__(self, progress: Progress) -> None:
        now = perf_counter()
        self.estimate.update(progress, now)
        if not self.shown or now - self.started < DISPLAY_DELAY:
            return
        title = self.title if progress.problems == 1 else f"{self.title} {progress.finished}/{progress.problems}"
        if progress.problems == 1 and self.estimate.is_auxiliary:
            title += " (subset)"
        fields: dict[str, Any] = {
            "description": title,
            "completed": self.estimate.fraction_done,
            "state": _state(progress),
            "left": self._left(now),
        }
        if self._bar is None:
            self._bar = RichProgress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[state]}"),
                _ElapsedColumn(self.started),
                TextColumn("left: {task.fields[left]}"),
                console=self.console,
                transient=True,
                expand=True,
            )
            self._bar.add_task(total=1.0, **fields)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], **fields)

    def _left(self, now: float) -> str:
        left = self.estimate.seconds_left
        limit = None if self.max_seconds is None else max(0.0, self.max_seconds - (now - self.started))
        if left is not None:
            return format_duration(left if limit is None else min(left, limit))
        return "unknown" if limit is None else f"≤ {format_duration(limit)}"

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def format_duration(seconds: float) -> str:
    """Return seconds as 0:42, 12:05, 3:04:05, or 2 days."""
    if seconds >= 2 * 86400:
        return f"{seconds / 86400:.0f} days"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


@contextmanager
def spinner(console: Console, text: str, shown: bool = True) -> Iterator[None]:
    """Show a spinner with a text on a terminal, once the block takes longer than a second."""
    status = console.status(Text(text))  # a Text, because file names may contain markup
    timer = Timer(DISPLAY_DELAY, status.start)
    timer.daemon = True
    if shown and console.is_terminal:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.is_alive():  # it may be starting the spinner at this moment
            timer.join()
        status.stop()


def _state(progress: Progress) -> str:
    """Return violation and gap; of passes over blocks, how many there were and how fast they are."""
    if math.isfinite(progress.violation):
        return f"violation {progress.violation:.1e}  gap {progress.gap:.1e}"
    speed = progress.iteration * progress.active / max(progress.seconds, 1e-9)
    return f"{progress.iteration} passes, {speed:,.0f} rows/s  gap {progress.gap:.1e}"


@dataclass
class FitOutcome:
    """How a fit ended.

    Attributes
    ----------
    seconds : float
    interrupted : bool
        Whether Ctrl-C ended it.
    limited : bool
        Whether a limit set by the user ended it.
    unconverged : str or None
        Why the tolerance was not reached, in a sentence.
    remarks : list of str
        Other warnings of the estimator.
    """

    seconds: float = 0.0
    interrupted: bool = False
    limited: bool = False
    unconverged: str | None = None
    remarks: list[str] = field(default_factory=list)


def fit(model: Any, arguments: tuple[Any, ...], bar: TrainingProgressBar) -> FitOutcome:
    """Fit a model with a progress bar; after Ctrl-C the unfinished model is kept, if there is one."""
    from sklearn.exceptions import ConvergenceWarning

    from maxmargin.problems import Status

    outcome = FitOutcome()
    model.set_params(callback=bar)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model.fit(*arguments)
        except KeyboardInterrupt:
            if not hasattr(model, "status_"):
                raise
            outcome.interrupted = True
        finally:
            bar.close()
            model.set_params(callback=None)
    outcome.seconds = perf_counter() - bar.started
    statuses = model.status_ if isinstance(model.status_, list) else [model.status_]
    limits = Status.MAX_ITERATIONS, Status.MAX_SECONDS, Status.SLOW
    outcome.limited = any(status in limits for status in statuses)
    outcome.unconverged = next((status.value for status in statuses if not status.converged), None)
    for warning in caught:
        about_limits = issubclass(warning.category, ConvergenceWarning)
        if about_limits and outcome.unconverged is None:
            outcome.limited = True  # a limit of the cross-validation, which is not part of the status
        if not about_limits or outcome.unconverged is None:
            outcome.remarks.append(str(warning.message))
    return outcome


def train(
    model: Any, samples: Samples, output: Output, max_seconds: float | None = None, title: str = "training"
) -> FitOutcome:
    """Fit a model to samples, with a progress bar on a terminal."""
    from maxmargin.machines.kernel.kernel_estimator import KernelEstimator

    # The tolerance of estimators without a kernel matrix is the relative gap.
    estimate = ProgressEstimate(model.tol, not isinstance(model, KernelEstimator), len(samples))
    bar = TrainingProgressBar(output.errors, estimate, max_seconds, not output.quiet, title)
    return fit(model, fit_arguments(model, samples), bar)


def fit_arguments(model: Any, samples: Samples) -> tuple[Any, ...]:
    """Return the arguments of `fit` for an estimator, or raise if the data do not have them."""
    name, task = name_of(model), task_of(model)
    if task == "novelty":
        return (samples.X,)
    if samples.y is None:
        raise ValueError(f"{samples.name} has no labels, which {name} needs; --estimator one-class needs none")
    if task != "classification" and samples.y.dtype.kind not in "biuf":
        raise ValueError(f"the labels of {samples.name} are text, and {name} needs numbers")
    if task == "ranking":
        return samples.X, samples.y, samples.query
    return samples.X, samples.y
