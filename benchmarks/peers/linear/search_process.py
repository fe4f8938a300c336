"""Find the settings of one variant of a peer that reach the gaps, in a separate process.

    python -m benchmarks.peers.linear.search_process job.json

Each fit is written to a file as soon as it is verified. An alarm signal terminates a fit that exceeds its time limit,
and with it the search, since the next setting would take longer.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.peers.fit_process import read_data
from benchmarks.peers.libraries import Library
from benchmarks.peers.linear.libraries import LinearParameters
from benchmarks.peers.linear.loosest_setting import find_loosest
from benchmarks.peers.linear.verification import primal, relative_gap
from benchmarks.peers.problem_kinds import PROBLEM_KINDS


def main(path: Path) -> None:
    job = json.loads(path.read_text(encoding="utf-8"))
    try:
        search(job, path.parent)
        answer: dict[str, Any] = {}
    except Exception as error:  # report any exception of a library
        text = " ".join(str(error).split())[:300]
        answer = {"failed": f"{type(error).__name__}: {text}"}
    (path.parent / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def search(job: dict[str, Any], folder: Path) -> None:
    """Find the loosest setting for one gap after the other."""
    kind = PROBLEM_KINDS["linear"]
    make = kind.libraries[job["library"]]
    parameters = kind.parameters(**job["parameters"])
    settings = make.settings
    X, codes = read_data(Path(job["data"]))
    first = replace(parameters, setting=settings[0])
    warm_up(make, first, sparse.issparse(X))
    library = make(first)
    library.take(X, codes)
    left = job["budget"]

    def gap_at(index: int) -> float:
        nonlocal left
        library.set_accuracy(settings[index])
        allowed = min(job["max_seconds"], left)
        note(folder, {"index": index, "setting": settings[index], "allowed": allowed})
        signal.setitimer(signal.ITIMER_REAL, allowed)
        started = perf_counter()
        library.fit()
        seconds = perf_counter() - started
        signal.setitimer(signal.ITIMER_REAL, 0)
        left = max(left - seconds, 1e-3)
        gap = relative_gap(primal(X, codes, parameters.C, parameters.loss, library.coefficients()), job["bound"])
        note(folder, {"index": index, "setting": settings[index], "seconds": seconds, "gap": gap})
        return gap

    known: dict[int, float] = {}
    for target in job["targets"]:
        find_loosest(gap_at, len(settings), target, known)


def warm_up(make: type[Library], parameters: LinearParameters, as_sparse: bool) -> None:
    """Fit two clouds of twenty points and discard the result, to load lazy imports, thread pools and code pages."""
    random = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = random.normal(size=(40, 3)) + y[:, None]
    library = make(parameters)
    library.take(sparse.csr_matrix(X) if as_sparse else X, y)
    library.fit()


def note(folder: Path, line: dict[str, Any]) -> None:
    """Append a line to the file of fits."""
    with (folder / "fits.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
