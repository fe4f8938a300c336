"""Select the libraries for the next number of rows of the growth suite.

A peer that was killed, or that would exceed the time limit if its time grew with the square of n, is left out of larger
sizes, with the reason in the report.
"""

from __future__ import annotations

from typing import Any

from benchmarks.peers.cases import Case
from benchmarks.peers.libraries import OURS
from benchmarks.peers.run_case import Settings
from benchmarks.peers.summary import FINISHED


def still_running(
    done: list[dict[str, Any]], libraries: list[str], case: Case, settings: Settings
) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Return the libraries for the next size, and an entry for each that is left out."""
    if not done:
        return libraries, {}
    size = int(case.name.rpartition("_")[2])
    last, limit = done[-1], settings.seconds_for(case)
    running, left_out = [], {}
    for name in libraries:
        result = last["libraries"].get(name, {"status": "not run"})
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
            running.append(name)
    return running, left_out
