"""Reports of the kernel suites: JSON with all data, Markdown with tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from benchmarks.peers.libraries import BASELINE, OURS
from benchmarks.peers.summary import (
    FINISHED,
    MIN_LIMIT_SECONDS,
    Ratio,
    at_least,
    counts_for_limit,
    over_limit,
    ratio,
    summarise,
)
from benchmarks.peers.verification import TOLERANCE_FACTOR


def write_report(benchmark: dict[str, Any], folder: Path, stem: str) -> None:
    """Write `stem`.json and `stem`.md."""
    benchmark["summary"] = summarise(benchmark["cases"])
    write_json(benchmark, folder, stem)
    (folder / f"{stem}.md").write_text(markdown(benchmark), encoding="utf-8")


def write_json(benchmark: dict[str, Any], folder: Path, stem: str) -> None:
    """Write all results as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(_plain(benchmark), indent=1, allow_nan=False)
    (folder / f"{stem}.json").write_text(text + "\n", encoding="utf-8")


def markdown(benchmark: dict[str, Any]) -> str:
    """Return the report as Markdown: table, means, remarks, environment."""
    peers = peers_of(benchmark["cases"])
    lines = [f"# Benchmark against other libraries: suite {benchmark['suite']}", "", *_introduction(benchmark), ""]
    lines += [*_table(benchmark["cases"], peers), "", *_means(benchmark["summary"]), ""]
    lines += ["## First fit in a fresh process", "", *first_fits(benchmark["cases"], peers), ""]
    lines += [*first_fit_mean(benchmark["summary"]), ""]
    if BASELINE in peers:
        lines += ["## Compared with another version of maxmargin", "", *versions(benchmark["cases"]), ""]
    remarks = [*absent(benchmark["cases"]), *_remarks(benchmark["cases"], peers)]
    lines += [f"- {remark}" for remark in remarks]
    return "\n".join(lines).rstrip() + "\n"


def peers_of(cases: list[dict[str, Any]]) -> list[str]:
    """Return the peers that ran at least once, in order; an older version of maxmargin counts as one."""
    names = dict.fromkeys(name for case in cases for name in case["libraries"] if name != OURS)
    statuses = {name: {case["libraries"].get(name, {}).get("status", "failed") for case in cases} for name in names}
    return [name for name in names if statuses[name] != {"failed"}]


def _introduction(benchmark: dict[str, Any]) -> list[str]:
    settings = benchmark["settings"]
    many = max((case["fits_per_process"] for case in benchmark["cases"]), default=1)
    each = f", each the median of {many} fits after the first" if many > 1 else ", each after a first fit"
    kernels = ", ".join(dict.fromkeys(case.get("kernel", "rbf") for case in benchmark["cases"]))
    return [
        where_and_when(benchmark),
        "",
        f"Kernels: {kernels}; tolerance {settings['tolerance']:g}, medians of {settings['runs']} runs{each}, every run "
        f"in a fresh process; seconds of `fit` alone. A first fit above {settings['once_above']:g} s is not repeated "
        f"and counts itself. Peers have a cache of {settings['cache_mb']} MB, maxmargin its default. scikit-learn can "
        "only use one core; LIBSVM's nodes are created before the timed part. Before the first fit memory is touched "
        "and released, so that no library waits for the host of a virtual machine. Every solution "
        f"is verified in float64: `!` marks a violation above {TOLERANCE_FACTOR:g} tolerances and its value, `>` a fit "
        "that was killed. S is the number of support vectors; limit the time to compute the kernel values of all "
        "samples with them, to factorise the free part and to read the data, measured on the same computer. Ratios are "
        "the time of the fastest peer divided by that of maxmargin, among all peers and among those that met the "
        "tolerance. Cases held aside played no part in tuning. Linear machines have a regularised intercept and "
        "the default tolerance of each library; their violation is the relative duality gap. Memory is the peak of "
        "maxmargin's process, in parentheses that of the fit itself.",
    ]


def where_and_when(benchmark: dict[str, Any]) -> str:
    """Return hardware, versions, date and command of a benchmark."""
    machine = benchmark["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    return (
        f"{machine['cpu']}, {machine['threads_used']} of {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"Python {machine['python']}, {versions}. {benchmark['date']}, `{benchmark['command']}`."
    )


def _table(cases: list[dict[str, Any]], peers: list[str]) -> list[str]:
    head = ["case", "group", "machine", "n x d", "classes", "C", "S", "limit", OURS, *peers]
    head += ["ratio, all", "ratio, certified", "fit / limit", "values / (n S)", "memory, MB"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|" + "---:|" * (len(head) - 3)]
    return lines + ["| " + " | ".join(_row(case, peers)) + " |" for case in cases]


def _row(case: dict[str, Any], peers: list[str]) -> list[str]:
    ours, limit = case["libraries"].get(OURS, {"status": "not run"}), case["limit"]
    done = ours["status"] in FINISHED
    efficiency = memory = "–"
    if done:
        memory = f"{ours['peak_mb']:,.0f} ({ours['peak_mb'] - ours['before_mb']:,.0f})"
    if done and limit and ours["evaluations"]:
        efficiency = f"{ours['evaluations'] / limit['values']:.2f}"
    to_limit = over_limit(case)
    return [
        case["name"],
        case.get("group", "–"),
        _machine(case),
        f"{case['rows']:,} x {case['features']:,}{' sparse' if case['sparse'] else ''}",
        str(case["classes"] or "–"),
        f"{case['C']:g}",
        f"{limit['support']:,}" if limit else "–",
        seconds_text(limit["seconds"]) if limit else "–",
        *(_cell(case, name) for name in (OURS, *peers)),
        ratio_text(ratio(case, certified_only=False)),
        ratio_text(ratio(case, certified_only=True)),
        "–" if to_limit is None else f"{to_limit.value:.1f}{'' if counts_for_limit(case) else ' *'}",
        efficiency,
        memory,
    ]


def _machine(case: dict[str, Any]) -> str:
    machine, kernel = case.get("machine", "SVC"), case.get("kernel", "rbf")
    return machine if kernel == "rbf" or machine.startswith("Linear") else f"{machine}, {kernel}"


def first_fits(cases: list[dict[str, Any]], peers: list[str]) -> list[str]:
    """Return a table of the first fits: seconds of each library, ratio, and maxmargin's first fit over a warm one."""
    head = ["case", OURS, *peers, "ratio", "first / warm"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for case in cases:
        ours = case["libraries"].get(OURS, {})
        over_warm = f"{ours['first_seconds'] / ours['seconds']:.2f}" if "first_seconds" in ours else "–"
        name = case["name"] + (f", to {case['target']:g}" if "target" in case else "")
        times = [case["libraries"].get(library, {}).get("first_seconds") for library in (OURS, *peers)]
        cells = ["–" if seconds is None else seconds_text(seconds) for seconds in times]
        first = ratio_text(ratio(case, certified_only=False, which="first_seconds"))
        lines.append("| " + " | ".join([name, *cells, first, over_warm]) + " |")
    return lines


def versions(cases: list[dict[str, Any]]) -> list[str]:
    """Return a table of this and another version of maxmargin: seconds of warm fits, of all cores, and first fits."""
    kinds = {"seconds": "warm", "cpu_seconds": "warm, CPU", "first_seconds": "first"}
    head = ["case", *(f"{kind}: {name}" for kind in kinds.values() for name in (OURS, BASELINE, "ratio"))]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for case in cases:
        both = [case["libraries"].get(name, {}) for name in (OURS, BASELINE)]
        if all(which in found for found in both for which in kinds):
            cells = [case["name"]]
            for which in kinds:
                ours, theirs = (found[which] for found in both)
                cells += [seconds_text(ours), seconds_text(theirs), f"{theirs / ours:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def first_fit_mean(summary: dict[str, Any]) -> list[str]:
    """Return a line with the mean ratio of first fits."""
    found = summary["first_fit"]
    return [f"Against the fastest peer: {mean_text(found)}."] if found else []


def mean_text(found: dict[str, Any]) -> str:
    """Return a geometric mean, its number of cases and the worst case."""
    bounds = f", {found['bounds']} of them bounds from the time limit" if found["bounds"] else ""
    return (
        f"geometric mean **{found['geometric_mean']:.2f}** over {found['cases']} cases{bounds}; "
        f"worst {found['worst']:.2f} ({found['worst_case']})"
    )


def _cell(case: dict[str, Any], name: str) -> str:
    result = case["libraries"].get(name, {"status": "not run"})
    if result["status"] == "certified":
        return seconds_text(result["seconds"])
    if result["status"] == "stopped short":
        return f"{seconds_text(result['seconds'])} ! {result['violation']:.0e}"
    if result["status"] == "killed":
        return f"> {at_least(case, name):.3g}"
    return "failed" if result["status"] == "failed" else "–"


def seconds_text(seconds: float) -> str:
    """Return seconds with three digits, in milliseconds below 0.1 s."""
    if seconds < 0.1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"


def ratio_text(found: Ratio | None) -> str:
    """Return a ratio, or a dash for none."""
    return "–" if found is None else str(found)


def _means(summary: dict[str, Any]) -> list[str]:
    lines = []
    for key, who in (("fastest_peer", "the fastest peer"), ("fastest_certified_peer", "the fastest certified peer")):
        if summary[key]:
            lines.append(f"Against {who}: {mean_text(summary[key])}.  ")
    for group, found in summary["groups"].items():
        if found and len(summary["groups"]) > 1:
            lines.append(f"Cases {group}, against the fastest peer: {mean_text(found)}.  ")
    if summary["over_limit"]:
        where = f"where the kernel values take more than {MIN_LIMIT_SECONDS * 1e3:g} ms (others: *)"
        lines.append(f"Fit / limit {where}: {mean_text(summary['over_limit'])}.  ")
    for which, found in summary["baseline"].items():
        if found:
            lines.append(f"Against {BASELINE}, another version of maxmargin, {which}: {mean_text(found)}.  ")
    alone = [
        f"{name} {mean['geometric_mean']:.2f} over {mean['cases']} (worst {mean['worst']:.2f}, {mean['worst_case']})"
        for name, mean in summary["peers"].items()
    ]
    if alone:
        lines.append(f"Against each peer alone, certified or not: {'; '.join(alone)}.")
    if summary["ours_not_certified"]:
        lines.append(f"maxmargin was not certified on: {', '.join(summary['ours_not_certified'])}.")
    return lines


def absent(cases: list[dict[str, Any]]) -> list[str]:
    """Return a line for each peer that never ran, with the reason."""
    names = dict.fromkeys(name for case in cases for name in case["libraries"])
    shown = {OURS, *peers_of(cases)}
    reasons = {n: next(c["libraries"][n]["reason"] for c in cases if n in c["libraries"]) for n in names}
    return [f"{name} did not run: {reason}" for name, reason in reasons.items() if name not in shown]


def _remarks(cases: list[dict[str, Any]], peers: list[str]) -> list[str]:
    lines = []
    for case in cases:
        for name in (OURS, *peers):
            result = case["libraries"].get(name, {})
            notes = [result["reason"]] if result.get("status") in ("failed", "killed", "left out") else []
            notes += result.get("remarks", [])
            if result.get("projected"):
                notes.append("infeasible coefficients, projected before they were verified")
            if result.get("different_solutions", 1) > 1:
                notes.append(f"{result['different_solutions']} different solutions; the worst was verified")
            lines += [f"{case['name']}, {name}: {note}" for note in notes if note]
    return lines


def _plain(value: Any) -> Any:
    """Return a value that JSON supports: infinities and NaNs as text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
