"""Ratios of the times of peers to those of maxmargin: geometric mean and minimum."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import exp, log
from typing import Any

from benchmarks.peers.libraries import OURS

FINISHED = ("certified", "stopped short")


@dataclass(frozen=True)
class Ratio:
    """Time of the fastest peer divided by that of maxmargin.

    `bound` is ">" where all peers were killed and the time limit is used instead, "<" where maxmargin was, else empty.
    """

    value: float
    bound: str
    peer: str

    def __str__(self) -> str:
        return f"{self.bound}{times_text(self.value)}"


def times_text(value: float) -> str:
    """Return a ratio with two decimals, or two significant digits if it is small."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def ratio(case: dict[str, Any], certified_only: bool, peers: Collection[str] | None = None) -> Ratio | None:
    """Return the ratio of a case, or None without a comparable peer; `peers` restricts the comparison.

    With `certified_only`, peers that missed the tolerance are ignored; if peers finished but none of them met it, there
    is no ratio.
    """
    results = {name: r for name, r in case["libraries"].items() if peers is None or name in (OURS, *peers)}
    ours = results.get(OURS, {"status": "not run"})
    finished = {name: r["seconds"] for name, r in results.items() if name != OURS and r["status"] in FINISHED}
    fit = {name: s for name, s in finished.items() if not certified_only or results[name]["status"] == "certified"}
    killed = [name for name, r in results.items() if name != OURS and r["status"] == "killed"]
    if ours["status"] in FINISHED:
        if fit:
            fastest = min(fit, key=lambda name: fit[name])
            return Ratio(fit[fastest] / ours["seconds"], "", fastest)
        if not killed or finished:
            return None
        first = min(killed, key=lambda name: at_least(case, name))
        return Ratio(at_least(case, first) / ours["seconds"], ">", first)
    if ours["status"] == "killed" and fit:
        fastest = min(fit, key=lambda name: fit[name])
        return Ratio(fit[fastest] / at_least(case, OURS), "<", fastest)
    return None


def at_least(case: dict[str, Any], name: str) -> float:
    """Return the seconds after which a library was killed."""
    return float(case["libraries"][name].get("at_least", case["max_seconds"]))


def summarise(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Return geometric means and minima: against the fastest peer, the fastest certified peer, and each peer alone."""
    names = dict.fromkeys(name for case in cases for name in case["libraries"] if name != OURS)
    by_peer = {name: mean({case["name"]: ratio(case, False, [name]) for case in cases}) for name in names}
    return {
        "fastest_peer": mean({case["name"]: ratio(case, certified_only=False) for case in cases}),
        "fastest_certified_peer": mean({case["name"]: ratio(case, certified_only=True) for case in cases}),
        "peers": {name: one for name, one in by_peer.items() if one is not None},
        "ours_not_certified": [
            case["name"] for case in cases if case["libraries"].get(OURS, {}).get("status") not in (None, "certified")
        ],
    }


def mean(by_case: dict[str, Ratio | None]) -> dict[str, Any] | None:
    """Return the geometric mean of ratios, their number and their minimum; None if there are none."""
    ratios = {name: found for name, found in by_case.items() if found is not None}
    if not ratios:
        return None
    worst = min(ratios, key=lambda name: ratios[name].value)
    return {
        "cases": len(ratios),
        "bounds": sum(bool(found.bound) for found in ratios.values()),
        "geometric_mean": exp(sum(log(found.value) for found in ratios.values()) / len(ratios)),
        "worst": ratios[worst].value,
        "worst_case": worst,
    }
