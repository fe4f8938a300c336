"""Workers that are stopped, slow, or started and ended by an adaptive cluster, in the middle of a fit."""

import os
import signal
import threading
import time
from contextlib import contextmanager, suppress

import dask
import dask.array as da
import pytest
from distributed import Client, LocalCluster

import maxmargin
from maxmargin.dask import LinearSVC, grid_search
from maxmargin.dask.worker_watch import WorkerTimeoutError, WorkerWatch

MAX_SECONDS = 60

OPTIONS = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}


def rows_of(array, chunks=500):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


def slow_down(seconds, passes=1000):
    """Let some passes on a worker take a while."""
    from maxmargin.dask import worker_loop
    from maxmargin.training.block_training import evaluate_pass

    left = [seconds] * passes

    def slow(*arguments):
        if left:
            time.sleep(left.pop())
        return evaluate_pass(*arguments)

    worker_loop.evaluate_pass = slow


@contextmanager
def stopping(process):
    """Stop a process when it is called, as a callback; end it in the end."""

    def stop(progress=None):
        os.kill(process, signal.SIGSTOP)

    try:
        yield stop
    finally:
        os.kill(process, signal.SIGKILL)


def assert_optimal(model, X, y):
    local = maxmargin.LinearSVC(loss="hinge").fit(X, y)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.certificate_.dual <= local.certificate_.primal
    assert local.certificate_.dual <= model.certificate_.primal


@pytest.mark.parametrize("at", [0, -1])
def test_stopped_worker(table, at):
    """One clear error after the time of the configuration: of the worker at the root, and of another one."""
    X, y, _, _ = table
    with (
        dask.config.set({"maxmargin.worker-timeout": "1.5s"}),
        LocalCluster(n_workers=3, **OPTIONS) as cluster,
        Client(cluster) as client,
    ):
        client.run(slow_down, 0.2)
        workers = client.run(os.getpid)
        address = sorted(workers)[at]
        with (
            stopping(workers[address]) as stop,
            pytest.raises(WorkerTimeoutError, match=rf"{address} is connected, but has not answered for 1.5 seconds"),
        ):
            LinearSVC(loss="hinge", callback=stop).fit(rows_of(X), rows_of(y), client=client)


def test_worker_that_is_stopped_before_the_fit(table):
    X, y, _, _ = table
    with (
        dask.config.set({"maxmargin.worker-timeout": "1.5s"}),
        LocalCluster(n_workers=2, **OPTIONS) as cluster,
        Client(cluster) as client,
        stopping(min(client.run(os.getpid).items())[1]) as stop,
    ):
        stop()
        with pytest.raises(WorkerTimeoutError, match="has not answered"):
            LinearSVC().fit(rows_of(X), rows_of(y), client=client)
        data, grid = (X[:600], y[:600]), {"Cs": [1, 2], "gammas": [1]}
        with suppress(WorkerTimeoutError):  # unless the scheduler gives all trials to the other worker
            result = grid_search(*data, client=client, **grid)
            scores = [score[:3] for score in result.scores]  # without times
            assert scores == [score[:3] for score in maxmargin.grid_search(*data, **grid).scores]


async def remove(address, dask_scheduler):
    """Do what the scheduler does after `worker-ttl` without a heartbeat."""
    await dask_scheduler.remove_worker(address, stimulus_id="worker-ttl")


def test_stopped_worker_that_the_scheduler_removes(table):
    """Then its partitions are recovered, and the fit goes on."""
    X, y, _, _ = table
    with LocalCluster(n_workers=2, **OPTIONS) as cluster, Client(cluster) as client:
        client.run(slow_down, 0.1)
        address, process = max(client.run(os.getpid).items())
        reports = []
        with stopping(process) as stop:

            def stop_and_remove(progress):
                if not reports:
                    stop()
                    threading.Timer(1.0, client.run_on_scheduler, (remove, address)).start()
                reports.append(progress)

            model = LinearSVC(loss="hinge", callback=stop_and_remove).fit(rows_of(X), rows_of(y), client=client)
        assert address not in client.nthreads()
        assert len(reports) > 1
    assert_optimal(model, X, y)


def test_slow_worker(table):
    """A worker whose passes take longer than a worker may be silent: its event loop answers meanwhile."""
    X, y, _, _ = table
    with (
        dask.config.set({"maxmargin.worker-timeout": "2s"}),
        LocalCluster(n_workers=2, **OPTIONS) as cluster,
        Client(cluster) as client,
    ):
        client.run(slow_down, 0.0)  # imports
        client.run(slow_down, 7.0, 1, workers=[max(client.nthreads())])
        model = LinearSVC(loss="hinge").fit(rows_of(X), rows_of(y), client=client)
    assert_optimal(model, X, y)


def test_adaptive_cluster(table):
    """Its first workers start with the fit; one that it ends, and one that joins, do not end the fit."""
    X, y, _, _ = table
    with LocalCluster(n_workers=0, **OPTIONS) as cluster, Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=3, interval="100ms")
        model = LinearSVC(loss="hinge").fit(rows_of(X), rows_of(y), client=client)
        assert_optimal(model, X, y)
        changes = []

        def change(progress):
            if not changes:
                client.run(slow_down, 0.1)
                changes.append(max(client.nthreads()))
                client.retire_workers(changes, close_workers=True)
                cluster.adapt(minimum=3, maximum=3, interval="100ms")

        again = LinearSVC(loss="hinge", callback=change).fit(rows_of(X), rows_of(y), client=client)
        assert changes
    assert_optimal(again, X, y)


def test_watch_of_workers_that_have_left():
    class Gone:
        def nthreads(self):
            return {}

    watch = WorkerWatch(Gone())
    assert watch.timeout == 600
    assert watch.run(["tcp://127.0.0.1:1"], os.getpid) == {}
