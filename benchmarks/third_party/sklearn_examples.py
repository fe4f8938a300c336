"""scikit-learn's examples that use a support vector machine, with its classes and with ours.

    python -m benchmarks.third_party.sklearn_examples FOLDER [--only NAME] [--limit SECONDS] [--json FILE]

FOLDER is the folder `examples` of a checkout of scikit-learn of the installed version; nothing is fetched. Each example
runs twice in a process of its own, without windows: as it is, and with `SVC`, `LinearSVC` and the others of
`sklearn.svm` replaced by ours. What it prints is compared: the same, the same up to numbers, or other text. An example
whose data are not on this computer says so and is left out of the count.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

#: The names of `sklearn.svm` that are replaced.
REPLACED = ("LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR", "l1_min_c")

#: An example that uses one of them.
USES = re.compile(rf"from sklearn\.svm import|from sklearn import [^\n]*\bsvm\b|sklearn\.svm\.({'|'.join(REPLACED)})")

#: Errors of examples that download their data.
NO_DATA = ("URLError", "ConnectionError", "HTTPError", "OpenMLError", "RemoteDisconnected", "Temporary failure")

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)

#: Lines about durations and objects in memory, which differ between two runs of the same program.
UNSTABLE = re.compile(r"\d\s*(?:m?s|sec|seconds)\b|done in|time|0x[0-9a-f]{6,}", re.IGNORECASE)

#: Runs an example; with "ours", after the replacement.
RUNNER = """
import runpy, sys, warnings
import matplotlib
matplotlib.use("Agg")
path, classes, names = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
if classes == "ours":
    import maxmargin, sklearn.svm
    for name in names:
        setattr(sklearn.svm, name, getattr(maxmargin, name))
sys.argv = [path]
runpy.run_path(path, run_name="__main__")
"""


class Run(NamedTuple):
    """What a run of an example has printed."""

    code: int
    output: str
    errors: str
    seconds: float


class Comparison(NamedTuple):
    """The result of an example."""

    name: str
    result: str
    seconds: float
    seconds_ours: float
    difference: str


def examples(folder: Path) -> list[Path]:
    """Return the examples that use a support vector machine."""
    found = [path for path in sorted(folder.rglob("*.py")) if USES.search(path.read_text(encoding="utf-8"))]
    if not found:
        raise SystemExit(f"{folder} has no examples that use sklearn.svm; give the folder `examples` of scikit-learn")
    return found


def run(path: Path, classes: str, limit: float) -> Run:
    """Run an example with the classes of scikit-learn or with ours."""
    words = [sys.executable, "-c", RUNNER, str(path.resolve()), classes, ",".join(REPLACED)]
    started = time.perf_counter()
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=limit, check=False, cwd=path.parent, env=os.environ
        )
    except subprocess.TimeoutExpired:
        return Run(-1, "", f"more than {limit:g} s", limit)
    return Run(done.returncode, done.stdout, done.stderr, time.perf_counter() - started)


def stable_lines(output: str) -> list[str]:
    """Return the lines that do not depend on the clock."""
    return [line.rstrip() for line in output.splitlines() if line.strip() and not UNSTABLE.search(line)]


def compare(path: Path, folder: Path, limit: float) -> Comparison:
    """Run an example with both and compare what it prints."""
    theirs = run(path, "scikit-learn", limit)
    name = str(path.relative_to(folder))
    if theirs.code:
        last = (theirs.errors.strip() or "no message").splitlines()[-1]
        missing = any(word in theirs.errors for word in NO_DATA)
        return Comparison(name, "needs data" if missing else "fails with scikit-learn", theirs.seconds, 0.0, last)
    ours = run(path, "ours", limit)
    times = theirs.seconds, ours.seconds
    if ours.code:
        return Comparison(name, "fails", *times, (ours.errors.strip() or "no message").splitlines()[-1])
    before, after = stable_lines(theirs.output), stable_lines(ours.output)
    if before == after:
        return Comparison(name, "same" if before else "same (prints nothing)", *times, "")
    difference = "\n".join(difflib.unified_diff(before, after, "scikit-learn", "maxmargin", lineterm="", n=0))
    same_text = [NUMBER.sub("#", line).split() for line in before] == [NUMBER.sub("#", line).split() for line in after]
    return Comparison(name, "other numbers" if same_text else "other text", *times, difference)


def main() -> None:
    """Run the examples and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder `examples` of scikit-learn")
    parser.add_argument("--only", default="", help="part of the names of the examples to run")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a run [%(default)s]")
    parser.add_argument("--json", type=Path, help="file of the results")
    options = parser.parse_args()
    results = []
    print("| example | result | scikit-learn | maxmargin |\n|---|---|---:|---:|")
    for path in examples(options.folder):
        if options.only not in str(path):
            continue
        result = compare(path, options.folder, options.limit)
        results.append(result)
        print(
            f"| `{result.name}` | {result.result} | {result.seconds:.1f} s | {result.seconds_ours:.1f} s |", flush=True
        )
    for result in results:
        if result.difference:
            print(f"\n{result.name}: {result.result}\n{result.difference}")
    print("\n" + ", ".join(f"{result}: {count}" for result, count in Counter(r.result for r in results).items()))
    if options.json is not None:
        options.json.write_text(json.dumps([result._asdict() for result in results], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
