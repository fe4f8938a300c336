"""One linear case from data to verdicts: a bound, a search for settings, then turns in fresh processes.

The result is one entry for each gap, in the form that the kernel suites have, so that the same summary and pictures
serve both.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.race.contestants import OURS
from benchmarks.race.fit_process import write_data
from benchmarks.race.launch import Outcome, launch
from benchmarks.race.linear.cases import LinearCase
from benchmarks.race.linear.contestants import CONTESTANTS, LinearParameters, Weights
from benchmarks.race.linear.limit import measure_pass
from benchmarks.race.linear.referee import primal, relative_gap
from benchmarks.race.linear.search import Found, nearest, search
from benchmarks.race.referee import LENIENCE
from benchmarks.race.rounds import Settings, rotated

#: The relative gaps to which contestants are timed, and that of the fit which bounds the optimum from below.
TARGETS = (1e-2, 1e-4)
REFERENCE = 1e-6

#: A peer that took more than so many times the seconds of the fastest in the search is not timed again.
CLOSE = 2.0

#: What was just within the limit in the search may take so many times the limit when it is timed.
LONGER = 2.0

#: How far, relatively, a certificate and the referee may be apart.
AGREEMENT = 1e-7

#: Passes of the two fits whose difference tells what a pass costs: few enough that no samples are left out yet.
PASSES = (1, 6)

#: A solution this far, relatively, below the bound means that the bound is wrong.
ROUNDING = 1e-9


class NoBoundError(Exception):
    """There is nothing that solutions could be judged by."""


@dataclass(frozen=True)
class Data:
    """What a case is about: samples, class codes, and the folder where the processes find them."""

    X: Any
    codes: np.ndarray
    folder: Path


@dataclass
class Timings:
    """What one contestant has done to reach one gap."""

    parameters: LinearParameters
    outcomes: list[Outcome] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)

    def wants_another(self, once_above: float) -> bool:
        """Whether it is worth while to start it again."""
        done = all(outcome.status == "finished" for outcome in self.outcomes)
        return done and all(outcome.measured["seconds"] <= once_above for outcome in self.outcomes)


def run_linear_case(
    case: LinearCase, contestants: Sequence[str], settings: Settings, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Run a case and return everything that is known about it, one entry for each gap, ready for JSON."""
    X, labels = case.load()
    classes, codes = np.unique(labels, return_inverse=True)
    max_seconds = settings.seconds_for(case)
    parameters = LinearParameters(case.C, case.loss, settings.threads, REFERENCE)
    with tempfile.TemporaryDirectory(prefix="race-data-") as name:
        data = Data(X, codes, Path(name))
        write_data(data.folder, X, codes)
        try:
            reference, results, tried = run_contestants(case, data, contestants, parameters, settings, say)
        except NoBoundError as error:
            failed = {"status": "failed", "reason": str(error)}
            reference, results, tried = None, {target: {OURS: failed} for target in TARGETS}, {}
        say(f"{case.name}: one pass")
        one_pass = seconds_of_a_pass(data, parameters, max_seconds) if case.C == 1 else None
    about = {
        "name": case.name,
        "rows": int(X.shape[0]),
        "features": int(X.shape[1]),
        "classes": len(classes),
        "sparse": bool(sparse.issparse(X)),
        "C": float(case.C),
        "loss": case.loss,
        "max_seconds": max_seconds,
        "fits_per_process": case.repeats,
        "date": datetime.now(UTC).date().isoformat(),
        "limit": asdict(measure_pass(X, settings.threads)),
        "one_pass": one_pass,
        "reference": reference,
    }
    entries = [{**about, "target": target, "contestants": results[target]} for target in TARGETS]
    entries[-1]["search"] = tried
    return entries


def run_contestants(
    case: LinearCase,
    data: Data,
    contestants: Sequence[str],
    parameters: LinearParameters,
    settings: Settings,
    say: Callable[[str], None],
) -> tuple[dict[str, Any], dict[float, dict[str, Any]], dict[str, Any]]:
    """Return the bound, the results by gap and contestant, and what was tried to find settings."""
    max_seconds = settings.seconds_for(case)
    say(f"{case.name}: reference")
    reference = bound_from_below(data, parameters, max_seconds)
    found, tried = find_settings(case, data, contestants, parameters, reference["dual"], max_seconds, say)
    timings = time_all(case, data, found, reference["dual"], settings, say)
    results = {
        target: {
            name: describe(by_gap[target], timings.get((name, target)), target, max_seconds)
            for name, by_gap in found.items()
        }
        for target in TARGETS
    }
    return reference, results, tried


def bound_from_below(data: Data, parameters: LinearParameters, max_seconds: float) -> dict[str, Any]:
    """Return the dual value of maxmargin's certificate at a fine tolerance, and what that fit reached."""
    told = replace(parameters, max_seconds=LONGER * max_seconds)
    outcome = launch(OURS, told, data.folder, 2 * LONGER * max_seconds)
    if outcome.coefficients is None:
        raise NoBoundError(f"without a fit of maxmargin there is no bound: {outcome.reason}")
    dual, claimed = float(outcome.coefficients.dual), float(outcome.coefficients.primal)
    value = primal(data.X, data.codes, parameters.C, parameters.loss, outcome.coefficients)
    if not abs(value - claimed) <= AGREEMENT * abs(value):
        raise NoBoundError(f"the certificate says {claimed!r}, the referee {value!r}: not the same problem")
    gap = relative_gap(value, dual)
    return {"dual": dual, "primal": value, "relative_gap": gap, "seconds": outcome.measured["seconds"]}


def seconds_of_a_pass(data: Data, parameters: LinearParameters, max_seconds: float) -> float | None:
    """Return the seconds of one of maxmargin's passes of coordinate ascent: what more of them cost."""
    fits = [replace(parameters, variant="passes", setting=passes, max_seconds=max_seconds) for passes in PASSES]
    few, many = (launch(OURS, told, data.folder, LONGER * max_seconds, repeats=3).measured for told in fits)
    if not few or not many or many["passes"] <= few["passes"]:
        return None
    return float((many["seconds"] - few["seconds"]) / (many["passes"] - few["passes"]))


def find_settings(
    case: LinearCase,
    data: Data,
    contestants: Sequence[str],
    parameters: LinearParameters,
    bound: float,
    max_seconds: float,
    say: Callable[[str], None],
) -> tuple[dict[str, dict[float, Found]], dict[str, Any]]:
    """Return by contestant and gap how it is reached, and everything that was tried; ours is simply told the gap."""
    found: dict[str, dict[float, Found]] = {}
    tried: dict[str, Any] = {}
    fastest, only = float("inf"), None
    for name in contestants:
        if name == OURS:
            found[name] = {gap: Found(replace(parameters, setting=gap), 0.0, gap, "found") for gap in TARGETS}
            continue
        say(f"{case.name}: settings of {name}")
        found[name], tried[name] = search(
            name, parameters, data.X.shape, data.folder, bound, TARGETS, max_seconds, fastest,
            only if CONTESTANTS[name].is_liblinear else None,
        )  # fmt: skip
        last = found[name][TARGETS[-1]]
        fastest = min(fastest, last.seconds if last.status == "found" else fastest)
        if CONTESTANTS[name].is_liblinear and last.status == "killed":
            only = nearest(tried[name])  # the same code behind another interface need not be waited for twice
    return found, tried


def time_all(
    case: LinearCase,
    data: Data,
    found: dict[str, dict[float, Found]],
    bound: float,
    settings: Settings,
    say: Callable[[str], None],
) -> dict[tuple[str, float], Timings]:
    """Let contestants that are not far behind take turns with the settings that were found."""
    timings: dict[tuple[str, float], Timings] = {}
    for target in TARGETS:
        peers = [by_gap[target].seconds for name, by_gap in found.items() if name != OURS]
        reached = [by_gap[target].status == "found" for name, by_gap in found.items() if name != OURS]
        fastest = min((seconds for seconds, ok in zip(peers, reached, strict=True) if ok), default=0.0)
        for name, by_gap in found.items():
            one = by_gap[target]
            if one.parameters is not None and (name == OURS or one.seconds <= CLOSE * fastest):
                timings[name, target] = Timings(one.parameters)
    for turn in range(settings.runs):
        for target in TARGETS:
            for name in rotated([name for name, gap in timings if gap == target], turn):
                record = timings[name, target]
                if not record.wants_another(settings.once_above):
                    continue
                say(f"{case.name}: {name} to {target:g}, round {turn + 1} of {settings.runs}")
                allowed = LONGER * settings.seconds_for(case)
                outcome = launch(name, record.parameters, data.folder, allowed, case.repeats)
                record.outcomes.append(outcome)
                if outcome.coefficients is not None:
                    record.gaps.append(judge(data, case, outcome.coefficients, bound))
    return timings


def judge(data: Data, case: LinearCase, weights: Weights, bound: float) -> float:
    """Return the relative gap of a solution."""
    gap = relative_gap(primal(data.X, data.codes, case.C, case.loss, weights), bound)
    if gap < -ROUNDING:
        raise NoBoundError(f"a solution is below the bound by {-gap:.2g}: the bound is wrong")
    return gap


def describe(found: Found, timings: Timings | None, target: float, max_seconds: float) -> dict[str, Any]:
    """Return one contestant's results for one gap: "certified", "stopped short", "killed", "failed" or "not run"."""
    if found.parameters is None:
        status = {"cannot": "not run", "stopped short": "killed"}.get(found.status, found.status)
        bound = {"at_least": found.seconds} if status == "killed" else {}
        return {"status": status, "reason": found.reason, "relative_gap": found.gap, **bound}
    knob = {"variant": found.parameters.variant, "setting": found.parameters.setting}
    if timings is None:
        once = {"seconds": found.seconds, "all_seconds": [found.seconds], "relative_gap": found.gap, "remarks": []}
        return {"status": "certified", "reason": "", "from_search": True, **once, **knob}
    last, finished = timings.outcomes[-1], [o.measured for o in timings.outcomes if o.status == "finished"]
    if last.status != "finished":
        bound = {"at_least": LONGER * max_seconds} if last.status == "killed" else {}
        return {"status": last.status, "reason": last.reason, **bound, **knob}
    gap = max(timings.gaps)
    seconds = [measured["seconds"] for measured in finished]
    return {
        "status": "certified" if gap <= LENIENCE * target else "stopped short",
        "reason": "" if gap <= LENIENCE * target else f"gap {gap:.2g}",
        "seconds": median(seconds),
        "all_seconds": seconds,
        "peak_mb": median(measured["peak_mb"] for measured in finished),
        "before_mb": median(measured["before_mb"] for measured in finished),
        "passes": finished[-1]["passes"],
        "remarks": sorted({remark for measured in finished for remark in measured["remarks"]}),
        "relative_gap": gap,
        **knob,
    }
