"""Outcome, cost, certificate and trace of one solver in a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from maxmargin.problems import Certificate, Counters, Progress, Status
from maxmargin.solvers import StoppingRule

#: Short names of the statuses, for tables.
OUTCOMES = {
    Status.CONVERGED: "converged",
    Status.STATIONARY: "stationary",
    Status.MAX_ITERATIONS: "iteration limit",
    Status.MAX_SECONDS: "time limit",
    Status.STOPPED: "stopped",
    Status.INTERRUPTED: "interrupted",
    Status.PRECISION: "precision",
    Status.SLOW: "slow convergence",
    Status.UNBOUNDED: "unbounded",
}

#: Relative difference between the violations of solver and certificate that is attributed to rounding.
VIOLATION_ROUNDING = 1e-6


@dataclass(frozen=True)
class SolverRun:
    """The run of one solver.

    Attributes
    ----------
    label : str
    stopping : StoppingRule
    status : Status or None
        None if the solver failed or did not run.
    failure : str
        The error message of a solver that failed.
    counters : Counters
        Iterations, kernel evaluations and seconds.
    certificate : Certificate or None
        Computed from the problem and the solution, independently of the solver.
    support_vectors : int
    trace : tuple of Progress
    """

    label: str
    stopping: StoppingRule = field(repr=False)
    status: Status | None = None
    failure: str = ""
    counters: Counters = field(default_factory=Counters)
    certificate: Certificate | None = None
    support_vectors: int = 0
    trace: tuple[Progress, ...] = field(default=(), repr=False)

    @property
    def verified(self) -> bool:
        """Whether the certificate satisfies the stopping rule."""
        if self.certificate is None:
            return False
        optimal = self.certificate.violation <= self.stopping.violation * (1.0 + VIOLATION_ROUNDING)
        return optimal or self.stopping.accepts_gap(self.certificate.primal, self.certificate.dual)

    @property
    def outcome(self) -> str:
        """The status in one or two words; convergence that the certificate contradicts is "not verified"."""
        if self.status is None:
            return "failed" if self.failure else "not run"
        return "not verified" if self.status.converged and not self.verified else OUTCOMES[self.status]

    @property
    def message(self) -> str:
        """The status in a sentence."""
        if self.status is None:
            return self.failure or "the comparison was interrupted before this solver"
        if self.outcome == "not verified":
            assert self.certificate is not None
            return f"the solver reported convergence, but the verified violation is {self.certificate.violation:.3g}"
        return self.status.value

    def record(self) -> dict[str, Any]:
        """Return the run as values that JSON can hold; unknown values are None."""
        certificate, ran = self.certificate, self.status is not None
        return {
            "solver": self.label,
            "status": self.outcome,
            "seconds": self.counters.seconds if ran else None,
            "iterations": self.counters.iterations if ran else None,
            "kernel_evaluations": self.counters.kernel_evaluations if ran else None,
            "support_vectors": self.support_vectors if ran else None,
            **{
                name: None if certificate is None else getattr(certificate, name)
                for name in ("primal", "dual", "gap", "relative_gap", "violation")
            },
            "message": self.message,
        }
