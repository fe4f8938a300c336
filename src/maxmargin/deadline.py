"""The time limit of a fit: one deadline, set where the fit begins and checked between two calls of the native loops.

A fit puts its deadline in force (``with deadline.in_force():``) while it trains. Loops over long computations call
`check_deadline` before each slice of work, at every level down to the kernel values; once the deadline has passed, it
raises `TimeLimitReachedError`, which solvers treat like Ctrl-C: they return the last consistent point. Slices are short
(tens of milliseconds), and their sizes never depend on the deadline, so that a limit that is not reached changes
nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from time import perf_counter
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class TimeLimitReachedError(Exception):
    """The deadline in force has passed."""

    def __init__(self) -> None:
        super().__init__("the time limit was reached")


class Deadline:
    """A point in time, or none.

    Attributes
    ----------
    at : float or None
        A reading of ``time.perf_counter``; None if there is no limit.
    """

    def __init__(self, at: float | None = None) -> None:
        self.at = at

    @classmethod
    def after(cls, seconds: float | None, started: float | None = None) -> Deadline:
        """Return the deadline so many seconds after a reading of ``time.perf_counter``, by default now.

        A deadline that is in force and earlier holds instead: a fit within a search ends with the search.
        """
        outer = _in_force.get()
        if seconds is None:
            return Deadline() if outer is None else outer
        at = (perf_counter() if started is None else started) + seconds
        return Deadline(at) if outer is None or outer.at is None or at <= outer.at else outer

    @property
    def reached(self) -> bool:
        """Whether the deadline has passed."""
        return self.at is not None and perf_counter() >= self.at

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, at least 0; None if there is none."""
        return None if self.at is None else max(0.0, self.at - perf_counter())

    def before(self, seconds: float) -> Deadline:
        """Return a deadline that is earlier by so many seconds, which it leaves for what follows."""
        return self if self.at is None or not seconds > 0 else _EarlierDeadline(self, seconds)

    def postpone(self, seconds: float) -> None:
        """Move the deadline: the time of a `maxmargin.solvers.Trace` does not count."""
        if self.at is not None:
            self.at += seconds

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Let `check_deadline` raise in this thread once the deadline has passed, until the context ends."""
        token = _in_force.set(self)
        try:
            yield
        finally:
            _in_force.reset(token)


class _EarlierDeadline(Deadline):
    """A deadline before another one; to postpone it postpones both."""

    def __init__(self, end: Deadline, seconds: float) -> None:
        assert end.at is not None
        super().__init__(end.at - seconds)
        self._end = end

    def postpone(self, seconds: float) -> None:
        super().postpone(seconds)
        self._end.postpone(seconds)


_in_force: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def check_deadline() -> None:
    """Raise `TimeLimitReachedError` if a deadline is in force and has passed."""
    deadline = _in_force.get()
    if deadline is not None and deadline.at is not None and perf_counter() >= deadline.at:
        raise TimeLimitReachedError


def seconds_until_deadline() -> float:
    """Return the seconds until the deadline in force, at least 0; infinity if there is none."""
    deadline = _in_force.get()
    left = None if deadline is None else deadline.seconds_left()
    return math.inf if left is None else left


def require_seconds(seconds: float) -> None:
    """Raise `TimeLimitReachedError` if a deadline is in force and fewer seconds are left."""
    if seconds_until_deadline() < seconds:
        raise TimeLimitReachedError


def until_deadline(compute: Callable[[], Result]) -> Result:
    """Return ``compute()``, one long call of NumPy that cannot be divided into slices.

    With a deadline in force it runs in another thread, and is left to end there, unused, if the deadline passes first.
    It must release the interpreter lock, as products and factorisations of NumPy do and those of SciPy do not.
    """
    left = seconds_until_deadline()
    if left == math.inf:
        return compute()
    check_deadline()
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(compute())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=copy_context().run, args=(run,), daemon=True).start()
    try:
        return future.result(left)
    except FutureTimeoutError:
        raise TimeLimitReachedError from None


def inheriting_deadline(task: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
    """Return the task for other threads, with the deadline in force in this one."""
    deadline = _in_force.get()
    if deadline is None:
        return task

    def run(argument: Argument) -> Result:
        with deadline.in_force():
            return task(argument)

    return run


def postpone_deadline(seconds: float) -> None:
    """Postpone the deadline in force, if there is one."""
    deadline = _in_force.get()
    if deadline is not None:
        deadline.postpone(seconds)
