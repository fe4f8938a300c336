"""The command line of the race.

python -m benchmarks.race --data ../shared/data --suite kernel
python -m benchmarks.race --data ../shared/data --suite kernel --cases a9a,usps --peers scikit-learn,sklearnex
python -m benchmarks.race --data ../shared/data --growth
python -m benchmarks.race --data ../shared/data --curves covtype_20k
python -m benchmarks.race --quick
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.race.announce import Announcer
from benchmarks.race.cases import SUITES, Case
from benchmarks.race.contestants import CONTESTANTS, OURS
from benchmarks.race.curves import run_curves
from benchmarks.race.growth import who_goes_on
from benchmarks.race.launch import restrict
from benchmarks.race.machine import command, describe_machine
from benchmarks.race.pictures import draw
from benchmarks.race.report import write_report
from benchmarks.race.rounds import Settings, run_case

#: Peers by suite where not all take part: a process per fit of milliseconds is for those who are quick to start.
PEERS = {"small": ["scikit-learn", "sklearnex", "libsvm"], "quick": ["scikit-learn"]}


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    settings = settings_of(args)
    suite = "quick" if args.quick else "growth" if args.growth else args.suite
    contestants = [OURS, *(args.peers or PEERS.get(suite, [name for name in CONTESTANTS if name != OURS]))]
    chosen = cases_of(suite, args.data, args.cases)
    race = {
        "suite": suite,
        "date": datetime.now(UTC).date().isoformat(),
        "command": command(),
        "machine": describe_machine(settings.threads),
        "settings": asdict(settings),
        "cases": [],
    }
    if args.curves:
        every = [case for name in ("kernel", "large", "quick") for case in SUITES[name](args.data)]
        run_curves(pick(every, [args.curves])[0], contestants, settings, race, args.output)
        return
    run_race(race, chosen, contestants, settings, args.output, stem_of(args, suite), args.resume)


def run_race(
    race: dict[str, Any],
    cases: list[Case],
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
    announcer = Announcer(len(cases))
    with announcer:
        for case in cases:
            if case.name not in done:
                going, left_out = contestants, {}
                if race["suite"] == "growth":
                    going, left_out = who_goes_on(race["cases"], contestants, case, settings)
                result = run_case(case, going, settings, announcer.say)
                result["contestants"].update(left_out)
                race["cases"].append(result)
                write_report(race, output, stem)
                announcer.tell(result)
            announcer.advance()
    write_report(race, output, stem)
    for picture in draw(race, output, stem):
        announcer.show(picture)
    announcer.show(output / f"{stem}.md")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.race", description="Race maxmargin against its peers, with a referee."
    )
    add = parser.add_argument
    add("--data", type=Path, default=Path("../shared/data"), help="folder with the data files")
    add("--suite", choices=[name for name in SUITES if name not in ("growth", "quick")], default="kernel")
    add("--quick", action="store_true", help="tiny cases that need no data, to see that everything runs")
    add("--growth", action="store_true", help="growth with n on covtype instead of a suite")
    add("--curves", metavar="CASE", help="seconds against duality gap on one two-class case instead of a suite")
    add("--cases", type=_names, help="only these cases, separated by commas")
    add("--peers", type=_names, help=f"only these peers of {', '.join(n for n in CONTESTANTS if n != OURS)}")
    add("--runs", type=int, default=3, help="fits of each contestant and case, each in a process of its own")
    add("--threads", type=int, help="cores for all; by default those that may be used")
    add("--max-seconds", nargs="+", default=["600"], metavar="SECONDS or CASE=SECONDS", help="limit on a fit")
    add("--once-above", type=float, default=float("inf"), metavar="SECONDS",
        help="do not repeat a fit that took longer than this")  # fmt: skip
    add("--output", type=Path, default=Path(__file__).parent / "results", help="folder for reports and pictures")
    add("--resume", action="store_true", help="keep the cases that are already in the report of the suite")
    args = parser.parse_args(arguments)
    unknown = [name for name in args.peers or [] if name not in CONTESTANTS]
    if unknown:
        parser.error(f"no such peer: {', '.join(unknown)}; there are {', '.join(CONTESTANTS)}")
    return args


def settings_of(args: argparse.Namespace) -> Settings:
    """Return the settings that the command line asks for, and take no more cores than it allows."""
    limits = [text.rpartition("=") for text in args.max_seconds]
    return Settings(
        runs=args.runs,
        threads=restrict(args.threads),
        max_seconds=next((float(seconds) for case, _, seconds in limits if not case), 600.0),
        case_seconds={case: float(seconds) for case, _, seconds in limits if case},
        once_above=args.once_above,
    )


def cases_of(suite: str, folder: Path, wanted: list[str] | None) -> list[Case]:
    """Return the cases of a suite, or some of them."""
    every = SUITES[suite](folder)
    return pick(every, wanted) if wanted else every


def pick(cases: list[Case], wanted: list[str]) -> list[Case]:
    """Return cases by name."""
    by_name = {case.name: case for case in cases}
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise SystemExit(f"no such case: {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in wanted]


def stem_of(args: argparse.Namespace, suite: str) -> str:
    """Return the name of the report: some cases of a suite do not overwrite the report of all, but may add to it."""
    return f"{suite}-selection" if args.cases and not args.resume else suite


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    main()
