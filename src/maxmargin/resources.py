"""Limits of threads and memory: user settings, CPU affinity, control groups, and enclosing parallel libraries."""

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

#: Files with the limits of a Linux control group (versions 2 and 1).
CPU_LIMITS = ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

#: Default fraction of the usable memory for the cache of kernel rows.
CACHE_FRACTION = 0.25

#: Maximum number of threads for any value of n_jobs.
MAX_THREADS = 1024


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`: None and −1 mean all usable cores, −2 all but one, and so on.

    The usable cores are limited by the CPU affinity of the process and the quota of its control group. None also
    respects the limits of BLAS: ``OMP_NUM_THREADS``, which joblib's worker processes set, and ``threadpool_limits`` of
    threadpoolctl. Inside a thread of joblib or a task of a Dask worker, None means one thread.
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool)):
        raise ValueError(f"n_jobs must be a whole number or None, not {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use -1 for all cores")
    if n_jobs is None:
        return max(1, min(usable_cores(), *_environment_limits()))
    return min(int(n_jobs), MAX_THREADS) if n_jobs > 0 else max(1, usable_cores() + 1 + int(n_jobs))


@contextmanager
def blas_thread_limit(threads: int) -> Iterator[None]:
    """Limit the number of BLAS threads within a context, to at most the number already in force."""
    with _blas.lock:
        _blas.limits.append(threads)
        _blas.apply()
    try:
        yield
    finally:
        with _blas.lock:
            _blas.limits.remove(threads)
            _blas.apply()


class _BlasLimits:
    """The BLAS thread limits in force.

    BLAS has one number of threads for the whole process, and fits may run in several threads. If each context saved
    and restored the number, it might restore the limit of a context that has ended. So the first context that is
    entered saves the number, and the last one that is left restores it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.limits: list[int] = []
        self.saved: list[int] = []

    def unlimited(self) -> list[int]:
        """Return the number of threads of each BLAS library without our limits."""
        return self.saved or [library.get_num_threads() for library in _blas_libraries()]

    def apply(self) -> None:
        """Set the smallest limit in force, or restore the number of threads before the first limit."""
        unlimited = self.saved = self.unlimited()
        if not self.limits:
            self.saved = []
        for library, count in zip(_blas_libraries(), unlimited, strict=True):
            threads = min([count, *self.limits])
            if library.get_num_threads() != threads:
                library.set_num_threads(threads)


_blas = _BlasLimits()


def usable_cores() -> int:
    """Return the number of cores that the process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cpu_quota()
    return max(1, min(cores, math.ceil(quota))) if quota is not None else cores


def default_cache_bytes() -> int:
    """Return the default size of the cache of kernel rows in bytes: a quarter of the usable memory."""
    return int(CACHE_FRACTION * usable_memory())


def usable_memory() -> int:
    """Return the memory that the process may use in bytes: the physical memory or the limit of its control group."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not supported on this system: assume 4 GiB
        physical = 2**32
    limits = [int(text) for text in map(_first_word, MEMORY_LIMITS) if text is not None and text.isdigit()]
    return min([physical, *limits])


def _environment_limits() -> list[int]:
    """Return the limits on threads set by BLAS settings, the environment, joblib and Dask."""
    with _blas.lock:
        limits = _blas.unlimited()
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if text.isdigit() and int(text) > 0:
        limits.append(int(text))
    elif _inside_joblib_thread() or _inside_dask_worker():
        limits.append(1)
    return [limit for limit in limits if limit] or [2**16]


@cache
def _blas_libraries() -> list[Any]:
    """Return the threadpoolctl controllers of the loaded BLAS libraries; finding them takes longer than a small fit."""
    return list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


def _inside_joblib_thread() -> bool:
    """Whether joblib runs this call in a thread of its pool; its worker processes set OMP_NUM_THREADS instead."""
    parallel = sys.modules.get("joblib.parallel")
    return parallel is not None and (parallel.get_active_backend()[0].nesting_level or 0) > 0


def _inside_dask_worker() -> bool:
    """Whether this thread runs a task of a Dask worker; does not import Dask."""
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
