"""The parent's side of a fit: write the job, start the process, read the answer, whatever happens to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race.contestants import CONTESTANTS, Coefficients, Parameters

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
    coefficients : Coefficients, optional
    """

    status: str
    reason: str
    measured: dict[str, Any]
    coefficients: Coefficients | None


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
    parameters: Parameters,
    data: Path,
    max_seconds: float,
    repeats: int = 1,
    trace: bool = False,
) -> Outcome:
    """Fit once in a fresh process and wait for it."""
    with tempfile.TemporaryDirectory(prefix="race-") as name:
        folder = Path(name)
        job = {
            "contestant": contestant,
            "parameters": asdict(parameters),
            "data": str(data),
            "max_seconds": max_seconds,
            "repeats": repeats,
            "trace": trace,
        }
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        threads = str(parameters.threads)
        limits = {f"{kind}_NUM_THREADS": threads for kind in ("OMP", "OPENBLAS", "MKL")}
        surroundings = {**os.environ, **limits, **CONTESTANTS[contestant].environment}
        with (folder / "errors.txt").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.race.fit_process", str(folder / "job.json")],
                cwd=ROOT, env=surroundings, stdout=subprocess.DEVNULL, stderr=errors,
            )  # fmt: skip
            try:
                code = process.wait(timeout=(repeats + 1) * max_seconds + AROUND)
            except BaseException as error:  # too long in all, or Ctrl-C: in either case the process must go
                process.kill()
                process.wait()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                code = -signal.SIGALRM
        return _read(folder, code, max_seconds)


def _read(folder: Path, code: int, max_seconds: float) -> Outcome:
    if code == -signal.SIGALRM:
        return Outcome("killed", f"killed after {max_seconds:g} s", {}, None)
    answer = folder / "answer.json"
    if code != 0 or not answer.exists():
        how = f"crashed with {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
        lines = (folder / "errors.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return Outcome("failed", f"{how}: {lines[-1][:200]}" if lines else how, {}, None)
    measured = json.loads(answer.read_text(encoding="utf-8"))
    if "failed" in measured:
        return Outcome("failed", measured["failed"], {}, None)
    with np.load(folder / "coefficients.npz") as stored:
        found = Coefficients(stored["support"], stored["values"], stored["order"], float(stored["first_sign"]))
    return Outcome("finished", "", measured, found)
