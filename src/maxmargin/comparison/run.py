"""What became of one solver in a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from maxmargin.problems import Certificate, Counters, Progress, Status
from maxmargin.solvers import StoppingRule

#: How a run ended, in a word or two.
WORDS = {
    Status.CONVERGED: "converged",
    Status.MAX_ITERATIONS: "iteration limit",
    Status.MAX_SECONDS: "time limit",
    Status.STOPPED: "stopped",
    Status.INTERRUPTED: "interrupted",
    Status.PRECISION: "precision",
    Status.UNBOUNDED: "unbounded",
}

#: Two computations of a violation may differ by this part.
VIOLATION_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Run:
    """One solver's run.

    Attributes
    ----------
    label : str
    status : Status or None
        How the solver ended; None if it did not come to an end.
    failure : str
        Why not; empty if it did.
    counters : Counters
        What it cost.
    certificate : Certificate or None
        What the judge says of its answer.
    support_vectors : int
    trace : tuple of Progress
        The way there.
    rule : StoppingRule
        What was asked for.
    """

    label: str
    rule: StoppingRule = field(repr=False)
    status: Status | None = None
    failure: str = ""
    counters: Counters = field(default_factory=Counters)
    certificate: Certificate | None = None
    support_vectors: int = 0
    trace: tuple[Progress, ...] = field(default=(), repr=False)

    @property
    def confirmed(self) -> bool:
        """Whether the judge finds what was asked for."""
        judged = self.certificate
        if judged is None:
            return False
        near = judged.violation <= self.rule.violation * (1.0 + VIOLATION_TOLERANCE)
        return near or self.rule.accepts_gap(judged.primal, judged.dual)

    @property
    def word(self) -> str:
        """How it ended, in a word or two; a claim that the judge does not confirm is none."""
        if self.status is None:
            return "failed" if self.failure else "not run"
        return "not confirmed" if self.status.converged and not self.confirmed else WORDS[self.status]

    @property
    def sentence(self) -> str:
        """How it ended, in a sentence."""
        if self.status is None:
            return self.failure or "the comparison was interrupted before its turn"
        if self.word == "not confirmed":
            assert self.certificate is not None
            return (
                f"the solver took its point for optimal, but computed afresh the violation is "
                f"{self.certificate.violation:.3g}"
            )
        return self.status.value

    def record(self) -> dict[str, Any]:
        """Return the run as plain values; what is not known is None."""
        judged, ended = self.certificate, self.status is not None
        return {
            "solver": self.label,
            "status": self.word,
            "seconds": self.counters.seconds if ended else None,
            "iterations": self.counters.iterations if ended else None,
            "kernel_evaluations": self.counters.kernel_evaluations if ended else None,
            "support_vectors": self.support_vectors if ended else None,
            "primal": None if judged is None else judged.primal,
            "dual": None if judged is None else judged.dual,
            "gap": None if judged is None else judged.gap,
            "relative_gap": None if judged is None else judged.relative_gap,
            "violation": None if judged is None else judged.violation,
            "sentence": self.sentence,
        }
