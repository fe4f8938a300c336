"""The result of a linear suite in words: a table for each gap, with what the ratios to LIBLINEAR come to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.race.contestants import OURS
from benchmarks.race.linear.contestants import CONTESTANTS
from benchmarks.race.referee import LENIENCE
from benchmarks.race.report import absent, peers_of, ratio_text, seconds_text, where_and_when, write_json
from benchmarks.race.summary import FINISHED, Ratio, at_least, mean, ratio, times_text

#: The faces of LIBLINEAR: the faster of them is what must be beaten.
LIBLINEAR = tuple(name for name, contestant in CONTESTANTS.items() if contestant.is_liblinear)


def write_linear_report(race: dict[str, Any], folder: Path, stem: str) -> None:
    """Write `stem`.json and `stem`.md."""
    race["summary"] = {f"{gap:g}": summarise_gap(cases) for gap, cases in by_gap(race["cases"]).items()}
    write_json(race, folder, stem)
    (folder / f"{stem}.md").write_text(markdown(race), encoding="utf-8")


def by_gap(entries: list[dict[str, Any]]) -> dict[float, list[dict[str, Any]]]:
    """Return the entries of each gap."""
    return {gap: [e for e in entries if e["target"] == gap] for gap in dict.fromkeys(e["target"] for e in entries)}


def over_liblinear(entry: dict[str, Any]) -> Ratio | None:
    """Return LIBLINEAR's seconds over ours, both to the same gap."""
    return ratio(entry, certified_only=True, peers=LIBLINEAR)


def pass_over_limit(entry: dict[str, Any]) -> float | None:
    """Return the seconds of one of our passes over what a pass must cost, where that was measured."""
    return None if not entry["one_pass"] else float(entry["one_pass"] / entry["limit"]["seconds"])


def summarise_gap(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the ratios of one gap come to: to LIBLINEAR in all and by C, and to each peer alone."""
    names = [name for name in dict.fromkeys(n for e in entries for n in e["contestants"]) if name != OURS]
    alone = {name: mean({e["name"]: ratio(e, True, [name]) for e in entries}) for name in names}
    return {
        "liblinear": mean({e["name"]: over_liblinear(e) for e in entries}),
        "liblinear_by_C": {
            f"{C:g}": mean({e["name"]: over_liblinear(e) for e in entries if e["C"] == C})
            for C in sorted({e["C"] for e in entries})
        },
        "without_ratio": [e["name"] for e in entries if over_liblinear(e) is None],
        "peers": {name: found for name, found in alone.items() if found is not None},
        "ours_not_certified": [
            e["name"] for e in entries if e["contestants"].get(OURS, {}).get("status") not in (None, "certified")
        ],
    }


def markdown(race: dict[str, Any]) -> str:
    """Return the report as Markdown: a table and means for each gap, then remarks."""
    lines = [f"# The race: {race['suite']}", "", where_and_when(race), "", _introduction(race), ""]
    peers = peers_of(race["cases"])
    for gap, entries in by_gap(race["cases"]).items():
        lines += [f"## Seconds to a relative gap of {gap:g}", "", *_table(entries, peers), ""]
        lines += [*_means(race["summary"][f"{gap:g}"]), ""]
    lines += ["## One pass over the data", "", *_passes(race["cases"]), ""]
    remarks = [*absent(race["cases"]), *_remarks(race["cases"], peers)]
    return "\n".join([*lines, *(f"- {remark}" for remark in remarks)]).rstrip() + "\n"


def _introduction(race: dict[str, Any]) -> str:
    often = sorted(
        {(e["name"].split("_C")[0], e["fits_per_process"]) for e in race["cases"] if e["fits_per_process"] > 1}
    )
    many = f" (of {', '.join(name for name, _ in often)}: the median of {often[0][1]} after a warm-up)" if often else ""
    worst = max((e["reference"]["relative_gap"] for e in race["cases"] if e["reference"]), default=0.0)
    return (
        "Linear machines with a regularised bias, the same problem for all; of many classes each against the "
        f"rest. Medians of {race['settings']['runs']} runs, every run in a fresh process; seconds of `fit` "
        f"alone{many}. Relative gap = (P(w, b) − D*) / P(w, b): P is the primal value of a contestant's weights, "
        "computed in float64, D* the dual value of maxmargin's certificate in a fit to a finer tolerance, so "
        f"that the gap is at least the distance from the optimum (that fit's own gap is at most {worst:.1g}); of "
        "many classes both are sums over the machines. A peer's tolerance is not a gap: each is run with the "
        "loosest of its own tolerances (half decades; sgd: epochs) that reaches the gap, and with the faster of "
        "its variants: scikit-learn with `dual=True` or `False`, LIBLINEAR's own interface with `-s 1` or `-s 2` "
        "(hinge: `-s 3`), whose nodes are made before the clock starts, sgd with two rules for its steps. "
        f"maxmargin is told the gap. `!` marks a gap above {LENIENCE:g} times the wanted one, `>` the seconds "
        "after which a peer had not reached it, `~` a peer that was far behind in the search for its setting and "
        "was not timed again. The ratio is LIBLINEAR's seconds, through whichever interface was faster, over "
        "maxmargin's (above 1: maxmargin is faster). Memory is what maxmargin's fit took beyond the data, in "
        "brackets the size of the data. The limit of one pass is the time to read dense data once, or to gather "
        "a weight for each value of sparse data, measured on the spot; maxmargin's pass is one of coordinate "
        "ascent with all samples in play, or a look at all samples, of one class."
    )


def _table(entries: list[dict[str, Any]], peers: list[str]) -> list[str]:
    head = ["case", "n x d", "classes", "C", OURS, *peers, "ratio", "memory, MB"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return lines + ["| " + " | ".join(_row(entry, peers)) + " |" for entry in entries]


def _row(entry: dict[str, Any], peers: list[str]) -> list[str]:
    ours = entry["contestants"].get(OURS, {})
    memory = f"{ours['peak_mb'] - ours['before_mb']:,.0f}" if "peak_mb" in ours else "–"
    return [
        entry["name"].rpartition("_C")[0],
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
    result = entry["contestants"].get(name, {"status": "not run"})
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
            results = {entry["name"]: entry["contestants"].get(name, {"status": "not run"}) for entry in some}
            missed = [f"{case} ({r['reason']})" for case, r in results.items() if r["status"] == "killed"]
            if missed:
                lines.append(f"{name} did not reach {gap:g} on {'; '.join(missed)}")
            for case, result in results.items():
                notes = [result["reason"]] if result["status"] in ("failed", "stopped short") else []
                lines += [f"{case} to {gap:g}, {name}: {note}" for note in [*notes, *result.get("remarks", [])]]
    return lines
