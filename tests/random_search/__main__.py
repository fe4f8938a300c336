"""Fit random estimators to random data and check every result against independent evaluations.

    python -m tests.random_search --minutes 10                          everything, extreme scales included
    python -m tests.random_search --problems 10000 --enclosure          certificates against exact values only
    python -m tests.random_search --seed 3 --number 1234                one case again

The cases are determined by the seed and a number, whatever the machine. A finding is printed with the code that makes
it again. Exit status: 0 without findings, 1 with.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does: the references of the tests

from .cases import ESTIMATORS, random_case
from .checks import Report, examine

#: Every third case of a full search has extreme values.
EXTREME_EVERY = 3


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
    started, number, totals, kinds = time.perf_counter(), options.first, Counter[str](), Counter[str]()
    slowest: Report | None = None
    while not _done(options, number - options.first, time.perf_counter() - started):
        extreme = not options.enclosure and (options.extreme or number % EXTREME_EVERY == 0)
        report = examine(random_case(options.seed, number, extreme, options.estimator), options.enclosure)
        slowest = report if slowest is None or report.wall > slowest.wall else slowest
        totals.update(fits=1, refused=bool(report.refused), certificates=report.certificates, multiple=report.multiple)
        for kind, sentence in report.findings:
            kinds[kind] += 1
            print(f"\n[{kind}] {report.case}\n  {sentence}\n  {report.case.snippet}", flush=True)
        number += 1
    seconds = time.perf_counter() - started
    print(
        f"\n{totals['fits']} fits in {seconds:.0f} s ({60 * totals['fits'] / max(seconds, 1e-9):.0f} a minute), "
        f"{totals['refused']} refused with an error, {totals['certificates']} certificates compared with exact values "
        f"({totals['multiple']} in multiple precision), {sum(kinds.values())} findings"
        + (f": {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}" if kinds else "")
    )
    if slowest is not None:
        print(f"slowest, {slowest.wall:.1f} s: {slowest.case}")
    return sum(kinds.values())


def _done(options: argparse.Namespace, cases: int, seconds: float) -> bool:
    enough = options.problems is not None and cases >= options.problems
    return enough or (options.minutes is not None and seconds >= 60 * options.minutes)


if __name__ == "__main__":
    raise SystemExit(main())
