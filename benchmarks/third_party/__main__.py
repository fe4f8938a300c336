"""Command line of the tests of other projects; see `benchmarks.third_party`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.third_party.report import Comparison, Outcomes, update_table
from benchmarks.third_party.suites import SUITES, Suite

ROOT = Path(__file__).parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Run a suite twice and report the differences; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.third_party", description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("path", type=Path, help="checkout or unpacked source distribution of the project")
    parser.add_argument("--results", type=Path, metavar="PAGE", help="write the line of the table of this page")
    options = parser.parse_args(arguments)
    suite = SUITES[options.suite]
    missing = [name for name in suite.files if not (options.path / name).is_file()]
    if missing:
        parser.error(f"{options.path} has no {missing[0]}: give the folder of a checkout of {options.suite}")
    theirs, ours = (run(options.suite, suite, options.path, substitute) for substitute in (False, True))
    comparison = Comparison(options.suite, theirs, ours)
    by_reason, unexplained = comparison.reasons()
    for reason, names in by_reason.items():
        print(f"{len(names)} differ: {reason}", *names, sep="\n  ")
    for name in unexplained:
        print(f"without a reason: {name}\n  {ours[name]['message']}")
    print(comparison.row())
    if options.results is not None:
        update_table(options.results, comparison)
    return 1 if unexplained else 0


def run(name: str, suite: Suite, path: Path, substitute: bool) -> Outcomes:
    """Return the outcome of each test in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.third_party.substitution"]
        command += ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={path.resolve()}", "-W", "ignore"]
        command += ["--import-mode=importlib"] + ([] if suite.with_conftest else ["--noconftest"])
        search = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, search)),
            "MAXMARGIN_SUITE": name,
            "MAXMARGIN_OUTCOMES": str(file),
            "MAXMARGIN_SUBSTITUTE": str(int(substitute)),
        }
        command += [str(path.resolve() / part) for part in suite.files]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if not file.is_file():
            raise RuntimeError(f"pytest did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        found: Outcomes = json.loads(file.read_text(encoding="utf-8"))
    failed = next((test["message"] for test_name, test in found.items() if "::" not in test_name), None)
    if failed is not None:
        raise RuntimeError(f"tests of {name} cannot be imported, install the project and what it needs: {failed}")
    return found


if __name__ == "__main__":
    sys.exit(main())
