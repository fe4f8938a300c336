"""What a solver returns: a point, how it ended, and what it cost. Whether it is optimal is for `certify` to say."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from maxmargin._typing import Floats


class Status(Enum):
    """How a solver ended. The value is the sentence a user reads."""

    CONVERGED = "the stopping tolerance was reached"
    MAX_ITERATIONS = "the limit on iterations was reached; raise max_iter to go on"
    MAX_SECONDS = "the time limit was reached; raise max_seconds to go on"
    STOPPED = "the callback asked to stop"
    INTERRUPTED = "the fit was interrupted"
    PRECISION = (
        "the tolerance is finer than double precision can resolve on these data; "
        "scale the features (for example with StandardScaler), lower C, or raise tol"
    )
    UNBOUNDED = "the dual grows without limit: the problem has no solution"

    @property
    def converged(self) -> bool:
        """Whether the solver claims to have reached its tolerance."""
        return self is Status.CONVERGED


@dataclass(frozen=True)
class Counters:
    """What a solve cost."""

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
    """Where a solver stands; what a callback sees.

    While variables are shrunk away, `primal` counts the samples in play and takes the others as settled, unless the
    callback is a `maxmargin.solvers.Trace`. `point` is the dual vector, if it is one that keeps points. A solve may be
    one of several `problems`, some of which have `finished`.
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
    """A dual vector and how it came about.

    `weights` are those of a linear machine, where its solver has better ones than the dual vector stands for; then the
    gradient of the dual vector may be missing, which nobody needs and takes two passes over the data. `trace` is the
    way there, if the callback was a `maxmargin.solvers.Trace`.
    """

    dual: Floats
    gradient: Floats | None
    status: Status
    counters: Counters
    weights: Floats | None = None
    trace: tuple[Progress, ...] = ()
