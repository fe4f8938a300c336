"""Run one case: fits in fresh processes with alternating libraries, verification, and the lower bound on time.

Each process fits the case for the first time and then again, so that both times are known.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.peers.cases import Case, width
from benchmarks.peers.fit_process import write_data
from benchmarks.peers.launch import Outcome, launch
from benchmarks.peers.libraries import CLASSIFIERS, LIBRARIES, OURS, Coefficients, Parameters
from benchmarks.peers.limit import measure_limit
from benchmarks.peers.suites import group_of
from benchmarks.peers.verification import Verification, verify

ShowStep = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """Settings of the whole benchmark.

    Attributes
    ----------
    case_seconds : dict
        Time limits of single cases; they override `max_seconds`.
    once_above : float
        A fit of a case that took more seconds is not repeated: neither in its process nor in another.
    """

    tolerance: float = 1e-3
    runs: int = 3
    threads: int = 1
    cache_mb: int = 2000
    max_seconds: float = 600.0
    case_seconds: dict[str, float] = field(default_factory=dict)
    once_above: float = float("inf")

    def seconds_for(self, case: Case) -> float:
        """Return the limit on one fit of a case."""
        if case.name in self.case_seconds:
            return self.case_seconds[case.name]
        return min(self.max_seconds, case.max_seconds or self.max_seconds)

    def parameters(self, case: Case, X: Any, tolerance: float | None = None) -> Parameters:
        """Return the parameters of a fit of the samples `X`."""
        of_case = {name: getattr(case, name) for name in ("C", "machine", "kernel", "degree", "coef0", "nu", "epsilon")}
        return Parameters(
            gamma=width(case.gamma, X),
            tolerance=tolerance or self.tolerance,
            threads=self.threads,
            cache_mb=self.cache_mb,
            **of_case,
        )


@dataclass
class Record:
    """The outcomes and verified solutions of one library on a case."""

    outcomes: list[Outcome] = field(default_factory=list)
    verifications: dict[str, tuple[Verification, Coefficients]] = field(default_factory=dict)

    def seconds(self, which: str = "seconds") -> list[float]:
        """Return the times of the finished fits: warm fits, "first_seconds" or "cpu_seconds"."""
        return [o.measured[which] for o in self.outcomes if o.status == "finished"]

    def should_repeat(self, once_above: float) -> bool:
        """Return whether all fits finished and none took too long to repeat."""
        return all(o.status == "finished" for o in self.outcomes) and max(self.seconds(), default=0.0) <= once_above

    @property
    def worst(self) -> tuple[Verification, Coefficients] | None:
        """The solution with the largest violation, where runs differ."""
        return max(self.verifications.values(), key=lambda pair: pair[0].violation, default=None)


def run_case(case: Case, libraries: Sequence[str], settings: Settings, show_step: ShowStep) -> dict[str, Any]:
    """Run a case and return its description and results, ready for JSON."""
    X, labels = case.load()
    classes, codes = np.unique(labels, return_inverse=True)
    y = codes if case.machine in CLASSIFIERS else np.asarray(labels, dtype=np.float64)
    parameters = settings.parameters(case, X)
    max_seconds = settings.seconds_for(case)
    able = [name for name in libraries if case.machine in LIBRARIES[name].machines]
    records = {name: Record() for name in able}
    with tempfile.TemporaryDirectory(prefix="benchmark-data-") as name:
        folder = Path(name)
        write_data(folder, X, y)
        for repetition in range(settings.runs):
            for library in rotated(able, repetition):
                record = records[library]
                if not record.should_repeat(settings.once_above):
                    continue
                show_step(f"{case.name}: {library}, run {repetition + 1} of {settings.runs}")
                outcome = launch(library, parameters, folder, max_seconds, case.repeats, once_above=settings.once_above)
                record.outcomes.append(outcome)
                if outcome.coefficients is not None:
                    key = _fingerprint(outcome.coefficients)
                    if key not in record.verifications:
                        result = verify(X, y, parameters, outcome.coefficients)
                        record.verifications[key] = result, outcome.coefficients
    show_step(f"{case.name}: limit")
    return {
        "name": case.name,
        "group": group_of(case.name),
        "machine": case.machine,
        "kernel": case.kernel,
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "classes": len(classes) if case.machine in CLASSIFIERS else 0,
        "sparse": bool(sparse.issparse(X)),
        "C": float(case.C),
        "gamma": parameters.gamma,
        "max_seconds": max_seconds,
        "fits_per_process": case.repeats,
        "date": datetime.now(UTC).date().isoformat(),
        "limit": _limit(X, parameters, records),
        "libraries": {name: describe(record, settings.tolerance) for name, record in records.items()},
    }


def describe(record: Record, tolerance: float) -> dict[str, Any]:
    """Return the results of a library; "certified", "stopped short", "killed", "failed" or "not run" is its status."""
    last = record.outcomes[-1] if record.outcomes else None
    if last is None:
        return {"status": "not run", "reason": ""}
    if last.status != "finished" or record.worst is None:
        return {"status": last.status, "reason": last.reason, "all_seconds": record.seconds()}
    worst = record.worst[0]
    short = worst.stopped_short(tolerance)
    measured = [outcome.measured for outcome in record.outcomes]
    return {
        "status": "stopped short" if short else "certified",
        "reason": f"violation {worst.violation:.2g}" if short else "",
        "seconds": median(record.seconds()),
        "first_seconds": median(record.seconds("first_seconds")),
        "cpu_seconds": median(record.seconds("cpu_seconds")),
        "all_seconds": record.seconds(),
        "peak_mb": median(m["peak_mb"] for m in measured),
        "before_mb": median(m["before_mb"] for m in measured),
        "evaluations": measured[-1]["evaluations"],
        "remarks": sorted({remark for m in measured for remark in m["remarks"]}),
        "different_solutions": len(record.verifications),
        **asdict(worst),
    }


def _limit(X: Any, parameters: Parameters, records: dict[str, Record]) -> dict[str, Any] | None:
    """Measure the lower bound on time with the support vectors of the most accurate solution."""
    verified = [record.worst for record in records.values() if record.worst is not None]
    if not verified:
        return None
    best, found = min(verified, key=lambda pair: pair[0].relative_gap)
    if not len(found.support):
        return None
    support = np.unique(found.support[np.asarray(found.values != 0).any(axis=0)])
    limit = measure_limit(X, parameters, support, best.values, best.free_by_pair)
    return {"seconds": limit.seconds, **asdict(limit), "support": best.support, "free": best.free}


def rotated(names: Sequence[str], repetition: int) -> list[str]:
    """Return maxmargin first and the others in an order that changes with the repetition."""
    ours, others = [name for name in names if name == OURS], [name for name in names if name != OURS]
    shift = repetition % max(1, len(others))
    return ours + others[shift:] + others[:shift]


def _fingerprint(found: Coefficients) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(found.support))
    digest.update(np.ascontiguousarray(found.values))
    return digest.hexdigest()
