"""Search for the variant and setting with which a peer reaches a gap fastest; the fits run in `search_process`."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.peers.environment import version
from benchmarks.peers.launch import SETUP_SECONDS, read_answer, run_job
from benchmarks.peers.linear.libraries import LIBRARIES, LinearParameters

#: Time limit of a whole search, as a multiple of that of one fit.
SEARCH_BUDGET = 1.5

#: Time limit of a variant as a multiple of the fastest time so far, and its minimum in seconds.
MAX_SLOWDOWN, MIN_SECONDS = 3.0, 2.0


@dataclass(frozen=True)
class Found:
    """The fastest setting with which a library reaches a gap.

    Attributes
    ----------
    parameters : LinearParameters, optional
        Variant and setting of the fastest fit that reached the gap; None if none did.
    seconds : float
        Time of that fit in the search; if none reached the gap, a lower bound on the time.
    gap : float
        Gap of that fit, or the smallest gap of all fits.
    status, reason : str
        "found", "killed" (time limit), "stopped short" (not with the last setting), "failed" or "cannot" (unsupported).
    """

    parameters: LinearParameters | None
    seconds: float
    gap: float
    status: str
    reason: str = ""


def search(
    library: str,
    parameters: LinearParameters,
    shape: tuple[int, int],
    data: Path,
    bound: float,
    targets: tuple[float, ...],
    max_seconds: float,
    fastest: float,
    only: int | None = None,
) -> tuple[dict[float, Found], list[dict[str, Any]]]:
    """Return the best variant and setting of a library for each gap, and all that were tried.

    `fastest` is the best time of another library for the smallest gap, infinite if none has reached it. `only` is the
    index of the single variant to try.
    """
    make = LIBRARIES[library]
    if version(make.package) is None:
        return dict.fromkeys(targets, Found(None, 0.0, float("inf"), "failed", "not installed")), []
    tried: list[dict[str, Any]] = []
    variants = make.variants(parameters.loss, *shape)
    for variant in variants if only is None else variants[only : only + 1]:
        allowed = min(max_seconds, max(MAX_SLOWDOWN * fastest, MIN_SECONDS))
        tried.append(search_variant(library, replace(parameters, variant=variant), data, bound, targets, allowed))
        fastest = min([fastest, *(r["seconds"] for r in tried[-1]["fits"] if r["gap"] <= min(targets))])
    return {target: best(tried, parameters, target) for target in targets}, tried


def search_variant(
    library: str,
    parameters: LinearParameters,
    data: Path,
    bound: float,
    targets: tuple[float, ...],
    max_seconds: float,
) -> dict[str, Any]:
    """Try settings of one variant in a separate process; return the fits and the outcome."""
    make = LIBRARIES[library]
    job = {
        "library": library,
        "parameters": asdict(parameters),
        "data": str(data),
        "bound": bound,
        "targets": targets,
        "max_seconds": max_seconds,
        "budget": SEARCH_BUDGET * max_seconds,
    }
    seconds = SEARCH_BUDGET * max_seconds + SETUP_SECONDS
    module = "benchmarks.peers.linear.search_process"
    with run_job(module, job, make.environment, parameters.threads, seconds) as (folder, code):
        notes = folder / "fits.jsonl"
        lines = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
        result = {"variant": parameters.variant, "fits": [line for line in lines if "gap" in line]}
        if code == -signal.SIGALRM:
            allowed = lines[-1]["allowed"] if lines else max_seconds
            return {**result, "status": "killed", "seconds": allowed, "reason": f"killed after {allowed:.3g} s"}
        answer = read_answer(folder, code)
    failed = answer.get("failed", "")
    return {**result, "status": "failed" if failed else "finished", "seconds": 0.0, "reason": failed}


def best(tried: list[dict[str, Any]], parameters: LinearParameters, target: float) -> Found:
    """Return the fastest of the loosest settings that reach a gap, or the reason why none does."""
    if not tried:
        return Found(None, 0.0, float("inf"), "cannot", "does not solve this problem")
    found = []
    for variant in tried:
        reached = [fit for fit in variant["fits"] if fit["gap"] <= target]
        if reached:
            loosest = min(reached, key=lambda fit: int(fit["index"]))
            chosen = replace(parameters, variant=variant["variant"], setting=loosest["setting"])
            found.append(Found(chosen, loosest["seconds"], loosest["gap"], "found"))
    if found:
        return min(found, key=lambda one: one.seconds)
    seen = [fit["gap"] for variant in tried for fit in variant["fits"]]
    gap = min(seen, default=float("inf"))
    killed = [max(v["seconds"], *spent(v, target)) for v in tried if v["status"] == "killed"]
    if killed:
        # No variant reaches the gap in less than the shortest of these.
        return Found(None, min(killed), gap, "killed", f"gap {gap:.2g} after {min(killed):.3g} s")
    failed = [variant["reason"] for variant in tried if variant["status"] == "failed"]
    if failed:
        return Found(None, 0.0, gap, "failed", failed[0])
    slowest = max(seconds for variant in tried for seconds in spent(variant, target))
    return Found(None, slowest, gap, "stopped short", f"gap {gap:.2g} with the last setting, after {slowest:.3g} s")


def nearest(tried: list[dict[str, Any]]) -> int:
    """Return the index of the variant with the smallest gap."""
    gaps = [min((fit["gap"] for fit in variant["fits"]), default=float("inf")) for variant in tried]
    return gaps.index(min(gaps))


def spent(variant: dict[str, Any], target: float) -> list[float]:
    """Return the times of the fits that missed a gap, and zero."""
    return [0.0, *(fit["seconds"] for fit in variant["fits"] if fit["gap"] > target)]
