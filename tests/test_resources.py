"""Limits of threads and memory, and that they are respected."""

import os
import threading

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from maxmargin import SVC, resources
from maxmargin.resources import blas_thread_limit, default_cache_bytes, thread_count, usable_cores, usable_memory


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


needs_cores = pytest.mark.skipif(usable_cores() < 2, reason="needs at least two cores")


def threads_of_a_fit(n_jobs=None):
    """Fit a model; return the maximum number of additional threads, and the number expected."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(4000, 30)), np.arange(4000) % 2
    SVC().fit(X[:50], y[:50])
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


def test_a_blas_limit_never_exceeds_an_outer_limit():
    with threadpool_limits(1, user_api="blas"), blas_thread_limit(8):
        assert max(blas_threads()) == 1


def test_cpu_quota_of_a_control_group(monkeypatch, tmp_path):
    limit = tmp_path / "cpu.max"
    monkeypatch.setattr(resources, "CPU_LIMITS", (str(limit), str(tmp_path / "none")))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    limit.write_text("150000 100000\n")
    assert usable_cores() == 2
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
    extra, expected = threads_of_a_fit(n_jobs=2)
    assert expected == 2
    assert 1 <= extra <= 1
    assert threads_of_a_fit(n_jobs=1)[0] == 0


@needs_cores
def test_one_thread_in_joblib_processes():
    workers = usable_cores()
    for extra, expected in joblib.Parallel(n_jobs=workers)(joblib.delayed(threads_of_a_fit)() for _ in range(workers)):
        assert (extra, expected) == (0, 1)


@needs_cores
def test_one_thread_in_joblib_threads():
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
