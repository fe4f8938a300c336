"""One fit in a fresh process: nothing is warm, nothing is left over from others.

    python -m benchmarks.race.fit_process job.json

The job names a league, a contestant, parameters and files with data. The process imports the library, warms it up with
a tiny fit (where a case is fitted many times: with a fit of the case itself), fits, and writes seconds, memory and
coefficients beside the job. A fit that takes too long is ended by the alarm clock of its own process.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.race.contestants import Contestant
from benchmarks.race.leagues import LEAGUES
from maxmargin.resources import usable_memory

#: The most memory that is touched before a fit, and how far apart.
TOUCHED, PAGE = 2 * 2**30, 4096


def main(path: Path) -> None:
    job = json.loads(path.read_text(encoding="utf-8"))
    try:
        answer = run(job, path.parent)
    except Exception as error:  # whatever a library throws belongs in the report
        text = " ".join(str(error).split())[:300]
        answer = {"failed": f"{type(error).__name__}: {text}"}
    (path.parent / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def run(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Fit as the job says, store the coefficients, and return what was measured."""
    league = LEAGUES[job["league"]]
    parameters = league.parameters(**job["parameters"])
    make = league.contestants[job["contestant"]]
    X, y = read_data(Path(job["data"]))
    warm_up(make, parameters, *((X, y) if job["repeats"] > 1 else tiny(sparse.issparse(X))))
    contestant = make(parameters)
    contestant.take(X, y)
    room = contestant.room(X)
    del X, y
    trace = contestant.trace() if job["trace"] else None
    touch_memory(room)
    before = resident_mb()
    forget_peak()
    seconds = []
    for _ in range(job["repeats"]):
        signal.setitimer(signal.ITIMER_REAL, job["max_seconds"])
        started = perf_counter()
        contestant.fit()
        seconds.append(perf_counter() - started)
        signal.setitimer(signal.ITIMER_REAL, 0)
    peak = peak_mb()
    found = contestant.coefficients()
    np.savez(folder / "coefficients.npz", **vars(found))
    return {
        "seconds": float(np.median(seconds)),
        "before_mb": before,
        "peak_mb": max(peak, before),
        "evaluations": contestant.evaluations(),
        "passes": contestant.passes(),
        "remarks": sorted(set(contestant.remarks)),
        "trace": trace,
    }


def warm_up(make: type[Contestant], parameters: Any, X: Any, y: np.ndarray) -> None:
    """Fit once and forget it: lazy imports, thread pools and code pages are there afterwards."""
    contestant = make(parameters)
    contestant.take(X, y)
    contestant.fit()


def touch_memory(wanted: int) -> None:
    """Use as much memory as a fit may want, within limits, and give it back at once.

    A virtual machine hands memory that nobody uses to its host within seconds, and fetching it again takes up to 2
    seconds per gigabyte, ten times what the system itself needs. With this, every contestant finds some at hand.
    """
    room = np.empty(min(wanted, TOUCHED, usable_memory() // 8), dtype=np.uint8)
    room[::PAGE] = 1


def tiny(as_sparse: bool) -> tuple[Any, np.ndarray]:
    """Return two clouds of twenty points."""
    random = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = random.normal(size=(40, 3)) + y[:, None]
    return (sparse.csr_matrix(X) if as_sparse else X), y


def read_data(path: Path) -> tuple[Any, np.ndarray]:
    """Return samples and class codes that `write_data` stored."""
    X = sparse.load_npz(path / "X.npz") if (path / "X.npz").exists() else np.load(path / "X.npy")
    return X, np.load(path / "y.npy")


def write_data(path: Path, X: Any, y: np.ndarray) -> None:
    """Store samples and class codes for all processes of a case."""
    if sparse.issparse(X):
        sparse.save_npz(path / "X.npz", X, compressed=False)
    else:
        np.save(path / "X.npy", X)
    np.save(path / "y.npy", y)


def resident_mb() -> float:
    """Return the memory that the process holds now."""
    return _status("VmRSS") or peak_mb()


def peak_mb() -> float:
    """Return the most memory that the process has held, on Linux since `forget_peak`.

    The kernel's high-water mark of the process, not ``ru_maxrss`` where that can be avoided: a new process inherits the
    latter from the one that started it.
    """
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    """Set the high-water mark back to what is held now, where the system allows it."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _status(field: str) -> float | None:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field + ":")), None)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
