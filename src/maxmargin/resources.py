"""What this process may use of the machine: cores and memory, as the user, the system and the surroundings allow."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
MAX_THREADS = 1024


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None and −1 mean all usable cores, −2 all but one, and so on.

    The usable cores are those the process may run on: its affinity and the quota of its control group. With None, what
    limits BLAS limits us: ``OMP_NUM_THREADS``, which joblib's worker processes set, and ``threadpool_limits`` of
    threadpoolctl. Inside a thread of joblib or a task of a Dask worker, where others run beside us, it is one.
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool)):
        raise ValueError(f"n_jobs must be a whole number or None, not {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 takes all cores")
    if n_jobs is None:
        return max(1, min(usable_cores(), *_environment_limits()))
    return min(int(n_jobs), MAX_THREADS) if n_jobs > 0 else max(1, usable_cores() + 1 + int(n_jobs))


@contextmanager
def blas_thread_limit(threads: int) -> Iterator[None]:
    """Let BLAS use at most so many threads meanwhile, and never more than it would anyway."""
    with _blas.lock:
        _blas.limits.append(threads)
        _blas.tighten()
    try:
        yield
    finally:
        with _blas.lock:
            _blas.limits.remove(threads)
            _blas.tighten()


class _BlasLimits:
    """The limits in force: BLAS has one number of threads for the whole process, and fits may run in several threads.

    Each fit on its own would note the number it finds and set it back at the end, and what it finds may be the limit of
    another fit that has ended by then. So the number is noted by the first to come and set back by the last to leave.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.limits: list[int] = []
        self.before: list[int] = []

    def usual(self) -> list[int]:
        """Return the threads of each BLAS library where nobody here limits it."""
        return self.before or [library.get_num_threads() for library in _blas_libraries()]

    def tighten(self) -> None:
        """Set what the limits in force ask for, or what was before the first of them."""
        before = self.before = self.usual()
        if not self.limits:
            self.before = []
        for library, usual in zip(_blas_libraries(), before, strict=True):
            threads = min([usual, *self.limits])
            if library.get_num_threads() != threads:
                library.set_num_threads(threads)


_blas = _BlasLimits()


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


def _environment_limits() -> list[int]:
    """Return the limits that the surroundings set."""
    with _blas.lock:
        limits = _blas.usual()
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if text.isdigit() and int(text) > 0:
        limits.append(int(text))
    elif _inside_joblib_thread() or _inside_dask_worker():
        limits.append(1)
    return [limit for limit in limits if limit] or [2**16]


@cache
def _blas_libraries() -> list[Any]:
    """Return what sets the threads of BLAS, for each loaded one: looking for them takes longer than a small fit."""
    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


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
