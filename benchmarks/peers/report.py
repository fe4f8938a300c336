"""Reports of the kernel suites: JSON with all data, Markdown with tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from benchmarks.peers.libraries import OURS
from benchmarks.peers.summary import FINISHED, Ratio, at_least, ratio, summarise
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
    remarks = [*absent(benchmark["cases"]), *_remarks(benchmark["cases"], peers)]
    lines += [f"- {remark}" for remark in remarks]
    return "\n".join(lines).rstrip() + "\n"


def peers_of(cases: list[dict[str, Any]]) -> list[str]:
    """Return the peers that ran at least once, in order."""
    names = dict.fromkeys(name for case in cases for name in case["libraries"] if name != OURS)
    return [n for n in names if any(case["libraries"].get(n, {}).get("status") != "failed" for case in cases)]


def _introduction(benchmark: dict[str, Any]) -> list[str]:
    settings = benchmark["settings"]
    many = max((case["fits_per_process"] for case in benchmark["cases"]), default=1)
    each = f", each of {many} fits in one process" if many > 1 else ""
    return [
        where_and_when(benchmark),
        "",
        f"RBF kernel, tolerance {settings['tolerance']:g}, medians of {settings['runs']} runs{each}, every run "
        f"in a fresh process; seconds of `fit` alone. Peers have a cache of {settings['cache_mb']} MB, maxmargin its "
        "default. scikit-learn can only use one core; LIBSVM's nodes are created before the timed "
        "part. Before each fit memory is touched and released, so that no library waits for the host of a virtual "
        "machine. Every solution "
        f"is verified in float64: `!` marks a violation above {TOLERANCE_FACTOR:g} tolerances and its value, `>` a fit "
        "that was killed. S is the number of support vectors; limit the time to compute the kernel values of all "
        "samples with them, to factorise the free part and to read the data, measured on the same computer. Ratios are "
        "the time of the fastest peer divided by that of maxmargin, among all peers and among those that met the "
        "tolerance. Memory is the peak of maxmargin's process, in parentheses that of the fit itself.",
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
    head = ["case", "n x d", "classes", "C", "S", "limit", OURS, *peers]
    head += ["ratio, all", "ratio, certified", "fit / limit", "values / (n S)", "memory, MB"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(_row(case, peers)) + " |" for case in cases]


def _row(case: dict[str, Any], peers: list[str]) -> list[str]:
    ours, limit = case["libraries"].get(OURS, {"status": "not run"}), case["limit"]
    done = ours["status"] in FINISHED
    over_limit = efficiency = memory = "–"
    if done:
        memory = f"{ours['peak_mb']:,.0f} ({ours['peak_mb'] - ours['before_mb']:,.0f})"
    if done and limit:
        over_limit = f"{ours['seconds'] / limit['seconds']:.1f}"
        if ours["evaluations"]:
            efficiency = f"{ours['evaluations'] / limit['values']:.2f}"
    return [
        case["name"],
        f"{case['rows']:,} x {case['features']:,}{' sparse' if case['sparse'] else ''}",
        str(case["classes"]),
        f"{case['C']:g}",
        f"{limit['support']:,}" if limit else "–",
        seconds_text(limit["seconds"]) if limit else "–",
        *(_cell(case, name) for name in (OURS, *peers)),
        ratio_text(ratio(case, certified_only=False)),
        ratio_text(ratio(case, certified_only=True)),
        over_limit,
        efficiency,
        memory,
    ]


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
        found = summary[key]
        if found is None:
            continue
        bounds = f", {found['bounds']} of them bounds from the time limit" if found["bounds"] else ""
        lines.append(
            f"Against {who}: geometric mean **{found['geometric_mean']:.2f}** over {found['cases']} cases{bounds}; "
            f"worst {found['worst']:.2f} ({found['worst_case']}).  "
        )
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
