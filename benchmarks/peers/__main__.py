"""Command line of the benchmark against other libraries.

python -m benchmarks.peers --data FOLDER --suite kernel
python -m benchmarks.peers --data FOLDER --suite kernel --cases a9a,usps --peers scikit-learn,sklearnex
python -m benchmarks.peers --data FOLDER --suite linear --cases a9a,covtype_C100
python -m benchmarks.peers --data FOLDER --suite machines
python -m benchmarks.peers --data FOLDER --suite machines --quick --baseline ../other/src
python -m benchmarks.peers --data FOLDER --growth
python -m benchmarks.peers --data FOLDER --curves covtype_20k
python -m benchmarks.peers --quick
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.peers.cases import Case
from benchmarks.peers.curves import run_curves
from benchmarks.peers.environment import command, describe_environment
from benchmarks.peers.growth import still_running
from benchmarks.peers.launch import restrict
from benchmarks.peers.libraries import BASELINE, OURS, peers_among
from benchmarks.peers.linear.cases import LINEAR_SUITES, LinearCase
from benchmarks.peers.linear.report import write_linear_report
from benchmarks.peers.linear.run_case import TARGETS, run_linear_case
from benchmarks.peers.plots import draw
from benchmarks.peers.problem_kinds import PROBLEM_KINDS
from benchmarks.peers.progress_display import ProgressDisplay
from benchmarks.peers.report import write_report
from benchmarks.peers.run_case import Settings, run_case
from benchmarks.peers.suites import EVERY_SUITE, SUITES

#: The peers of suites that do not run all: fits of milliseconds exclude libraries that start slowly.
PEERS = {
    "small": ["scikit-learn", "sklearnex", "libsvm"],
    "small-quick": ["scikit-learn"],
    "machines": ["scikit-learn", "sklearnex", "libsvm"],
    "machines-quick": ["scikit-learn", "sklearnex"],
    "quick": ["scikit-learn"],
}

#: Seconds after which a fit is killed, and above which it is not repeated, by kind of problem.
MAX_SECONDS = {"kernel": 600.0, "linear": 40.0}
ONCE_ABOVE = {"kernel": 10.0, "linear": 10.0}

#: Runs by default; the quick suites check a change and run once.
RUNS, QUICK_RUNS = 3, 1


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    suite = suite_of(args)
    kind = PROBLEM_KINDS["linear" if suite in LINEAR_SUITES else "kernel"]
    settings = settings_of(args, kind.name)
    all_peers = peers_among(kind.libraries)
    libraries = [OURS, *(PEERS.get(suite, all_peers) if args.peers is None else args.peers)]
    if args.baseline:
        libraries.insert(1, BASELINE)
        kind.libraries[BASELINE].environment = {"PYTHONPATH": str(args.baseline.resolve())}
    unknown = [name for name in libraries if name not in kind.libraries]
    if unknown:
        raise SystemExit(f"unknown peers: {', '.join(unknown)}; choose from {', '.join(all_peers)}")
    chosen = cases_of(suite, args.data, args.cases)
    benchmark = {
        "suite": suite,
        "date": datetime.now(UTC).date().isoformat(),
        "command": command(),
        "machine": describe_environment(settings.threads),
        "settings": asdict(settings) | ({"targets": TARGETS} if kind.name == "linear" else {}),
        "cases": [],
    }
    if args.curves:
        every = [case for name in ("kernel", "machines", "large", "quick") for case in SUITES[name](args.data)]
        run_curves(pick(every, [args.curves])[0], libraries, settings, benchmark, args.output)
        return
    run_benchmark(benchmark, chosen, libraries, settings, args.output, stem_of(args, suite), args.resume)


def run_benchmark(
    benchmark: dict[str, Any],
    cases: Sequence[Case | LinearCase],
    libraries: list[str],
    settings: Settings,
    output: Path,
    stem: str,
    resume: bool,
) -> None:
    """Run the cases and write the report after each, so that an interruption loses at most one."""
    before = output / f"{stem}.json"
    if resume and before.exists():
        benchmark["cases"] = json.loads(before.read_text(encoding="utf-8"))["cases"]
    done = {case["name"] for case in benchmark["cases"]}
    write = write_linear_report if benchmark["suite"] in LINEAR_SUITES else write_report
    display = ProgressDisplay(len(cases))
    with display:
        for case in cases:
            if case.name not in done:
                results = run_one(benchmark, case, libraries, settings, display)
                benchmark["cases"] += results
                write(benchmark, output, stem)
                for result in results:
                    display.print_case(result)
            display.advance()
    write(benchmark, output, stem)
    for plot in draw(benchmark, output, stem):
        display.print_path(plot)
    display.print_path(output / f"{stem}.md")


def run_one(
    benchmark: dict[str, Any],
    case: Case | LinearCase,
    libraries: list[str],
    settings: Settings,
    display: ProgressDisplay,
) -> list[dict[str, Any]]:
    """Run one case and return its results: one for a kernel model, one for each gap for a linear model."""
    if isinstance(case, LinearCase):
        return run_linear_case(case, libraries, settings, display.show_step)
    running, left_out = libraries, {}
    if benchmark["suite"] == "growth":
        running, left_out = still_running(benchmark["cases"], libraries, case, settings)
    result = run_case(case, running, settings, display.show_step)
    result["libraries"].update(left_out)
    return [result]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description="Benchmark maxmargin against other libraries; all solutions are verified.",
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), help="folder with the data files")
    add("--suite", choices=[name for name in EVERY_SUITE if name != "growth" and "quick" not in name], default="kernel")
    add(
        "--quick",
        action="store_true",
        help="a part of `small` or `machines` to check a change in minutes; of other suites tiny cases as a smoke test",
    )
    add(
        "--baseline",
        type=Path,
        metavar="FOLDER",
        help="also time another version of maxmargin: the folder that contains its package, with its extension",
    )
    add("--growth", action="store_true", help="time against the number of rows of covtype instead of a suite")
    add("--curves", metavar="CASE", help="time against duality gap on one two-class case instead of a suite")
    add("--cases", type=_names,
        help="only these cases, separated by commas; `a9a` selects a9a_C0.01, a9a_C1, …")  # fmt: skip
    add("--peers", type=_names, help="only these peers, separated by commas; an empty text for none")
    add("--runs", type=int, help="number of processes of each library and case; default 3, with --quick 1")
    add("--threads", type=int, help="number of cores; by default all that this process may use")
    add("--max-seconds", nargs="+", default=[], metavar="SECONDS or CASE=SECONDS",
        help="time limit of a fit; default 600, for linear suites 40")  # fmt: skip
    add("--once-above", type=float, metavar="SECONDS",
        help="do not repeat a fit that took longer; default 10")  # fmt: skip
    add("--output", type=Path, default=Path(__file__).parent / "results", help="folder for reports and plots")
    add("--resume", action="store_true", help="keep the cases that the report of the suite already contains")
    return parser.parse_args(arguments)


def suite_of(args: argparse.Namespace) -> str:
    """Return the suite that the command line selects."""
    if args.quick:
        if f"{args.suite}-quick" in SUITES:
            return f"{args.suite}-quick"
        return "linear-quick" if args.suite in LINEAR_SUITES else "quick"
    return "growth" if args.growth else str(args.suite)


def settings_of(args: argparse.Namespace, kind: str) -> Settings:
    """Return the settings of the command line, and restrict this process to the requested cores."""
    limits = [text.rpartition("=") for text in args.max_seconds]
    return Settings(
        runs=args.runs or (QUICK_RUNS if args.quick else RUNS),
        threads=restrict(args.threads),
        max_seconds=next((float(seconds) for case, _, seconds in limits if not case), MAX_SECONDS[kind]),
        case_seconds={case: float(seconds) for case, _, seconds in limits if case},
        once_above=ONCE_ABOVE[kind] if args.once_above is None else args.once_above,
    )


def cases_of(suite: str, folder: Path, wanted: list[str] | None) -> Sequence[Any]:
    """Return the cases of a suite, or the selected ones."""
    every = EVERY_SUITE[suite](folder)
    return pick(every, wanted) if wanted else every


def pick(cases: Sequence[Any], wanted: list[str]) -> list[Any]:
    """Return cases by name; a name without `_C` selects all costs of a data set."""
    found = {name: [case for case in cases if name in (case.name, case.name.rpartition("_C")[0])] for name in wanted}
    unknown = [name for name, some in found.items() if not some]
    if unknown:
        raise SystemExit(f"unknown cases: {', '.join(unknown)}; choose from {', '.join(case.name for case in cases)}")
    return [case for some in found.values() for case in some]


def stem_of(args: argparse.Namespace, suite: str) -> str:
    """Return the stem of the report files; a selection of cases does not overwrite the report of the whole suite."""
    return f"{suite}-selection" if args.cases and not args.resume else suite


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    main()
