"""Workers that are killed in the middle of a fit."""

import os
import signal
import time

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import maxmargin
from maxmargin.dask import LinearSVC, cluster_fit

MAX_SECONDS = 120


def rows_of(array, chunks=600):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


def slow_down():
    """Let passes on a worker take a while."""
    from maxmargin.dask import worker_loop
    from maxmargin.training.block_training import evaluate_pass

    def slow(*arguments):
        time.sleep(0.1)
        return evaluate_pass(*arguments)

    worker_loop.evaluate_pass = slow


@pytest.fixture(scope="module")
def fragile():
    """A client of workers that may be killed; its fits are slow."""
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        yield client


class Killer:
    """A callback that kills a worker after the first pass: that at the root of the tree, or the last."""

    def __init__(self, client, at):
        client.wait_for_workers(3, timeout=MAX_SECONDS)
        client.run(slow_down)
        workers = client.run(os.getpid)
        self.address = sorted(workers)[at]
        self.process = workers[self.address]
        self.reports = []

    def __call__(self, progress):
        if not self.reports:
            os.kill(self.process, signal.SIGKILL)
        self.reports.append(progress)


@pytest.mark.parametrize("at", [0, -1])
def test_killed_worker(fragile, table, at):
    X, y, _, _ = table
    killer = Killer(fragile, at)
    model = LinearSVC(loss="hinge", callback=killer).fit(rows_of(X, 500), rows_of(y), client=fragile)
    local = maxmargin.LinearSVC(loss="hinge").fit(X, y)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.certificate_.dual <= local.certificate_.primal
    assert killer.address not in fragile.nthreads()
    assert len(killer.reports) > 1
    assert model.n_passes_ >= len(killer.reports)


def test_workers_that_are_lost_again_and_again(fragile, table, monkeypatch):
    monkeypatch.setattr(cluster_fit, "MAX_LOSSES", 1)
    X, y, _, _ = table
    killer = Killer(fragile, 1)
    with pytest.raises(cluster_fit.WorkerLossError, match=killer.address):
        LinearSVC(loss="hinge", callback=killer).fit(rows_of(X, 500), rows_of(y), client=fragile)


def test_lost_data_without_a_source(fragile, table):
    X, y, _, _ = table
    fragile.wait_for_workers(3, timeout=MAX_SECONDS)
    killer = Killer(fragile, 0)
    parts = fragile.scatter(np.split(X, 3), workers=[killer.address], hash=False)
    rows = da.concatenate([da.from_delayed(part, (1000, 6), dtype=float) for part in parts])
    with pytest.raises(RuntimeError, match="scatter have no source"):
        LinearSVC(loss="hinge", callback=killer).fit(rows, rows_of(y, 1000), client=fragile)
