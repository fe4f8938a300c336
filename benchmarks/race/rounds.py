"""One case from data to verdict: contestants take turns in fresh processes, a referee judges, the limit is measured."""

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

from benchmarks.race.cases import Case, width
from benchmarks.race.contestants import OURS, Coefficients, Parameters
from benchmarks.race.fit_process import write_data
from benchmarks.race.launch import Outcome, launch
from benchmarks.race.limit import measure_limit
from benchmarks.race.referee import Judgement, judge

Say = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What holds for the whole race.

    Attributes
    ----------
    case_seconds : dict
        Limits of single cases, before `max_seconds`.
    once_above : float
        A contestant whose first fit of a case took more seconds than this is not asked again.
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

    def parameters(self, case: Case, gamma: float, tolerance: float | None = None) -> Parameters:
        """Return what the contestants are told."""
        return Parameters(case.C, gamma, tolerance or self.tolerance, self.threads, self.cache_mb)


@dataclass
class Record:
    """What one contestant has done on a case so far."""

    outcomes: list[Outcome] = field(default_factory=list)
    judgements: dict[str, tuple[Judgement, Coefficients]] = field(default_factory=dict)

    @property
    def seconds(self) -> list[float]:
        """Seconds of the fits that finished."""
        return [o.measured["seconds"] for o in self.outcomes if o.status == "finished"]

    def wants_another(self, once_above: float) -> bool:
        """Whether it is worth while to start it again."""
        return all(o.status == "finished" for o in self.outcomes) and max(self.seconds, default=0.0) <= once_above

    @property
    def worst(self) -> tuple[Judgement, Coefficients] | None:
        """The judgement that counts: of the worst solution, where runs differ."""
        return max(self.judgements.values(), key=lambda pair: pair[0].violation, default=None)


def run_case(case: Case, contestants: Sequence[str], settings: Settings, say: Say) -> dict[str, Any]:
    """Run a case and return everything that is known about it, ready for JSON."""
    X, labels = case.load()
    classes, codes = np.unique(labels, return_inverse=True)
    gamma = width(case.gamma, X)
    max_seconds = settings.seconds_for(case)
    records = {name: Record() for name in contestants}
    with tempfile.TemporaryDirectory(prefix="race-data-") as name:
        folder = Path(name)
        write_data(folder, X, codes)
        for turn in range(settings.runs):
            for contestant in rotated(contestants, turn):
                record = records[contestant]
                if not record.wants_another(settings.once_above):
                    continue
                say(f"{case.name}: {contestant}, round {turn + 1} of {settings.runs}")
                outcome = launch(contestant, settings.parameters(case, gamma), folder, max_seconds, case.repeats)
                record.outcomes.append(outcome)
                if outcome.coefficients is not None:
                    key = _fingerprint(outcome.coefficients)
                    if key not in record.judgements:
                        found = outcome.coefficients
                        verdict = judge(X, codes, case.C, gamma, found, settings.tolerance, settings.threads)
                        record.judgements[key] = verdict, found
    say(f"{case.name}: limit")
    return {
        "name": case.name,
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "classes": len(classes),
        "sparse": bool(sparse.issparse(X)),
        "C": float(case.C),
        "gamma": gamma,
        "max_seconds": max_seconds,
        "fits_per_process": case.repeats,
        "date": datetime.now(UTC).date().isoformat(),
        "limit": _limit(X, gamma, records, settings.threads),
        "contestants": {name: describe(record, settings.tolerance) for name, record in records.items()},
    }


def describe(record: Record, tolerance: float) -> dict[str, Any]:
    """Return one contestant's results: "certified", "stopped short", "killed", "failed" or "not run"."""
    last = record.outcomes[-1] if record.outcomes else None
    if last is None:
        return {"status": "not run", "reason": ""}
    if last.status != "finished" or record.worst is None:
        return {"status": last.status, "reason": last.reason, "all_seconds": record.seconds}
    verdict = record.worst[0]
    short = verdict.stopped_short(tolerance)
    measured = [outcome.measured for outcome in record.outcomes]
    return {
        "status": "stopped short" if short else "certified",
        "reason": f"violation {verdict.violation:.2g}" if short else "",
        "seconds": median(record.seconds),
        "all_seconds": record.seconds,
        "peak_mb": median(m["peak_mb"] for m in measured),
        "before_mb": median(m["before_mb"] for m in measured),
        "evaluations": measured[-1]["evaluations"],
        "remarks": sorted({remark for m in measured for remark in m["remarks"]}),
        "different_solutions": len(record.judgements),
        **asdict(verdict),
    }


def _limit(X: Any, gamma: float, records: dict[str, Record], threads: int) -> dict[str, Any] | None:
    """Measure the limit from the solution that is nearest to the optimum."""
    judged = [record.worst for record in records.values() if record.worst is not None]
    if not judged:
        return None
    verdict, found = min(judged, key=lambda pair: pair[0].relative_gap)
    support = np.unique(found.support[np.asarray(found.values != 0).any(axis=0)])
    if not len(support):
        return None
    limit = measure_limit(X, gamma, support, verdict.values, verdict.free_by_pair, threads)
    return {"seconds": limit.seconds, **asdict(limit), "support": verdict.support, "free": verdict.free}


def rotated(names: Sequence[str], turn: int) -> list[str]:
    """Return ours first and the others in an order that changes from round to round."""
    ours, others = [name for name in names if name == OURS], [name for name in names if name != OURS]
    shift = turn % max(1, len(others))
    return ours + others[shift:] + others[:shift]


def _fingerprint(found: Coefficients) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(found.support))
    digest.update(np.ascontiguousarray(found.values))
    return digest.hexdigest()
