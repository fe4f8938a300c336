"""The result of a solver: a point, how the solve ended, and its cost. `certify` verifies whether it is optimal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from maxmargin._typing import Floats


class Status(Enum):
    """How a solve ended. The value is the sentence that a user reads."""

    CONVERGED = "the stopping tolerance was reached"
    STATIONARY = (
        "a stationary point of a problem that is not convex: no step of the method improves it, but another point may "
        "be better; the certificate is that of the last convex problem, whose tolerance was reached"
    )
    MAX_ITERATIONS = "the limit on iterations was reached; raise max_iter to go on"
    MAX_SECONDS = "the time limit was reached; raise max_seconds to go on"
    STOPPED = "the callback asked to stop"
    INTERRUPTED = "the fit was interrupted"
    PRECISION = (
        "the tolerance is finer than double precision can resolve on these data; "
        "scale the features (for example with StandardScaler), lower C, or raise tol"
    )
    SLOW = (
        "the solver converges too slowly on these data; use solver='auto', scale the features (for example with "
        "StandardScaler), lower C, or set max_iter to go on"
    )
    UNBOUNDED = "the dual is unbounded: the problem has no solution"

    @property
    def converged(self) -> bool:
        """Whether the solver reports that its tolerance was reached."""
        return self in (Status.CONVERGED, Status.STATIONARY)


@dataclass(frozen=True)
class Counters:
    """The cost of a solve."""

    iterations: int = 0
    kernel_evaluations: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    rounds: int = 0
    seconds: float = 0.0

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            self.iterations + other.iterations,
            self.kernel_evaluations + other.kernel_evaluations,
            self.cache_hits + other.cache_hits,
            self.cache_misses + other.cache_misses,
            self.rounds + other.rounds,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class Progress:
    """The progress report of a solver, passed to callbacks.

    While variables are shrunk, `primal` covers the active ones and counts the others as optimal, unless the callback is
    a `maxmargin.solvers.Trace`. `point` is the dual vector, if that keeps points. The solve may be one of several
    `problems`, of which `finished` have ended.
    """

    iteration: int
    violation: float
    primal: float
    dual: float
    active: int
    seconds: float
    kernel_evaluations: int = 0
    support_vectors: int = 0
    point: Floats | None = field(default=None, repr=False, compare=False)
    finished: int = 0
    problems: int = 1

    @property
    def gap(self) -> float:
        """The duality gap at this point."""
        return self.primal - self.dual


@dataclass(frozen=True)
class Solution:
    """A dual vector, its gradient, how the solve ended, and its cost.

    `weights` are those of a solver for the linear kernel, if they are better than those of the dual vector; then the
    gradient, which would take two passes over the data, may be None. Where a limit ended the solve, entries of the
    gradient that were not known are infinite, or the whole is None; `value` is the dual value that the solver kept
    count of, None where it did not. `trace` has the entries of a `maxmargin.solvers.Trace`, if the callback was one.
    """

    dual: Floats
    gradient: Floats | None
    status: Status
    counters: Counters
    weights: Floats | None = None
    trace: tuple[Progress, ...] = ()
    value: float | None = None
