"""Run a fit in a fresh process: write the job, start the process, read the result or the reason of the failure."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.problem_kinds import kind_of

#: Seconds allowed for everything but the fit: start, imports, reading data, warm-up.
SETUP_SECONDS = 300.0

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one process.

    Attributes
    ----------
    status : str
        "finished", "killed" (time limit) or "failed".
    reason : str
        One line; empty if the fit finished.
    measured : dict
        Measurements of the process; empty if the fit did not finish.
    coefficients : optional
        The solution, of the class that belongs to the kind of problem.
    """

    status: str
    reason: str
    measured: dict[str, Any]
    coefficients: Any


def restrict(threads: int | None) -> int:
    """Restrict this process and its children to a number of cores; return the number."""
    if not hasattr(os, "sched_getaffinity"):
        return threads or os.cpu_count() or 1
    usable = sorted(os.sched_getaffinity(0))
    chosen = usable[: threads or len(usable)]
    os.sched_setaffinity(0, chosen)
    return len(chosen)


def launch(
    library: str,
    parameters: Any,
    data: Path,
    max_seconds: float,
    repeats: int = 1,
    trace: bool = False,
    once_above: float = float("inf"),
) -> Outcome:
    """Fit in a fresh process, then `repeats` times again unless the first fit took too long; return the outcome."""
    kind = kind_of(parameters)
    job = {
        "kind": kind.name,
        "library": library,
        "parameters": asdict(parameters),
        "data": str(data),
        "max_seconds": max_seconds,
        "repeats": repeats,
        "once_above": once_above,
        "trace": trace,
    }
    environment = kind.libraries[library].environment
    seconds = (repeats + 1) * max_seconds + SETUP_SECONDS
    with run_job("benchmarks.peers.fit_process", job, environment, parameters.threads, seconds) as (folder, code):
        return _read(folder, code, max_seconds, kind.solution)


@contextmanager
def run_job(
    module: str, job: dict[str, Any], environment: dict[str, str], threads: int, seconds: float
) -> Iterator[tuple[Path, int]]:
    """Run a module in a fresh process with `job` as a file; yield the folder of its answer and its exit status."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        limits = {f"{kind}_NUM_THREADS": str(threads) for kind in ("OMP", "OPENBLAS", "MKL")}
        with (folder / "errors.txt").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", module, str(folder / "job.json")],
                cwd=ROOT, env={**os.environ, **limits, **environment}, stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip
            try:
                code = process.wait(timeout=seconds)
            except BaseException as error:  # timeout or Ctrl-C: terminate the process in either case
                process.kill()
                process.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                code = -signal.SIGALRM
        yield folder, code


def _read(folder: Path, code: int, max_seconds: float, solution: type) -> Outcome:
    if code == -signal.SIGALRM:
        return Outcome("killed", f"killed after {max_seconds:g} s", {}, None)
    measured = read_answer(folder, code)
    if "failed" in measured:
        return Outcome("failed", measured["failed"], {}, None)
    with np.load(folder / "coefficients.npz") as stored:
        found = solution(**{name: stored[name] for name in stored.files})
    return Outcome("finished", "", measured, found)


def read_answer(folder: Path, code: int) -> dict[str, Any]:
    """Return the answer of a process; after a failure, the reason in one line under "failed"."""
    answer = folder / "answer.json"
    if code == 0 and answer.exists():
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return found
    how = f"crashed with {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
    lines = (folder / "errors.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return {"failed": f"{how}: {lines[-1][:200]}" if lines else how}
