"""How many threads a call may use: what the process is allowed, what the user says, what the surroundings say."""

from __future__ import annotations

import os
from numbers import Integral


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None and −1 mean all usable cores, −2 all but one, and so on.

    The usable cores are those the process may run on. ``OMP_NUM_THREADS`` lowers the default as it does for BLAS;
    joblib sets it in its workers, so that nested calls do not crowd the machine.
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool)):
        raise ValueError(f"n_jobs must be a whole number or None, not {n_jobs!r}")
    cores = _usable_cores()
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use None or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
