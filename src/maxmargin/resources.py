"""What this process may use of the machine: cores and memory, as the user, the system and the surroundings allow."""

from __future__ import annotations

import math
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import Any

import threadpoolctl

#: Where Linux tells the limits of a control group (versions 2 and 1).
CPU_LIMITS = ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

#: The part of the usable memory that stored kernel rows may take if nothing else is said.
CACHE_SHARE = 0.25


#: More threads than this are never started, whatever is asked for.
MOST_THREADS = 1024


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None and −1 mean all usable cores, −2 all but one, and so on.

    The usable cores are those the process may run on: its affinity and the quota of its control group. With None, what
    limits BLAS limits us: ``OMP_NUM_THREADS``, which joblib's worker processes set, and ``threadpool_limits`` of
    threadpoolctl. Inside a thread of joblib or a task of a Dask worker, where others run beside us, it is one.
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool)):
        raise ValueError(f"n_jobs must be a whole number or None, not {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use None or -1 for all cores")
    if n_jobs is None:
        return max(1, min(usable_cores(), *_limits_around()))
    return min(int(n_jobs), MOST_THREADS) if n_jobs > 0 else max(1, usable_cores() + 1 + int(n_jobs))


def limited_blas(threads: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses at most so many threads, and never more than it would anyway."""
    now = [library["num_threads"] for library in _controller().info() if library["user_api"] == "blas"]
    if all(count <= threads for count in now):
        return nullcontext()
    limit: AbstractContextManager[Any] = _controller().limit(limits=threads, user_api="blas")
    return limit


def usable_cores() -> int:
    """Return how many cores the process may keep busy."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cpu_quota()
    return max(1, min(cores, math.ceil(quota))) if quota is not None else cores


def default_cache_bytes() -> int:
    """Return the memory that stored kernel rows may take if nothing else is said: a quarter of what is usable."""
    return int(CACHE_SHARE * usable_memory())


def usable_memory() -> int:
    """Return the bytes that the process may use: the machine's, or fewer if its control group is limited."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on this system: something that fits anywhere
        physical = 2**32
    limits = [int(text) for text in map(_first_word, MEMORY_LIMITS) if text is not None and text.isdigit()]
    return min([physical, *limits])


def _limits_around() -> list[int]:
    """Return the limits that the surroundings set."""
    limits = [library["num_threads"] for library in _controller().info() if library["user_api"] == "blas"]
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if text.isdigit() and int(text) > 0:
        limits.append(int(text))
    elif _inside_joblib_thread() or _inside_dask_worker():
        limits.append(1)
    return [limit for limit in limits if limit] or [2**16]


@cache
def _controller() -> threadpoolctl.ThreadpoolController:
    """Return what knows the BLAS libraries: looking for them takes longer than a small fit."""
    return threadpoolctl.ThreadpoolController()


def _inside_joblib_thread() -> bool:
    """Whether joblib runs this call in a thread beside others; its processes set OMP_NUM_THREADS instead."""
    parallel = sys.modules.get("joblib.parallel")
    return parallel is not None and (parallel.get_active_backend()[0].nesting_level or 0) > 0


def _inside_dask_worker() -> bool:
    """Whether this thread runs a task of a Dask worker; Dask is not imported for that."""
    worker = sys.modules.get("distributed.worker")
    return worker is not None and getattr(worker.thread_state, "execution_state", None) is not None


def _cpu_quota() -> float | None:
    text = _read(CPU_LIMITS[0])
    if text is not None:
        quota, _, period = text.partition(" ")
        return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None
    quota = _first_word(CPU_LIMITS[1]) or ""
    period = _first_word("/sys/fs/cgroup/cpu/cpu.cfs_period_us") or ""
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _first_word(path: str) -> str | None:
    text = _read(path)
    return text.split()[0] if text else None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:  # no such limit on this system
        return None
