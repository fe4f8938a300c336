"""Training from the shell, including reading and writing: maxmargin's commands and LIBSVM's svm-train.

    python -m benchmarks.command_line --data FOLDER [--names heart a9a ijcnn1 covtype_100k] [--runs 3]

FOLDER is the data folder of benchmarks/peers. The data are first written as plain LIBSVM text; covtype_100k are 100,000
of its samples, each column scaled to [0, 1]; heart are 270 samples, on which a program takes as long as its start.
Each run is a new process with C = 1, the RBF kernel and gamma = 1 / the
number of features, which reads the file, trains to a violation of 0.001 and writes a model, `maxmargin train` also the
certificate. Times are wall-clock medians of alternating runs; runs of more than a minute are not repeated. LIBSVM's
program must be installed (Debian: libsvm-tools), otherwise it is left out; it uses one core.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from benchmarks.peers import loading
from maxmargin.datasets import Scaling, dump_libsvm, load_libsvm

OURS = [sys.executable, "-c", "import sys; from maxmargin.cli.main import main; sys.exit(main())"]

#: The commands, without file and model.
PROGRAMS = {
    "svm-train": ["svm-train"],
    "maxmargin svm-train": [*OURS, "svm-train"],
    "maxmargin train": [*OURS, "train", "-C", "1", "--gamma", "auto", "--tol", "1e-3"],
}

#: Seconds above which a run is not repeated.
REPEAT_BELOW = 60.0


def write_heart(folder: Path, target: Path) -> None:
    shutil.copyfile(folder / "heart_scale.libsvm", target)


def write_a9a(folder: Path, target: Path) -> None:
    shutil.copyfile(folder / "a9a.libsvm", target)


def write_ijcnn1(folder: Path, target: Path) -> None:
    dump_libsvm(*load_libsvm(folder / "ijcnn1.libsvm.bz2"), target)


def write_covtype(folder: Path, target: Path) -> None:
    X, y = loading.covtype(folder, 100_000)
    dump_libsvm(Scaling.fit(X, 0.0, 1.0).apply(X), y, target, digits=6)


DATA: dict[str, Callable[[Path, Path], None]] = {
    "heart": write_heart,
    "a9a": write_a9a,
    "ijcnn1": write_ijcnn1,
    "covtype_100k": write_covtype,
}


def measure(program: str, data: Path, model: Path) -> tuple[float, str]:
    """Return the time of a program, and its objective if printed."""
    started = perf_counter()
    done = subprocess.run([*PROGRAMS[program], str(data), str(model)], check=True, capture_output=True, text=True)
    seconds = perf_counter() - started
    found = re.search(r"obj = (\S+),", done.stdout)
    return seconds, found[1] if found else ""


def measure_all(data: Path, model: Path, runs: int) -> dict[str, tuple[float, str]]:
    """Return the median time of each program, and its objective."""
    seconds: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    objectives = dict.fromkeys(PROGRAMS, "")
    for _ in range(runs):
        for program, taken in seconds.items():
            if shutil.which(PROGRAMS[program][0]) is None:
                continue
            if not taken or taken[0] < REPEAT_BELOW:
                value, objectives[program] = measure(program, data, model)
                taken.append(value)
    return {program: (statistics.median(taken), objectives[program]) for program, taken in seconds.items() if taken}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--names", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    peer, *ours = PROGRAMS
    print("| data |", " | ".join(PROGRAMS), "|", " | ".join(f"{name}: times as fast" for name in ours), "|")
    print("|---|" + "---:|" * (len(PROGRAMS) + len(ours)))
    logarithms: dict[str, list[float]] = {name: [] for name in ours}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names:
            DATA[name](options.data, Path(folder) / name)
            found = measure_all(Path(folder) / name, Path(folder) / "model", options.runs)
            cells = [cell(*found[program]) if program in found else "" for program in PROGRAMS]
            for program in ours:
                if peer not in found:
                    cells.append("")
                    continue
                logarithms[program].append(math.log(found[peer][0] / found[program][0]))
                cells.append(f"{math.exp(logarithms[program][-1]):.2g}")
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for program, values in logarithms.items():
        if values:
            print(f"\n{program}: {math.exp(sum(values) / len(values)):.2g} times as fast as {peer} in geometric mean")


def cell(seconds: float, objective: str) -> str:
    return f"{seconds:.3g} s" + (f" (obj {objective})" if objective else "")


if __name__ == "__main__":
    main()
