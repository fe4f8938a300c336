"""Run one fit in a fresh process, without state of earlier fits.

    python -m benchmarks.peers.fit_process job.json

The job names a kind of problem, a library, parameters and data files. The process imports the library, fits the case
for the first time and, unless that took long, again several times, and writes times, memory and coefficients next to
the job. The first fit includes what a library does once per process: lazy imports, threads, page faults. An alarm
signal terminates a fit that exceeds its time limit.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.peers.libraries import Library
from benchmarks.peers.problem_kinds import PROBLEM_KINDS
from maxmargin.resources import usable_memory

#: Maximum number of bytes touched before a fit, and the page size.
MAX_TOUCHED_BYTES, PAGE_SIZE = 2 * 2**30, 4096


def main(path: Path) -> None:
    job = json.loads(path.read_text(encoding="utf-8"))
    try:
        answer = run(job, path.parent)
    except Exception as error:  # report any exception of a library
        text = " ".join(str(error).split())[:300]
        answer = {"failed": f"{type(error).__name__}: {text}"}
    (path.parent / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def run(job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run the job, store the coefficients, and return the measurements."""
    kind = PROBLEM_KINDS[job["kind"]]
    parameters = kind.parameters(**job["parameters"])
    make = kind.libraries[job["library"]]
    X, y = read_data(Path(job["data"]))
    library = make(parameters)
    library.take(X, y)
    memory = library.memory_estimate(X)
    del X, y
    trace = library.trace() if job["trace"] else None
    touch_memory(memory)
    before = resident_mb()
    reset_peak()
    first = timed_fit(library, job["max_seconds"])
    repeats = job["repeats"] if first[0] <= job["once_above"] else 0
    warm = [timed_fit(library, job["max_seconds"]) for _ in range(repeats)] or [first]
    peak = peak_mb()
    found = library.coefficients()
    np.savez(folder / "coefficients.npz", **vars(found))
    return {
        "first_seconds": first[0],
        "seconds": float(np.median([wall for wall, _ in warm])),
        "cpu_seconds": float(np.median([cpu for _, cpu in warm])),
        "before_mb": before,
        "peak_mb": max(peak, before),
        "evaluations": library.evaluations(),
        "passes": library.passes(),
        "remarks": sorted(set(library.remarks)),
        "trace": trace,
    }


def timed_fit(library: Library, max_seconds: float) -> tuple[float, float]:
    """Fit and return the seconds by the clock and of all cores; the process ends if the former exceed the limit."""
    signal.setitimer(signal.ITIMER_REAL, max_seconds)
    started, cpu_started = perf_counter(), process_time()
    library.fit()
    seconds = perf_counter() - started, process_time() - cpu_started
    signal.setitimer(signal.ITIMER_REAL, 0)
    return seconds


def touch_memory(wanted: int) -> None:
    """Allocate and release as much memory as a fit may need, within limits.

    A virtual machine returns unused memory to its host within seconds, and getting it back takes up to 2 seconds per
    gigabyte, ten times the cost of a page fault. This makes the conditions equal for all libraries.
    """
    touched = np.empty(min(wanted, MAX_TOUCHED_BYTES, usable_memory() // 8), dtype=np.uint8)
    touched[::PAGE_SIZE] = 1


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
    """Return the resident memory of the process."""
    return _status("VmRSS") or peak_mb()


def peak_mb() -> float:
    """Return the peak memory of the process, on Linux since `reset_peak`.

    Uses the high-water mark of the kernel rather than ``ru_maxrss`` where available: a new process inherits the latter
    from its parent.
    """
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def reset_peak() -> None:
    """Reset the high-water mark to the current memory, where the system supports it."""
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
