"""Ratios of the times of peers to those of maxmargin: geometric mean and minimum."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import exp, log
from typing import Any

from benchmarks.peers.libraries import BASELINE, OURS, peers_among

FINISHED = ("certified", "stopped short")

#: Cases whose kernel values n S take fewer seconds do not count for the mean of fit / limit.
MIN_LIMIT_SECONDS = 0.05


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


def ratio(
    case: dict[str, Any], certified_only: bool, peers: Collection[str] | None = None, which: str = "seconds"
) -> Ratio | None:
    """Return the ratio of a case, or None without a comparable peer; `peers` restricts the comparison.

    With `certified_only`, peers that missed the tolerance are ignored; if peers finished but none of them met it, there
    is no ratio. `which` is "seconds", the time of warm fits, "first_seconds" or
    "cpu_seconds", that of all cores.
    """
    peers = peers_among(case["libraries"]) if peers is None else peers
    results = {name: r for name, r in case["libraries"].items() if name in (OURS, *peers)}
    ours = results.get(OURS, {"status": "not run"})
    finished = {name: r.get(which, r["seconds"]) for name, r in results.items() if r["status"] in FINISHED}
    own = finished.pop(OURS, float("nan"))
    fit = {name: s for name, s in finished.items() if not certified_only or results[name]["status"] == "certified"}
    killed = [name for name, r in results.items() if name != OURS and r["status"] == "killed"]
    if ours["status"] in FINISHED:
        if fit:
            fastest = min(fit, key=lambda name: fit[name])
            return Ratio(fit[fastest] / own, "", fastest)
        if not killed or finished:
            return None
        first = min(killed, key=lambda name: at_least(case, name))
        return Ratio(at_least(case, first) / own, ">", first)
    if ours["status"] == "killed" and fit:
        fastest = min(fit, key=lambda name: fit[name])
        return Ratio(fit[fastest] / at_least(case, OURS), "<", fastest)
    return None


def at_least(case: dict[str, Any], name: str) -> float:
    """Return the seconds after which a library was killed."""
    return float(case["libraries"][name].get("at_least", case["max_seconds"]))


def summarise(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Return geometric means and minima: against the fastest peer (also by group), the certified ones, each alone."""
    by_peer = {name: mean_ratio(cases, False, [name]) for name in peers_among(n for c in cases for n in c["libraries"])}
    groups = dict.fromkeys(case.get("group", "") for case in cases)
    return {
        "fastest_peer": mean_ratio(cases, certified_only=False),
        "fastest_certified_peer": mean_ratio(cases, certified_only=True),
        "first_fit": mean_ratio(cases, certified_only=False, which="first_seconds"),
        "groups": {group: mean_ratio([c for c in cases if c.get("group", "") == group], False) for group in groups},
        "baseline": {which: mean_ratio(cases, False, [BASELINE], which) for which in ("seconds", "cpu_seconds")},
        "over_limit": mean({case["name"]: over_limit(case) for case in cases if counts_for_limit(case)}, largest=True),
        "peers": {name: one for name, one in by_peer.items() if one is not None},
        "ours_not_certified": [
            case["name"] for case in cases if case["libraries"].get(OURS, {}).get("status") not in (None, "certified")
        ],
    }


def mean_ratio(
    cases: list[dict[str, Any]], certified_only: bool, peers: Collection[str] | None = None, which: str = "seconds"
) -> dict[str, Any] | None:
    """Return the mean of `ratio` over cases."""
    return mean({case["name"]: ratio(case, certified_only, peers, which) for case in cases})


def counts_for_limit(case: dict[str, Any]) -> bool:
    """Return whether the kernel values of a case take long enough to compare a fit with them."""
    limit = case.get("limit")
    return bool(limit) and limit.get("kernel_seconds", 0.0) > MIN_LIMIT_SECONDS


def over_limit(case: dict[str, Any]) -> Ratio | None:
    """Return the time of maxmargin divided by the lower bound, None without either."""
    ours, limit = case["libraries"].get(OURS, {}), case.get("limit")
    if ours.get("status") not in FINISHED or not limit:
        return None
    return Ratio(ours["seconds"] / limit["seconds"], "", "limit")


def mean(by_case: dict[str, Ratio | None], largest: bool = False) -> dict[str, Any] | None:
    """Return the geometric mean of ratios, their number and the worst: the smallest, or the `largest`."""
    ratios = {name: found for name, found in by_case.items() if found is not None}
    if not ratios:
        return None
    worst = (max if largest else min)(ratios, key=lambda name: ratios[name].value)
    return {
        "cases": len(ratios),
        "bounds": sum(bool(found.bound) for found in ratios.values()),
        "geometric_mean": exp(sum(log(found.value) for found in ratios.values()) / len(ratios)),
        "worst": ratios[worst].value,
        "worst_case": worst,
    }
