"""The time limit of a fit: one deadline, set where the fit begins and checked between two calls of the native loops.

A fit puts its deadline in force (``with deadline.in_force():``) while it trains. Loops over long computations call
`check_deadline` before each slice of work, at every level down to the kernel values; once the deadline has passed, it
raises `TimeLimitReachedError`, which solvers treat like Ctrl-C: they return the last consistent point. Slices are short
(tens of milliseconds), and their sizes never depend on the deadline, so that a limit that is not reached changes
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter


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


_in_force: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def check_deadline() -> None:
    """Raise `TimeLimitReachedError` if a deadline is in force and has passed."""
    deadline = _in_force.get()
    if deadline is not None and deadline.at is not None and perf_counter() >= deadline.at:
        raise TimeLimitReachedError


def postpone_deadline(seconds: float) -> None:
    """Postpone the deadline in force, if there is one."""
    deadline = _in_force.get()
    if deadline is not None:
        deadline.postpone(seconds)
