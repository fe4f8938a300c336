"""Limits of threads and memory, and that they are respected."""

import os
import subprocess
import sys
import textwrap
import threading

import joblib
import numpy as np
import pytest
from joblib.externals.loky import ProcessPoolExecutor
from threadpoolctl import threadpool_info, threadpool_limits

from maxmargin import SVC, resources
from maxmargin.resources import (
    available_memory,
    blas_thread_limit,
    check_memory,
    default_cache_bytes,
    explained_memory_errors,
    format_bytes,
    thread_count,
    usable_cores,
    usable_memory,
)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


needs_cores = pytest.mark.skipif(usable_cores() < 2, reason="needs at least two cores")


def threads_of_a_fit(n_jobs=None):
    """Fit a model; return the maximum number of additional threads, and the number expected."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(4000, 30)), np.arange(4000) % 2
    SVC(n_jobs=1).fit(X[:50], y[:50])
    counts, done = [], threading.Event()

    def watch():
        while not done.is_set():
            counts.append(len(os.listdir("/proc/self/task")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = len(os.listdir("/proc/self/task"))
    model = SVC(C=10, n_jobs=n_jobs)
    model.fit(X, y)
    model.decision_function(X)
    done.set()
    watcher.join()
    return max(counts) - before, thread_count(n_jobs)


def test_n_jobs_counts_like_joblib(monkeypatch):
    monkeypatch.setattr(resources, "usable_cores", lambda: 8)
    monkeypatch.setattr(resources, "_environment_limits", lambda: [2**16])
    assert [thread_count(n) for n in (None, -1, -2, 1, 3, 20, -100)] == [8, 8, 7, 1, 3, 20, 1]
    for bad in (0, 1.5, True, "2"):
        with pytest.raises(ValueError, match="n_jobs"):
            thread_count(bad)


def test_environment_lowers_the_default(monkeypatch):
    monkeypatch.setattr(resources, "usable_cores", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count(None) == 1
    assert thread_count(3) == 3


def test_threadpoolctl_lowers_the_default():
    with threadpool_limits(1, user_api="blas"):
        assert thread_count(None) == 1


def test_overlapping_blas_limits_are_restored():
    """In a process of its own: the number of BLAS threads is global, and other tests leave threads behind."""
    code = textwrap.dedent("""
        import threading
        import scipy.linalg
        import threadpoolctl
        from maxmargin.resources import blas_thread_limit, thread_count

        def blas_threads():
            return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]

        unlimited = blas_threads()
        first_in, first_out = threading.Event(), threading.Event()

        def first():
            with blas_thread_limit(1):
                first_in.set()
                first_out.wait(10)

        thread = threading.Thread(target=first)
        thread.start()
        first_in.wait(10)
        assert max(blas_threads()) == 1
        assert thread_count(None) == thread_count(-1)  # our own limit is not an environment limit
        with blas_thread_limit(1):
            first_out.set()
            thread.join()
            assert max(blas_threads()) == 1
        assert blas_threads() == unlimited
    """)
    subprocess.run([sys.executable, "-c", code], check=True)


def test_limits_of_the_environment_do_not_accumulate(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with blas_thread_limit(1):
        assert [thread_count(None) for _ in range(3)] == [thread_count(None)] * 3
    with blas_thread_limit(1):
        assert max(blas_threads()) == 1


def test_a_blas_limit_never_exceeds_an_outer_limit():
    with threadpool_limits(1, user_api="blas"), blas_thread_limit(8):
        assert max(blas_threads()) == 1


def test_cpu_quota_of_a_control_group(monkeypatch, tmp_path):
    limit = tmp_path / "cpu.max"
    monkeypatch.setattr(resources, "CPU_LIMITS", (str(limit), str(tmp_path / "none")))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    limit.write_text("150000 100000\n")
    assert usable_cores() == 2
    assert usable_cores() == 2  # without reading the file again
    monkeypatch.setattr(resources, "QUOTA_SECONDS", 1e-6)
    limit.write_text("max 100000\n")
    assert usable_cores() == 16


def test_memory_limit_of_a_control_group(monkeypatch, tmp_path):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(resources, "MEMORY_LIMITS", (str(limit), str(tmp_path / "none")))
    physical = usable_memory()
    limit.write_text("max\n")
    assert usable_memory() == physical
    limit.write_text(f"{2**30}\n")
    assert usable_memory() == 2**30
    assert default_cache_bytes() == 2**28


@needs_cores
def test_a_fit_uses_n_jobs_threads():
    for n_jobs in (1, 2):  # in a new process: threads outlive the fit that starts them
        with ProcessPoolExecutor(1) as new_process:
            assert new_process.submit(threads_of_a_fit, n_jobs).result() == (n_jobs - 1, n_jobs)


@needs_cores
def test_one_thread_in_joblib_processes():
    workers = usable_cores()
    for extra, expected in joblib.Parallel(n_jobs=workers)(joblib.delayed(threads_of_a_fit)() for _ in range(workers)):
        assert (extra, expected) == (0, 1)


@needs_cores
def test_one_thread_in_joblib_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    expected = joblib.Parallel(n_jobs=2, backend="threading")(joblib.delayed(thread_count)(None) for _ in range(4))
    assert expected == [1, 1, 1, 1]
    assert thread_count(None) >= 1


@needs_cores
def test_one_thread_in_dask_tasks():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is in the test extra")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        expected = client.gather([client.submit(thread_count, None, pure=False) for _ in range(4)])
    assert expected == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("limit_file", "usage_file", "stat", "line"),
    [
        ("memory.max", "memory.current", "inactive_file", "0::/outer/own"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "4:cpu,memory:/outer/own"),
    ],
)
def test_available_memory_of_the_own_control_group(monkeypatch, tmp_path, limit_file, usage_file, stat, line):
    missing = str(tmp_path / "none" / "memory.max")
    second = limit_file != "memory.max"
    root = tmp_path / "cgroup"
    limits = (missing, str(root / limit_file)) if second else (str(root / limit_file), str(tmp_path / "none" / "limit"))
    monkeypatch.setattr(resources, "MEMORY_LIMITS", limits)
    monkeypatch.setattr(resources, "OWN_GROUPS", str(tmp_path / "groups"))
    (tmp_path / "groups").write_text(f"{line}\n")
    own = root / "outer" / "own"
    own.mkdir(parents=True)
    (root / "outer" / limit_file).write_text(f"{2**31}\n")
    (root / "outer" / usage_file).write_text(f"{2**21}\n")
    (own / limit_file).write_text(f"{2**30}\n")
    (own / usage_file).write_text(f"{2**29 + 2**20}\n")
    (own / "memory.stat").write_text(f"anon 1\n{stat} {2**20}\n")
    assert usable_memory() == 2**30
    assert available_memory() == 2**29


def test_available_memory_of_the_system_and_of_the_address_space(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 99999999 kB\nMemAvailable: 1024 kB\n")
    monkeypatch.setattr(resources, "SYSTEM_MEMORY", str(tmp_path / "meminfo"))
    assert available_memory() == 2**20
    program = "import resource as r; r.setrlimit(r.RLIMIT_AS, (2**33, 2**33)); " \
        "from maxmargin.resources import available_memory as a; print(a())"  # fmt: skip
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert 0 < int(printed) < 2**33


def test_memory_errors_say_what_needs_how_much(monkeypatch):
    monkeypatch.setattr(resources, "available_memory", lambda: 2_500_000)
    check_memory(2_500_000, "a table", "use a smaller one")
    with pytest.raises(MemoryError, match=r"^a table needs 3.4 GB of memory, but 2.5 MB are available; use a smaller"):
        check_memory(3_400_000_000, "a table", "use a smaller one")
    unexplained = pytest.raises(MemoryError, match=r"^it needs more memory than the 2.5 MB that are available; do less")
    with unexplained, explained_memory_errors("it", "do less"):
        raise MemoryError("std::bad_alloc")
    with pytest.raises(MemoryError, match=r"^clear$"), explained_memory_errors("it", "do less"):
        raise MemoryError("clear")
    sizes = [format_bytes(count) for count in (999, 1000, 999_600, 10**12, 2**62)]
    assert sizes == ["999 bytes", "1 kB", "1 MB", "1 TB", "4.61 EB"]
