"""The parent's side of a fit: write the job, start the process, read the answer, whatever happens to it."""

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

from benchmarks.race.leagues import league_of

#: Seconds for everything but the fit: starting, importing, reading data, warming up.
AROUND = 300.0

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """How one process ended.

    Attributes
    ----------
    status : str
        "finished", "killed" (it took too long) or "failed".
    reason : str
        One line, empty if it finished.
    measured : dict
        What the process measured; empty if it did not finish.
    coefficients : optional
        What the contestant found, in the league's own class.
    """

    status: str
    reason: str
    measured: dict[str, Any]
    coefficients: Any


def restrict(threads: int | None) -> int:
    """Limit this process and all it starts to some of its cores; return how many."""
    if not hasattr(os, "sched_getaffinity"):
        return threads or os.cpu_count() or 1
    usable = sorted(os.sched_getaffinity(0))
    chosen = usable[: threads or len(usable)]
    os.sched_setaffinity(0, chosen)
    return len(chosen)


def launch(
    contestant: str,
    parameters: Any,
    data: Path,
    max_seconds: float,
    repeats: int = 1,
    trace: bool = False,
) -> Outcome:
    """Fit once in a fresh process and wait for it."""
    league = league_of(parameters)
    job = {
        "league": league.name,
        "contestant": contestant,
        "parameters": asdict(parameters),
        "data": str(data),
        "max_seconds": max_seconds,
        "repeats": repeats,
        "trace": trace,
    }
    environment = league.contestants[contestant].environment
    seconds = (repeats + 1) * max_seconds + AROUND
    with run_job("benchmarks.race.fit_process", job, environment, parameters.threads, seconds) as (folder, code):
        return _read(folder, code, max_seconds, league.solution)


@contextmanager
def run_job(
    module: str, job: dict[str, Any], environment: dict[str, str], threads: int, seconds: float
) -> Iterator[tuple[Path, int]]:
    """Run a module in a fresh process that finds `job` as a file; give the folder of its answer and its exit status."""
    with tempfile.TemporaryDirectory(prefix="race-") as name:
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
            except BaseException as error:  # too long in all, or Ctrl-C: in either case the process must go
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
    """Return what a process answered; if it could not, "failed" says why in one line."""
    answer = folder / "answer.json"
    if code == 0 and answer.exists():
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
        return found
    how = f"crashed with {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
    lines = (folder / "errors.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return {"failed": f"{how}: {lines[-1][:200]}" if lines else how}
