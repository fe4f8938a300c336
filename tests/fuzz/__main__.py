"""Fuzz all readers of files: data, models, ranges, journals, and the native parsers.

    python -m tests.fuzz --minutes 10
    python -m tests.fuzz --minutes 1 csv npz native_text
    python -m tests.fuzz --replay crash-file csv

Prints executions, line coverage of the readers, and findings; exits with 1 if there is one. Python readers are fuzzed
with atheris (``pip install 'maxmargin[fuzz]'``) or, where it is not installed, with random mutations; native parsers
with libFuzzer under the address and undefined-behaviour sanitisers, which needs clang.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from . import native_fuzzer, python_fuzzer
from .outcome import Outcome
from .targets import TARGETS

NATIVE = {f"native_{name}": name for name in native_fuzzer.TARGETS}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", metavar="target", help=f"by default all: {', '.join([*NATIVE, *TARGETS])}"
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="total time, divided equally among the targets")
    parser.add_argument("--work", type=Path, help="folder of the growing corpus, for a later run to continue with it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run a Python target on one file only")
    options = parser.parse_args()
    chosen = options.targets or [*NATIVE, *TARGETS]
    unknown = [name for name in chosen if name not in NATIVE and name not in TARGETS]
    if unknown:
        parser.error(f"unknown target {unknown[0]!r}; the targets are {', '.join([*NATIVE, *TARGETS])}")
    if options.replay:
        for name in chosen:
            print(f"{name}: {TARGETS[name].run(options.replay.read_bytes())}")
        return 0
    work = options.work or Path(tempfile.mkdtemp(prefix="fuzz-"))
    work.mkdir(parents=True, exist_ok=True)
    seconds = 60.0 * options.minutes / len(chosen)
    print(f"work folder: {work}\n")
    print("| target | fuzzer | executions | per second | line coverage | findings |")
    print("|---|---|---:|---:|---|---:|")
    outcomes = [outcome for name in chosen if (outcome := fuzz(name, work, seconds, options.seed)) is not None]
    print(f"\n{sum(outcome.executions for outcome in outcomes):,} executions")
    findings = [(outcome.target, text) for outcome in outcomes for text in outcome.findings]
    for target, text in findings:
        print(f"\nfinding of {target}: {text}")
    return 1 if findings else 0


def fuzz(name: str, work: Path, seconds: float, seed: int) -> Outcome | None:
    """Fuzz one target and print its row; None if a tool is missing."""
    if name in NATIVE:
        missing = native_fuzzer.missing_tool()
        if missing:
            print(f"| {name} | skipped: {missing} |", flush=True)
            return None
        outcome = native_fuzzer.fuzz(NATIVE[name], work, seconds, seed)
    else:
        outcome = python_fuzzer.fuzz(TARGETS[name], work, seconds, seed)
    print(outcome.row(), flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
