"""Training from a shell, reading and writing included: maxmargin's commands beside LIBSVM's svm-train.

    python -m benchmarks.command_line --data FOLDER [--names a9a ijcnn1 covtype100k] [--programs …]

FOLDER has files of LIBSVM text. Every program is started anew for every file, one after the other, with C = 1, the
gaussian kernel and gamma = 1 / number of features; it reads the file, trains to a violation of 0.001 and writes a
model. Seconds are by the clock. LIBSVM's program must be installed (Debian: libsvm-tools); it uses one core, as it
does.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

OURS = [sys.executable, "-c", "import sys; from maxmargin.cli.main import main; sys.exit(main())"]

#: What is typed before file and model.
PROGRAMS = {
    "svm-train": ["svm-train"],
    "maxmargin svm-train": [*OURS, "svm-train"],
    "maxmargin train": [*OURS, "train", "-C", "1", "--gamma", "auto", "--tol", "1e-3"],
}


def measure(program: str, data: Path, model: Path) -> tuple[float, str]:
    """Return the seconds that a program takes, and its objective if it says so."""
    started = perf_counter()
    done = subprocess.run([*PROGRAMS[program], str(data), str(model)], check=True, capture_output=True, text=True)
    seconds = perf_counter() - started
    found = re.search(r"obj = (\S+),", done.stdout)
    return seconds, found[1] if found else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--names", nargs="+", default=["a9a", "ijcnn1", "covtype100k"])
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    options = parser.parse_args()
    peer, *rest = options.programs
    print("| data |", " | ".join(options.programs), "| " + " | ".join(f"{name}: times as fast" for name in rest), "|")
    print("|---|" + "---:|" * (len(options.programs) + len(rest)))
    logarithms: dict[str, list[float]] = {name: [] for name in rest}
    for name in options.names:
        cells, seconds = [], {}
        for program in options.programs:
            with tempfile.TemporaryDirectory() as folder:
                seconds[program], objective = measure(program, options.data / name, Path(folder) / "model")
            cells.append(f"{seconds[program]:.2f} s" + (f" ({objective})" if objective else ""))
        for program in rest:
            logarithms[program].append(math.log(seconds[peer] / seconds[program]))
            cells.append(f"{seconds[peer] / seconds[program]:.1f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for program, values in logarithms.items():
        print(f"\n{program}: {math.exp(sum(values) / len(values)):.1f} times as fast as {peer} in geometric mean")


if __name__ == "__main__":
    main()
