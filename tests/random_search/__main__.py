"""Fit random estimators to random data and check every result against independent evaluations.

    python -m tests.random_search --minutes 10                          everything, extreme scales included
    python -m tests.random_search --problems 10000 --enclosure          certificates against exact values only
    python -m tests.random_search --seed 3 --number 1234                one case again

The cases are determined by the seed and a number, whatever the machine. A finding is printed with the code that makes
it again; a fit that does not end within 10 s of CPU time is one, and the search continues with the next case. Exit
status: 0 without findings, 1 with.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does: the references of the tests

from .cases import ESTIMATORS, Case, random_case
from .checks import Report
from .worker import Worker

#: Every third case of a full search has extreme values.
EXTREME_EVERY = 3

#: Cases between two lines of progress.
PROGRESS_EVERY = 250


def main(arguments: list[str] | None = None) -> int:
    """Run the search."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.random_search", description="Random fits against exact values."
    )
    parser.add_argument("--minutes", type=float, default=None, help="how long to search")
    parser.add_argument("--problems", type=int, default=None, help="how many cases to search")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--number", type=int, default=None, help="examine one case")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument(
        "--enclosure", action="store_true", help="ordinary scales; only certificates against exact values"
    )
    parser.add_argument("--extreme", action="store_true", help="only cases with extreme values")
    parser.add_argument("--estimator", choices=sorted(ESTIMATORS), default=None, help="only one estimator")
    options = parser.parse_args(arguments)
    if options.number is not None:
        options.first, options.problems = options.number, 1
    if options.minutes is None and options.problems is None:
        options.minutes = 1.0
    return 1 if search(options) else 0


def search(options: argparse.Namespace) -> int:
    """Examine cases until the time or the number of cases is reached; return the number of findings."""
    print(f"seed {options.seed}, from case {options.first}", flush=True)
    started, number, totals = time.perf_counter(), options.first, Totals()
    with Worker() as worker:
        while not _done(options, number - options.first, time.perf_counter() - started):
            extreme = not options.enclosure and (options.extreme or number % EXTREME_EVERY == 0)
            case = random_case(options.seed, number, extreme, options.estimator)
            report = worker.examine(case, options.enclosure)
            totals.add(case, report)
            for kind, sentence in report.findings:
                print(f"\n[{kind}] {case}\n  {sentence}\n  {case.snippet}", flush=True)
            number += 1
            if totals.fits % PROGRESS_EVERY == 0:
                print(f"next case {number}: {totals.sentence(time.perf_counter() - started)}", flush=True)
    print(f"\n{totals.sentence(time.perf_counter() - started)}")
    if totals.fits:
        print(f"slowest, {totals.longest:.1f} s: {totals.slowest}")
    return totals.kinds.total()


@dataclass
class Totals:
    """What a search has found so far."""

    fits: int = 0
    refused: int = 0
    certificates: int = 0
    multiple: int = 0
    longest: float = -1.0
    slowest: str = ""
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, case: Case, report: Report) -> None:
        """Count a case."""
        self.fits += 1
        self.refused += bool(report.refused)
        self.certificates += report.certificates
        self.multiple += report.multiple
        self.kinds.update(kind for kind, _ in report.findings)
        if report.wall > self.longest:
            self.longest, self.slowest = report.wall, str(case)

    def sentence(self, seconds: float) -> str:
        """Return the counts."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        return (
            f"{self.fits} fits in {seconds:.0f} s ({60 * self.fits / max(seconds, 1e-9):.0f} a minute), "
            f"{self.refused} refused with an error, {self.certificates} certificates compared with exact values "
            f"({self.multiple} in multiple precision), {self.kinds.total()} findings" + (f": {kinds}" if kinds else "")
        )


def _done(options: argparse.Namespace, cases: int, seconds: float) -> bool:
    enough = options.problems is not None and cases >= options.problems
    return enough or (options.minutes is not None and seconds >= 60 * options.minutes)


if __name__ == "__main__":
    raise SystemExit(main())
