"""Interruptions, and data that cannot be trained on."""

import time

import dask.array as da
import distributed
import numpy as np
import pytest
from dask import dataframe as dd
from sklearn.exceptions import NotFittedError

import maxmargin
from maxmargin.dask import LinearSVC, LinearSVR
from maxmargin.dask.driver import Plan, run_loop
from maxmargin.dask.worker_loop import end_node, open_node

MAX_SECONDS = 120


def rows_of(array, chunks=600):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


def test_interruption_leaves_a_model(client, table):
    X, y, _, _ = table

    def interrupt(progress):
        raise KeyboardInterrupt

    model = LinearSVC(loss="hinge", tol=1e-12, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="model so far is usable"):
        model.fit(rows_of(X), rows_of(y), client=client)
    assert model.status_ is maxmargin.Status.INTERRUPTED
    assert np.isfinite(model.certificate_.primal)
    assert_no_loops(client)


def test_error_of_the_callback(client, table):
    X, y, _, _ = table

    def fail(progress):
        raise LookupError("of the callback")

    with pytest.raises(LookupError, match="of the callback"):
        LinearSVC(loss="hinge", tol=1e-12, callback=fail).fit(rows_of(X), rows_of(y), client=client)
    assert_no_loops(client)


def assert_no_loops(client):
    """All loops of fits have ended, and left nothing behind."""

    def left(dask_worker):
        tasks = [key for key in dask_worker.state.tasks if str(key).startswith("maxmargin-")]
        return tasks + [name for name in dask_worker.extensions if name.startswith("maxmargin-")]

    until = time.monotonic() + MAX_SECONDS
    while any(client.run(left).values()):
        assert time.monotonic() < until, client.run(left)
        time.sleep(0.05)


def test_loop_of_a_cancelled_task_ends(client):
    """A client that has gone cannot end its loops: Dask cancels their tasks."""

    def ended(name, dask_worker):
        return dask_worker.extensions[name]._ended.is_set()

    name, address = "maxmargin-cancelled", min(client.nthreads())
    client.run(open_node, name, {address: []}, workers=[address])
    plan = Plan(None, 1, None, None, 0.0, None, 0, 0.0, 0.0)
    loop = client.submit(run_loop, name, plan, [], None, workers=[address], key=name)
    time.sleep(0.5)
    assert not client.run(ended, name, workers=[address])[address]
    loop.cancel()
    until = time.monotonic() + MAX_SECONDS
    while not client.run(ended, name, workers=[address])[address]:
        assert time.monotonic() < until
        time.sleep(0.05)
    client.run(end_node, name, workers=[address])


def test_bad_value_names_its_partition(client, table):
    X, y, _, _ = table
    wrong = X.copy()
    wrong[1300, 2] = np.nan
    with pytest.raises(ValueError, match=r"partition 2 of the Dask array X, row 100 .*nan in column 2"):
        LinearSVC().fit(rows_of(wrong), rows_of(y), client=client)


def test_missing_target_names_its_partition(client, table):
    X, _, _, targets = table
    wrong = targets.copy()
    wrong[700] = np.inf
    with pytest.raises(ValueError, match=r"partition 1 of .*, row 100 .*target is inf"):
        LinearSVR().fit(rows_of(X), rows_of(wrong), client=client)


def test_one_class_only(client, table):
    X = table[0]
    with pytest.raises(ValueError, match="1"):
        LinearSVC().fit(rows_of(X), rows_of(np.ones(len(X), dtype=int)), client=client)


def test_lengths_differ(client, table):
    X, y, _, _ = table
    with pytest.raises(ValueError, match="X has 3000 rows, but y has 2990"):
        LinearSVC().fit(rows_of(X), rows_of(y[10:]), client=client)
    keep = rows_of(X)[:, 0] > 0
    with pytest.raises(ValueError, match=r"partition \d of .*y must have one value for each"):
        LinearSVC().fit(rows_of(X)[keep], rows_of(y), client=client)
    with pytest.raises(ValueError, match="X has 5 partitions, but sample_weight has 3"):
        LinearSVC().fit(rows_of(X)[keep], rows_of(y)[keep], rows_of(np.ones(3000), 1000), client)


def test_features_that_are_not_numbers(client):
    pandas = pytest.importorskip("pandas")
    frame = dd.from_pandas(pandas.DataFrame({"a": [1.0, 2.0], "tree": ["ash", "birch"]}), npartitions=1)
    with pytest.raises(ValueError, match="columns are not: 'tree'"):
        LinearSVC().fit(frame, frame.a > 1, client=client)
    with pytest.raises(ValueError, match="X must have numbers"):
        LinearSVC().fit(da.from_array(np.array([["a"], ["b"]])), da.ones(2), client=client)


def test_targets_that_are_not_numbers(client, table):
    X = table[0]
    with pytest.raises(ValueError, match="targets must be numbers"):
        LinearSVR().fit(rows_of(X), rows_of(np.full(len(X), "ash")), client=client)


def test_masked_values_are_missing(client, table):
    X, y, _, _ = table
    masked = da.ma.masked_where(da.from_array(X, chunks=(500, 6)) > 3.0, da.from_array(X, chunks=(500, 6)))
    with pytest.raises(ValueError, match=r"partition \d of the Dask array X, row \d+ .*: nan in column"):
        LinearSVC().fit(masked, da.from_array(y, chunks=500), client=client)


def test_a_fit_within_a_task(client, table):
    """The task leaves its place to the tasks of the fit, on workers of one thread."""
    X, y, _, _ = table

    def fit():
        model = LinearSVC(loss="hinge").fit(da.from_array(X, chunks=(500, 6)), da.from_array(y, chunks=500))
        return model.to_local()

    tasks = [client.submit(fit, pure=False) for _ in range(3)]
    models = [task.result(timeout=120) for task in tasks]
    assert all(model.certificate_.relative_gap < 1e-4 for model in models)


def test_closed_client(table):
    X, y, _, _ = table
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        closed = distributed.Client(cluster)
        closed.close()
        with pytest.raises(ValueError, match="connected to a cluster, but this one is closed"):
            LinearSVC().fit(da.from_array(X), da.from_array(y), client=closed)


def test_predictions_before_the_fit(table):
    X = da.from_array(table[0])
    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(LinearSVC(), method)(X)


def test_a_series_is_no_table(client):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    series = frames.from_pandas(pandas.Series([1.0, 2.0, 3.0]), npartitions=2)
    with pytest.raises(ValueError, match="data frame, not a series"):
        LinearSVC().fit(series, series, client=client)


def test_arguments(client, table):
    X, y, _, _ = table
    with pytest.raises(ValueError, match="y must be a Dask array"):
        LinearSVC().fit(rows_of(X), y, client=client)
    with pytest.raises(ValueError, match="penalty='l2'"):
        LinearSVC(penalty="l1").fit(rows_of(X), rows_of(y), client=client)
    with pytest.raises(ValueError, match="all sample weights are 0"):
        LinearSVC().fit(rows_of(X), rows_of(y), rows_of(np.zeros(3000)), client)
    model = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="X has 5 features, but the model was fitted with 6"):
        model.predict(rows_of(X[:, :5]))
