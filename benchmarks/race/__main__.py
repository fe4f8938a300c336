"""The command line of the race.

python -m benchmarks.race --data ../shared/data --suite kernel
python -m benchmarks.race --data ../shared/data --suite kernel --cases a9a,usps --peers scikit-learn,sklearnex
python -m benchmarks.race --data ../shared/data --suite linear --cases a9a,covtype_C100
python -m benchmarks.race --data ../shared/data --growth
python -m benchmarks.race --data ../shared/data --curves covtype_20k
python -m benchmarks.race --quick
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.race.announce import Announcer
from benchmarks.race.cases import SUITES, Case
from benchmarks.race.contestants import OURS
from benchmarks.race.curves import run_curves
from benchmarks.race.growth import who_goes_on
from benchmarks.race.launch import restrict
from benchmarks.race.leagues import LEAGUES
from benchmarks.race.linear.cases import LINEAR_SUITES, LinearCase
from benchmarks.race.linear.report import write_linear_report
from benchmarks.race.linear.rounds import TARGETS, run_linear_case
from benchmarks.race.machine import command, describe_machine
from benchmarks.race.pictures import draw
from benchmarks.race.report import write_report
from benchmarks.race.rounds import Settings, run_case

#: Peers by suite where not all take part: a process per fit of milliseconds is for those who are quick to start.
PEERS = {"small": ["scikit-learn", "sklearnex", "libsvm"], "quick": ["scikit-learn"]}

#: Seconds after which a fit is given up, and after which it is not repeated, by league.
MAX_SECONDS = {"kernel": 600.0, "linear": 40.0}
ONCE_ABOVE = {"kernel": float("inf"), "linear": 10.0}

EVERY_SUITE = {**SUITES, **LINEAR_SUITES}


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    suite = suite_of(args)
    league = LEAGUES["linear" if suite in LINEAR_SUITES else "kernel"]
    settings = settings_of(args, league.name)
    everyone = [name for name in league.contestants if name != OURS]
    contestants = [OURS, *(args.peers or PEERS.get(suite, everyone))]
    unknown = [name for name in contestants if name not in league.contestants]
    if unknown:
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(everyone)}")
    chosen = cases_of(suite, args.data, args.cases)
    race = {
        "suite": suite,
        "date": datetime.now(UTC).date().isoformat(),
        "command": command(),
        "machine": describe_machine(settings.threads),
        "settings": asdict(settings) | ({"targets": TARGETS} if league.name == "linear" else {}),
        "cases": [],
    }
    if args.curves:
        every = [case for name in ("kernel", "large", "quick") for case in SUITES[name](args.data)]
        run_curves(pick(every, [args.curves])[0], contestants, settings, race, args.output)
        return
    run_race(race, chosen, contestants, settings, args.output, stem_of(args, suite), args.resume)


def run_race(
    race: dict[str, Any],
    cases: Sequence[Case | LinearCase],
    contestants: list[str],
    settings: Settings,
    output: Path,
    stem: str,
    resume: bool,
) -> None:
    """Run cases one after the other; the report is written after each, so that an interruption loses one at most."""
    before = output / f"{stem}.json"
    if resume and before.exists():
        race["cases"] = json.loads(before.read_text(encoding="utf-8"))["cases"]
    done = {case["name"] for case in race["cases"]}
    write = write_linear_report if race["suite"] in LINEAR_SUITES else write_report
    announcer = Announcer(len(cases))
    with announcer:
        for case in cases:
            if case.name not in done:
                results = run_one(race, case, contestants, settings, announcer)
                race["cases"] += results
                write(race, output, stem)
                for result in results:
                    announcer.tell(result)
            announcer.advance()
    write(race, output, stem)
    for picture in draw(race, output, stem):
        announcer.show(picture)
    announcer.show(output / f"{stem}.md")


def run_one(
    race: dict[str, Any], case: Case | LinearCase, contestants: list[str], settings: Settings, announcer: Announcer
) -> list[dict[str, Any]]:
    """Run one case and return its results: one of a kernel machine, one for each gap of a linear one."""
    if isinstance(case, LinearCase):
        return run_linear_case(case, contestants, settings, announcer.say)
    going, left_out = contestants, {}
    if race["suite"] == "growth":
        going, left_out = who_goes_on(race["cases"], contestants, case, settings)
    result = run_case(case, going, settings, announcer.say)
    result["contestants"].update(left_out)
    return [result]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.race", description="Race maxmargin against its peers, with a referee."
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("../shared/data"), help="folder with the data files")
    add("--suite", choices=[name for name in EVERY_SUITE if name != "growth" and "quick" not in name], default="kernel")
    add("--quick", action="store_true", help="tiny cases of the suite's league that need no data, to see that all runs")
    add("--growth", action="store_true", help="growth with n on covtype instead of a suite")
    add("--curves", metavar="CASE", help="seconds against duality gap on one two-class case instead of a suite")
    add("--cases", type=_names, help="only these cases, separated by commas; of linear ones also without their `_C`")
    add("--peers", type=_names, help="only these peers, separated by commas")
    add("--runs", type=int, default=3, help="fits of each contestant and case, each in a process of its own")
    add("--threads", type=int, help="cores for all; by default those that may be used")
    add("--max-seconds", nargs="+", default=[], metavar="SECONDS or CASE=SECONDS",
        help="limit on a fit, 600 by default and 40 for linear ones")  # fmt: skip
    add("--once-above", type=float, metavar="SECONDS",
        help="do not repeat a fit that took longer than this; 10 by default for linear ones")  # fmt: skip
    add("--output", type=Path, default=Path(__file__).parent / "results", help="folder for reports and pictures")
    add("--resume", action="store_true", help="keep the cases that are already in the report of the suite")
    return parser.parse_args(arguments)


def suite_of(args: argparse.Namespace) -> str:
    """Return the suite that the command line means."""
    if args.quick:
        return "linear-quick" if args.suite in LINEAR_SUITES else "quick"
    return "growth" if args.growth else str(args.suite)


def settings_of(args: argparse.Namespace, league: str) -> Settings:
    """Return the settings that the command line asks for, and take no more cores than it allows."""
    limits = [text.rpartition("=") for text in args.max_seconds]
    return Settings(
        runs=args.runs,
        threads=restrict(args.threads),
        max_seconds=next((float(seconds) for case, _, seconds in limits if not case), MAX_SECONDS[league]),
        case_seconds={case: float(seconds) for case, _, seconds in limits if case},
        once_above=ONCE_ABOVE[league] if args.once_above is None else args.once_above,
    )


def cases_of(suite: str, folder: Path, wanted: list[str] | None) -> Sequence[Any]:
    """Return the cases of a suite, or some of them."""
    every = EVERY_SUITE[suite](folder)
    return pick(every, wanted) if wanted else every


def pick(cases: Sequence[Any], wanted: list[str]) -> list[Any]:
    """Return cases by name; a name without `_C` means all costs of its data."""
    found = {name: [case for case in cases if name in (case.name, case.name.rpartition("_C")[0])] for name in wanted}
    unknown = [name for name, some in found.items() if not some]
    if unknown:
        raise SystemExit(f"no such case: {', '.join(unknown)}; there are {', '.join(case.name for case in cases)}")
    return [case for some in found.values() for case in some]


def stem_of(args: argparse.Namespace, suite: str) -> str:
    """Return the name of the report: some cases of a suite do not overwrite the report of all, but may add to it."""
    return f"{suite}-selection" if args.cases and not args.resume else suite


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    main()
