"""Run one linear case: a lower bound on the optimum, a search for settings, then timed fits in fresh processes.

The result is one entry for each gap, in the format of the kernel suites, so that both share summary and plots.
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

from benchmarks.peers.fit_process import write_data
from benchmarks.peers.launch import Outcome, launch
from benchmarks.peers.libraries import BASELINE, OURS, peers_among
from benchmarks.peers.linear.cases import LinearCase
from benchmarks.peers.linear.libraries import LIBRARIES, LinearParameters, Weights
from benchmarks.peers.linear.limit import measure_pass
from benchmarks.peers.linear.search import Found, nearest, search
from benchmarks.peers.linear.verification import primal, relative_gap
from benchmarks.peers.run_case import Settings, rotated
from benchmarks.peers.suites import group_of
from benchmarks.peers.verification import TOLERANCE_FACTOR

#: The relative gaps to which libraries are timed, and that of the reference fit, which bounds the optimum from below.
TARGETS = (1e-2, 1e-4)
REFERENCE_GAP = 1e-6

#: A peer that took more than this multiple of the fastest time in the search is not timed again.
MAX_SLOWDOWN = 2.0

#: Multiple of the time limit that is allowed when a setting found within the limit is timed.
TIMING_ALLOWANCE = 2.0

#: Largest relative difference between the primal values of certificate and verification.
PRIMAL_AGREEMENT = 1e-7

#: Numbers of passes of the two fits whose difference is the time of a pass: too few for shrinking to start.
PASSES = (1, 6)

#: A primal value below the bound by more than this relative difference proves the bound wrong.
BOUND_TOLERANCE = 1e-9


class NoBoundError(Exception):
    """No valid lower bound on the optimum is available."""


@dataclass(frozen=True)
class Data:
    """Samples, class codes, and the folder from which the processes read them."""

    X: Any
    codes: np.ndarray
    folder: Path


@dataclass
class Timings:
    """The timed fits of one library for one gap."""

    parameters: LinearParameters
    outcomes: list[Outcome] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)

    def should_repeat(self, once_above: float) -> bool:
        """Return whether all fits finished and none took too long to repeat."""
        done = all(outcome.status == "finished" for outcome in self.outcomes)
        return done and all(outcome.measured["seconds"] <= once_above for outcome in self.outcomes)


def run_linear_case(
    case: LinearCase, libraries: Sequence[str], settings: Settings, show_step: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Run a case and return its description and results, one entry for each gap, ready for JSON."""
    X, labels = case.load()
    classes, codes = np.unique(labels, return_inverse=True)
    max_seconds = settings.seconds_for(case)
    parameters = LinearParameters(case.C, case.loss, settings.threads, REFERENCE_GAP)
    with tempfile.TemporaryDirectory(prefix="benchmark-data-") as name:
        data = Data(X, codes, Path(name))
        write_data(data.folder, X, codes)
        try:
            reference, results, tried = run_libraries(case, data, libraries, parameters, settings, show_step)
        except NoBoundError as error:
            failed = {"status": "failed", "reason": str(error)}
            reference, results, tried = None, {target: {OURS: failed} for target in TARGETS}, {}
        show_step(f"{case.name}: one pass")
        one_pass = seconds_of_a_pass(data, parameters, max_seconds) if case.C == 1 else None
    about = {
        "name": case.name,
        "group": group_of(case.name),
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
    entries = [{**about, "target": target, "libraries": results[target]} for target in TARGETS]
    entries[-1]["search"] = tried
    return entries


def run_libraries(
    case: LinearCase,
    data: Data,
    libraries: Sequence[str],
    parameters: LinearParameters,
    settings: Settings,
    show_step: Callable[[str], None],
) -> tuple[dict[str, Any], dict[float, dict[str, Any]], dict[str, Any]]:
    """Return the reference, the results by gap and library, and the settings tried in the search."""
    max_seconds = settings.seconds_for(case)
    show_step(f"{case.name}: reference")
    reference = bound_from_below(data, parameters, max_seconds)
    found, tried = find_settings(case, data, libraries, parameters, reference["dual"], max_seconds, show_step)
    timings = time_all(case, data, found, reference["dual"], settings, show_step)
    results = {
        target: {
            name: describe(by_gap[target], timings.get((name, target)), target, max_seconds)
            for name, by_gap in found.items()
        }
        for target in TARGETS
    }
    return reference, results, tried


def bound_from_below(data: Data, parameters: LinearParameters, max_seconds: float) -> dict[str, Any]:
    """Return the dual value of maxmargin's certificate at a small tolerance, with its primal value, gap and time."""
    reference = replace(parameters, max_seconds=TIMING_ALLOWANCE * max_seconds)
    outcome = launch(OURS, reference, data.folder, 2 * TIMING_ALLOWANCE * max_seconds, repeats=0)
    if outcome.coefficients is None:
        raise NoBoundError(f"no bound, because maxmargin did not finish: {outcome.reason}")
    dual, claimed = float(outcome.coefficients.dual), float(outcome.coefficients.primal)
    value = primal(data.X, data.codes, parameters.C, parameters.loss, outcome.coefficients)
    if not abs(value - claimed) <= PRIMAL_AGREEMENT * abs(value):
        raise NoBoundError(f"primal value {claimed!r} in the certificate, {value!r} in the verification: not the same")
    gap = relative_gap(value, dual)
    return {"dual": dual, "primal": value, "relative_gap": gap, "seconds": outcome.measured["seconds"]}


def seconds_of_a_pass(data: Data, parameters: LinearParameters, max_seconds: float) -> float | None:
    """Return the time of one pass of maxmargin's coordinate ascent, from two fits with different numbers of passes."""
    fits = [replace(parameters, variant="passes", setting=passes, max_seconds=max_seconds) for passes in PASSES]
    few, many = (launch(OURS, fit, data.folder, TIMING_ALLOWANCE * max_seconds, repeats=3).measured for fit in fits)
    if not few or not many or many["passes"] <= few["passes"]:
        return None
    return float((many["seconds"] - few["seconds"]) / (many["passes"] - few["passes"]))


def find_settings(
    case: LinearCase,
    data: Data,
    libraries: Sequence[str],
    parameters: LinearParameters,
    bound: float,
    max_seconds: float,
    show_step: Callable[[str], None],
) -> tuple[dict[str, dict[float, Found]], dict[str, Any]]:
    """Return the setting for each library and gap, and all settings tried; maxmargin's setting is the gap itself."""
    found: dict[str, dict[float, Found]] = {}
    tried: dict[str, Any] = {}
    fastest, only = float("inf"), None
    for name in libraries:
        if name in (OURS, BASELINE):
            found[name] = {gap: Found(replace(parameters, setting=gap), 0.0, gap, "found") for gap in TARGETS}
            continue
        show_step(f"{case.name}: settings of {name}")
        found[name], tried[name] = search(
            name, parameters, data.X.shape, data.folder, bound, TARGETS, max_seconds, fastest,
            only if LIBRARIES[name].is_liblinear else None,
        )  # fmt: skip
        last = found[name][TARGETS[-1]]
        fastest = min(fastest, last.seconds if last.status == "found" else fastest)
        if LIBRARIES[name].is_liblinear and last.status == "killed":
            only = nearest(tried[name])  # the same code behind another interface: try only that variant
    return found, tried


def time_all(
    case: LinearCase,
    data: Data,
    found: dict[str, dict[float, Found]],
    bound: float,
    settings: Settings,
    show_step: Callable[[str], None],
) -> dict[tuple[str, float], Timings]:
    """Time the libraries that are not far behind, alternating, with the settings found."""
    timings: dict[tuple[str, float], Timings] = {}
    for target in TARGETS:
        peers = [found[name][target] for name in peers_among(found)]
        fastest = min((one.seconds for one in peers if one.status == "found"), default=0.0)
        for name, by_gap in found.items():
            one = by_gap[target]
            own = name in (OURS, BASELINE)
            if one.parameters is not None and (own or one.seconds <= MAX_SLOWDOWN * fastest):
                timings[name, target] = Timings(one.parameters)
    for repetition in range(settings.runs):
        for target in TARGETS:
            for name in rotated([name for name, gap in timings if gap == target], repetition):
                record = timings[name, target]
                if not record.should_repeat(settings.once_above):
                    continue
                show_step(f"{case.name}: {name} to {target:g}, run {repetition + 1} of {settings.runs}")
                allowed = TIMING_ALLOWANCE * settings.seconds_for(case)
                outcome = launch(
                    name, record.parameters, data.folder, allowed, case.repeats, once_above=settings.once_above
                )
                record.outcomes.append(outcome)
                if outcome.coefficients is not None:
                    record.gaps.append(verify(data, case, outcome.coefficients, bound))
    return timings


def verify(data: Data, case: LinearCase, weights: Weights, bound: float) -> float:
    """Return the relative gap of a solution."""
    gap = relative_gap(primal(data.X, data.codes, case.C, case.loss, weights), bound)
    if gap < -BOUND_TOLERANCE:
        raise NoBoundError(f"a solution is {-gap:.2g} below the bound: the bound is wrong")
    return gap


def describe(found: Found, timings: Timings | None, target: float, max_seconds: float) -> dict[str, Any]:
    """Return the results of a library for one gap, with the statuses of the kernel suites."""
    if found.parameters is None:
        status = {"cannot": "not run", "stopped short": "killed"}.get(found.status, found.status)
        bound = {"at_least": found.seconds} if status == "killed" else {}
        return {"status": status, "reason": found.reason, "relative_gap": found.gap, **bound}
    chosen = {"variant": found.parameters.variant, "setting": found.parameters.setting}
    if timings is None:
        once = {"seconds": found.seconds, "all_seconds": [found.seconds], "relative_gap": found.gap, "remarks": []}
        return {"status": "certified", "reason": "", "from_search": True, **once, **chosen}
    last, finished = timings.outcomes[-1], [o.measured for o in timings.outcomes if o.status == "finished"]
    if last.status != "finished":
        bound = {"at_least": TIMING_ALLOWANCE * max_seconds} if last.status == "killed" else {}
        return {"status": last.status, "reason": last.reason, **bound, **chosen}
    gap = max(timings.gaps)
    seconds = [measured["seconds"] for measured in finished]
    return {
        "status": "certified" if gap <= TOLERANCE_FACTOR * target else "stopped short",
        "reason": "" if gap <= TOLERANCE_FACTOR * target else f"gap {gap:.2g}",
        "seconds": median(seconds),
        "first_seconds": median(measured["first_seconds"] for measured in finished),
        "cpu_seconds": median(measured["cpu_seconds"] for measured in finished),
        "all_seconds": seconds,
        "peak_mb": median(measured["peak_mb"] for measured in finished),
        "before_mb": median(measured["before_mb"] for measured in finished),
        "passes": finished[-1]["passes"],
        "remarks": sorted({remark for measured in finished for remark in measured["remarks"]}),
        "relative_gap": gap,
        **chosen,
    }
