"""Limits of threads and memory: user settings, CPU affinity, control groups, and enclosing parallel libraries."""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from numbers import Integral
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import threadpoolctl

#: Files with the limits of a Linux control group (versions 2 and 1).
CPU_LIMITS = ("/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

#: The file that names the control groups of the process, and the size and use of memory of the system and the process.
OWN_GROUPS, SYSTEM_MEMORY, OWN_PAGES = "/proc/self/cgroup", "/proc/meminfo", "/proc/self/statm"

#: The limit of cores is read again after this many seconds; it hardly ever changes.
QUOTA_SECONDS = 1.0

#: Files with the memory in use of a control group, next to those with its limits: in total, and what can be reclaimed.
MEMORY_USES = (("memory.current", "inactive_file"), ("memory.usage_in_bytes", "total_inactive_file"))

#: Messages of memory errors that explain nothing.
UNEXPLAINED = ("", "std::bad_alloc")

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
        return self.saved or [library.get_num_threads() for library in blas_libraries()]

    def apply(self) -> None:
        """Set the smallest limit in force, or restore the number of threads before the first limit."""
        unlimited = self.saved = self.unlimited()
        if not self.limits:
            self.saved = []
        for library, count in zip(blas_libraries(), unlimited, strict=True):
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
    return min([physical, *(group.limit for group in _memory_groups())])


def available_memory() -> int:
    """Return the memory that the process can still allocate, in bytes, without swapping.

    The limits are the free memory of the system, of the control groups of the process, and of its address space
    (``ulimit -v``).
    """
    found = [usable_memory(), *(max(0, group.limit - group.used()) for group in _memory_groups())]
    for line in (_read(SYSTEM_MEMORY) or "").splitlines():
        if line.startswith("MemAvailable:"):
            found.append(int(line.split()[1]) * 1024)
    address_space = _address_space_limit()
    pages = _first_word(OWN_PAGES)
    if address_space is not None and pages is not None:
        found.append(max(0, address_space - int(pages) * os.sysconf("SC_PAGE_SIZE")))
    return min(found)


def check_memory(needed: int, what: str, advice: str) -> None:
    """Raise a MemoryError with a clear message if more memory is needed than is available.

    Parameters
    ----------
    needed : int
        In bytes.
    what : str
        What needs the memory, the subject of the sentence.
    advice : str
        What to do about it.
    """
    available = available_memory()
    if needed > available:
        raise MemoryError(
            f"{what} needs {format_bytes(needed)} of memory, but {format_bytes(available)} are available; {advice}"
        )


@contextmanager
def explained_memory_errors(what: str, advice: str) -> Iterator[None]:
    """Replace memory errors without an explanation by one that says what has failed, and what to do."""
    try:
        yield
    except MemoryError as error:
        if str(error) not in UNEXPLAINED:
            raise
        available = format_bytes(available_memory())
        raise MemoryError(f"{what} needs more memory than the {available} that are available; {advice}") from error


def format_bytes(count: int) -> str:
    """Return a number of bytes as text, such as 3.4 GB."""
    if count < 1000:
        return f"{count} bytes"
    units = ("kB", "MB", "GB", "TB", "PB", "EB")
    power = min(len(units), int(math.log(count * 1.0005, 1000)))
    return f"{count / 1000**power:.3g} {units[power - 1]}"


class _MemoryGroup(NamedTuple):
    """A control group with a limit of memory."""

    folder: Path
    limit: int
    usage: str  # file with the memory in use
    reclaimable: str  # entry of memory.stat with the part of it that can be reclaimed

    def used(self) -> int:
        """Return the memory in use, without what can be reclaimed."""
        total = int(_first_word(str(self.folder / self.usage)) or 0)
        for line in (_read(str(self.folder / "memory.stat")) or "").splitlines():
            if line.startswith(f"{self.reclaimable} "):
                total -= int(line.split()[1])
        return max(0, total)


def _memory_groups() -> Iterator[_MemoryGroup]:
    """Yield the control groups of the process that have a limit of memory."""
    for file, (usage, reclaimable) in zip(MEMORY_LIMITS, MEMORY_USES, strict=True):
        root, name = Path(file).parent, Path(file).name
        for folder in (root, *_own_groups(root, name)):
            limit = _first_word(str(folder / name)) or ""
            if limit.isdigit() and int(limit) < 2**62:  # version 1 has a huge number instead of no limit
                yield _MemoryGroup(folder, int(limit), usage, reclaimable)


def _own_groups(root: Path, limit: str) -> list[Path]:
    """Return the folders of the control group of the process and of those that contain it, below the root."""
    version_2 = limit == Path(MEMORY_LIMITS[0]).name
    for line in (_read(OWN_GROUPS) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if (not controllers) if version_2 else ("memory" in controllers.split(",")):
            own = root / path.strip("/")
            return [folder for folder in (own, *own.parents) if root in folder.parents]
    return []


def _address_space_limit() -> int | None:
    """Return the limit of the address space of the process in bytes, None if there is none."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _environment_limits() -> list[int]:
    """Return the limits on threads set by BLAS settings, the environment, joblib and Dask."""
    with _blas.lock:
        limits = [*_blas.unlimited()]  # a copy: it is extended below
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if text.isdigit() and int(text) > 0:
        limits.append(int(text))
    elif _inside_joblib_thread() or _inside_dask_worker():
        limits.append(1)
    return [limit for limit in limits if limit] or [2**16]


@cache
def blas_libraries() -> list[Any]:
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
    return _quota_of(CPU_LIMITS, int(perf_counter() / QUOTA_SECONDS))


@lru_cache(maxsize=1)
def _quota_of(limits: tuple[str, str], period_of_time: int) -> float | None:
    """Return the quota of files with limits, read once in a period of time: reading takes as long as a small fit."""
    text = _read(limits[0])
    if text is not None:
        quota, _, period = text.partition(" ")
        return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None
    quota = _first_word(limits[1]) or ""
    period = _first_word("/sys/fs/cgroup/cpu/cpu.cfs_period_us") or ""
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else None


def _first_word(path: str) -> str | None:
    text = _read(path)
    return text.split()[0] if text else None


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:  # no such limit on this system
        return None
