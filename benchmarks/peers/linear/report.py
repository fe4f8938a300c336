"""Report of a linear suite: a table for each gap, with ratios to LIBLINEAR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.libraries import BASELINE, OURS, peers_among
from benchmarks.peers.linear.libraries import LIBRARIES
from benchmarks.peers.report import (
    absent,
    first_fits,
    peers_of,
    ratio_text,
    seconds_text,
    where_and_when,
    write_json,
)
from benchmarks.peers.summary import FINISHED, Ratio, at_least, mean, mean_ratio, ratio, times_text
from benchmarks.peers.verification import TOLERANCE_FACTOR

#: The interfaces of LIBLINEAR, of which the faster counts.
LIBLINEAR = tuple(name for name, library in LIBRARIES.items() if library.is_liblinear)


def write_linear_report(benchmark: dict[str, Any], folder: Path, stem: str) -> None:
    """Write `stem`.json and `stem`.md."""
    benchmark["summary"] = {f"{gap:g}": summarise_gap(cases) for gap, cases in by_gap(benchmark["cases"]).items()}
    write_json(benchmark, folder, stem)
    (folder / f"{stem}.md").write_text(markdown(benchmark), encoding="utf-8")


def by_gap(entries: list[dict[str, Any]]) -> dict[float, list[dict[str, Any]]]:
    """Return the entries of each gap."""
    return {gap: [e for e in entries if e["target"] == gap] for gap in dict.fromkeys(e["target"] for e in entries)}


def over_liblinear(entry: dict[str, Any]) -> Ratio | None:
    """Return the time of LIBLINEAR divided by that of maxmargin, to the same gap."""
    return ratio(entry, certified_only=True, peers=LIBLINEAR)


def pass_over_limit(entry: dict[str, Any]) -> float | None:
    """Return the time of one pass of maxmargin divided by its lower bound, if it was measured."""
    return None if not entry["one_pass"] else float(entry["one_pass"] / entry["limit"]["seconds"])


def summarise_gap(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means of the ratios for one gap: to LIBLINEAR in total and by C, and to each peer alone."""
    names = peers_among(name for entry in entries for name in entry["libraries"])
    alone = {name: mean_ratio(entries, True, [name]) for name in names}
    groups = dict.fromkeys(entry.get("group", "") for entry in entries)
    return {
        "liblinear": mean({e["name"]: over_liblinear(e) for e in entries}),
        "liblinear_by_C": {
            f"{C:g}": mean({e["name"]: over_liblinear(e) for e in entries if e["C"] == C})
            for C in sorted({e["C"] for e in entries})
        },
        "groups": {
            group: mean_ratio([e for e in entries if e.get("group", "") == group], True, LIBLINEAR) for group in groups
        },
        "first_fit": mean_ratio(entries, True, LIBLINEAR, "first_seconds"),
        "baseline": {which: mean_ratio(entries, True, [BASELINE], which) for which in ("seconds", "cpu_seconds")},
        "without_ratio": [e["name"] for e in entries if over_liblinear(e) is None],
        "peers": {name: found for name, found in alone.items() if found is not None},
        "ours_not_certified": [
            e["name"] for e in entries if e["libraries"].get(OURS, {}).get("status") not in (None, "certified")
        ],
    }


def markdown(benchmark: dict[str, Any]) -> str:
    """Return the report as Markdown: tables and means for each gap, then remarks."""
    lines = [f"# Benchmark against other libraries: suite {benchmark['suite']}", ""]
    lines += [where_and_when(benchmark), "", _introduction(benchmark), ""]
    peers = peers_of(benchmark["cases"])
    for gap, entries in by_gap(benchmark["cases"]).items():
        lines += [f"## Seconds to a relative gap of {gap:g}", "", *_table(entries, peers), ""]
        lines += [*_means(benchmark["summary"][f"{gap:g}"]), ""]
    lines += ["## First fit in a fresh process", "", *first_fits(benchmark["cases"], peers), ""]
    lines += ["## One pass over the data", "", *_passes(benchmark["cases"]), ""]
    remarks = [*absent(benchmark["cases"]), *_remarks(benchmark["cases"], peers)]
    return "\n".join([*lines, *(f"- {remark}" for remark in remarks)]).rstrip() + "\n"


def _introduction(benchmark: dict[str, Any]) -> str:
    often = sorted(
        {(e["name"].split("_C")[0], e["fits_per_process"]) for e in benchmark["cases"] if e["fits_per_process"] > 1}
    )
    many = f" (of {', '.join(name for name, _ in often)}: the median of {often[0][1]})" if often else ""
    worst = max((e["reference"]["relative_gap"] for e in benchmark["cases"] if e["reference"]), default=0.0)
    return (
        "Linear models with a regularised intercept, the same problem for all; several classes are one-vs-"
        f"rest. Medians of {benchmark['settings']['runs']} runs, every run in a fresh process; seconds of `fit` "
        f"alone, after a first fit{many}. Relative gap = (P(w, b) − D*) / P(w, b): P is the primal value of a "
        "library's weights, computed in float64, D* the dual value of maxmargin's certificate in a fit to a smaller "
        f"tolerance, so that the gap bounds the distance to the optimum (the gap of that fit is at most {worst:.1g}); "
        "with several classes both are sums over the binary models. A peer's tolerance is not a gap: each is run with "
        "the loosest of its own tolerances (half decades; sgd: epochs) that reaches the gap, and with the faster of "
        "its variants: scikit-learn with `dual=True` or `False`, LIBLINEAR's own interface with `-s 1` or `-s 2` "
        "(hinge: `-s 3`), whose nodes are created before the timed part, sgd with two step size rules. "
        f"maxmargin is given the gap. `!` marks a gap above {TOLERANCE_FACTOR:g} times the target, `>` the seconds "
        "after which a peer had not reached it, `~` a peer that was far behind in the search for its setting and "
        "was not timed again. The ratio is LIBLINEAR's seconds, through the faster interface, over "
        "maxmargin's (above 1: maxmargin is faster). Memory is what maxmargin's fit allocated besides the data, in "
        "parentheses the size of the data. The limit of one pass is the time to read dense data once, or to gather "
        "a weight for each value of sparse data, measured on the same computer; a pass of maxmargin is one of "
        "coordinate ascent over all samples, or a gap evaluation, for one binary problem."
    )


def _table(entries: list[dict[str, Any]], peers: list[str]) -> list[str]:
    head = ["case", "group", "n x d", "classes", "C", OURS, *peers, "ratio", "memory, MB"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    return lines + ["| " + " | ".join(_row(entry, peers)) + " |" for entry in entries]


def _row(entry: dict[str, Any], peers: list[str]) -> list[str]:
    ours = entry["libraries"].get(OURS, {})
    memory = f"{ours['peak_mb'] - ours['before_mb']:,.0f}" if "peak_mb" in ours else "–"
    return [
        entry["name"].rpartition("_C")[0],
        entry.get("group", "–"),
        _size(entry),
        str(entry["classes"]),
        f"{entry['C']:g}",
        *(_cell(entry, name) for name in (OURS, *peers)),
        ratio_text(over_liblinear(entry)),
        f"{memory} ({entry['limit']['data_mb']:,.0f})",
    ]


def _size(entry: dict[str, Any]) -> str:
    return f"{entry['rows']:,} x {entry['features']:,}{' sparse' if entry['sparse'] else ''}"


def _passes(entries: list[dict[str, Any]]) -> list[str]:
    """Return a table of passes, with a line for each data set."""
    lines = ["| data | n x d | MB | limit | maxmargin | maxmargin / limit |", "|---|" + "---:|" * 5]
    for entry in {e["name"]: e for e in entries if pass_over_limit(e) is not None}.values():
        limit = f"{seconds_text(entry['limit']['seconds'])} ({entry['limit']['way']})"
        cells = [entry["name"].rpartition("_C")[0], _size(entry), f"{entry['limit']['data_mb']:,.1f}", limit]
        cells += [seconds_text(entry["one_pass"]), f"{pass_over_limit(entry):.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(entry: dict[str, Any], name: str) -> str:
    result = entry["libraries"].get(name, {"status": "not run"})
    if result["status"] == "killed":
        return f"> {at_least(entry, name):.3g}"
    if result["status"] not in FINISHED:
        return "failed" if result["status"] == "failed" else "–"
    mark = f" ! {result['relative_gap']:.0e}" if result["status"] == "stopped short" else ""
    return f"{'~ ' if result.get('from_search') else ''}{seconds_text(result['seconds'])}{mark}"


def _means(summary: dict[str, Any]) -> list[str]:
    lines = []
    if summary["liblinear"]:
        lines.append(f"Against LIBLINEAR: {_mean_text(summary['liblinear'])}.  ")
    for C, found in summary["liblinear_by_C"].items():
        if found:
            lines.append(f"At C = {C}: {_mean_text(found)}.  ")
    for group, found in summary["groups"].items():
        if found and len(summary["groups"]) > 1:
            lines.append(f"Cases {group}: {_mean_text(found)}.  ")
    if summary["first_fit"]:
        lines.append(f"First fits: {_mean_text(summary['first_fit'])}.  ")
    for which, found in summary["baseline"].items():
        if found:
            lines.append(f"Against {BASELINE}, another version of maxmargin, {which}: {_mean_text(found)}.  ")
    alone = [f"{name} {_mean_text(found)}" for name, found in summary["peers"].items()]
    if alone:
        lines.append(f"Against each peer alone: {'; '.join(alone)}.  ")
    if summary["without_ratio"]:
        lines.append(f"No ratio to LIBLINEAR on: {', '.join(summary['without_ratio'])}.  ")
    if summary["ours_not_certified"]:
        lines.append(f"maxmargin was not certified on: {', '.join(summary['ours_not_certified'])}.")
    return lines


def _mean_text(found: dict[str, Any]) -> str:
    bounds = f", {found['bounds']} of them bounds" if found["bounds"] else ""
    return (
        f"geometric mean **{times_text(found['geometric_mean'])}** over {found['cases']}{bounds}, "
        f"worst {times_text(found['worst'])} ({found['worst_case']})"
    )


def _remarks(entries: list[dict[str, Any]], peers: list[str]) -> list[str]:
    lines = []
    for gap, some in by_gap(entries).items():
        for name in (OURS, *peers):
            results = {entry["name"]: entry["libraries"].get(name, {"status": "not run"}) for entry in some}
            missed = [f"{case} ({r['reason']})" for case, r in results.items() if r["status"] == "killed"]
            if missed:
                lines.append(f"{name} did not reach {gap:g} on {'; '.join(missed)}")
            for case, result in results.items():
                notes = [result["reason"]] if result["status"] in ("failed", "stopped short") else []
                lines += [f"{case} to {gap:g}, {name}: {note}" for note in [*notes, *result.get("remarks", [])]]
    return lines
