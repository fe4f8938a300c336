"""The parent's side of the search for settings: which variant and setting of a peer reach a gap, and how fast."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.race.launch import AROUND, read_answer, run_job
from benchmarks.race.linear.contestants import CONTESTANTS, LinearParameters
from benchmarks.race.machine import version

#: A search may take so many times the limit on one fit in all.
ALL_FITS = 1.5

#: Others are given so many times what the fastest took before them, and so many seconds at least.
PATIENCE, AT_LEAST = 3.0, 2.0


@dataclass(frozen=True)
class Found:
    """How a contestant reaches a gap.

    Attributes
    ----------
    parameters : LinearParameters, optional
        Variant and setting of the fastest fit that reached the gap; None if none did.
    seconds : float
        Of that fit, within the search; if none reached the gap, how long it is known to take at least.
    gap : float
        Reached by that fit, or the smallest that was seen.
    status, reason : str
        "found", "killed" (not within the limit), "stopped short" (not with the last setting), "failed" or "cannot".
    """

    parameters: LinearParameters | None
    seconds: float
    gap: float
    status: str
    reason: str = ""


def search(
    contestant: str,
    parameters: LinearParameters,
    shape: tuple[int, int],
    data: Path,
    bound: float,
    targets: tuple[float, ...],
    max_seconds: float,
    fastest: float,
    only: int | None = None,
) -> tuple[dict[float, Found], list[dict[str, Any]]]:
    """Return how the best variant of a contestant reaches each gap, and all that was tried.

    `fastest` are the seconds that somebody else needs for the last of the gaps, infinite if nobody has reached it.
    With `only`, the variant at that place alone is tried.
    """
    make = CONTESTANTS[contestant]
    if version(make.package) is None:
        return dict.fromkeys(targets, Found(None, 0.0, float("inf"), "failed", "not installed")), []
    tried: list[dict[str, Any]] = []
    variants = make.variants(parameters.loss, *shape)
    for variant in variants if only is None else variants[only : only + 1]:
        allowed = min(max_seconds, max(PATIENCE * fastest, AT_LEAST))
        tried.append(search_variant(contestant, replace(parameters, variant=variant), data, bound, targets, allowed))
        fastest = min([fastest, *(r["seconds"] for r in tried[-1]["rungs"] if r["gap"] <= min(targets))])
    return {target: best(tried, parameters, target) for target in targets}, tried


def search_variant(
    contestant: str,
    parameters: LinearParameters,
    data: Path,
    bound: float,
    targets: tuple[float, ...],
    max_seconds: float,
) -> dict[str, Any]:
    """Climb the ladder of one variant in a process of its own; return its rungs and how it ended."""
    make = CONTESTANTS[contestant]
    job = {
        "contestant": contestant,
        "parameters": asdict(parameters),
        "data": str(data),
        "bound": bound,
        "targets": targets,
        "max_seconds": max_seconds,
        "budget": ALL_FITS * max_seconds,
    }
    seconds = ALL_FITS * max_seconds + AROUND
    module = "benchmarks.race.linear.search_process"
    with run_job(module, job, make.environment, parameters.threads, seconds) as (folder, code):
        notes = folder / "rungs.jsonl"
        lines = [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []
        result = {"variant": parameters.variant, "rungs": [line for line in lines if "gap" in line]}
        if code == -signal.SIGALRM:
            allowed = lines[-1]["allowed"] if lines else max_seconds
            return {**result, "status": "killed", "seconds": allowed, "reason": f"killed after {allowed:.3g} s"}
        answer = read_answer(folder, code)
    failed = answer.get("failed", "")
    return {**result, "status": "failed" if failed else "finished", "seconds": 0.0, "reason": failed}


def best(tried: list[dict[str, Any]], parameters: LinearParameters, target: float) -> Found:
    """Return the fastest of the loosest settings that reach a gap, or how nobody did."""
    if not tried:
        return Found(None, 0.0, float("inf"), "cannot", "does not solve this problem")
    found = []
    for variant in tried:
        reached = [rung for rung in variant["rungs"] if rung["gap"] <= target]
        if reached:
            loosest = min(reached, key=lambda rung: int(rung["rung"]))
            told = replace(parameters, variant=variant["variant"], setting=loosest["setting"])
            found.append(Found(told, loosest["seconds"], loosest["gap"], "found"))
    if found:
        return min(found, key=lambda one: one.seconds)
    seen = [rung["gap"] for variant in tried for rung in variant["rungs"]]
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
    """Return the place of the variant that came nearest to the optimum."""
    gaps = [min((rung["gap"] for rung in variant["rungs"]), default=float("inf")) for variant in tried]
    return gaps.index(min(gaps))


def spent(variant: dict[str, Any], target: float) -> list[float]:
    """Return the seconds of fits that missed a gap, with a zero."""
    return [0.0, *(rung["seconds"] for rung in variant["rungs"] if rung["gap"] > target)]
