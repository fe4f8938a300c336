"""Growth with n: who still takes part when the data grow.

A peer that was killed, or whose time would pass the limit if it grew with the square of n, is left out of larger sizes,
with the reason in the report.
"""

from __future__ import annotations

from typing import Any

from benchmarks.race.cases import Case
from benchmarks.race.contestants import OURS
from benchmarks.race.rounds import Settings
from benchmarks.race.summary import FINISHED


def who_goes_on(
    done: list[dict[str, Any]], contestants: list[str], case: Case, settings: Settings
) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Return the contestants for the next size, and an entry for each that is left out."""
    if not done:
        return contestants, {}
    size = int(case.name.rpartition("_")[2])
    last, limit = done[-1], settings.seconds_for(case)
    going, left_out = [], {}
    for name in contestants:
        result = last["contestants"].get(name, {"status": "not run"})
        reason = ""
        if result["status"] in FINISHED:
            expected = result["seconds"] * (size / last["rows"]) ** 2
            if name != OURS and expected > limit:
                reason = f"left out: about {expected:.0f} s expected, {limit:g} s allowed"
        elif result["status"] != "failed" or name != OURS:
            reason = f"left out after: {result['reason'] or result['status']}"
        if reason:
            left_out[name] = {"status": "left out", "reason": reason}
        else:
            going.append(name)
    return going, left_out
