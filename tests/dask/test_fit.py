"""Fits on a cluster have the optimum and the certificate of fits on one machine."""

import pickle
import threading

import dask
import dask.array as da
import numpy as np
import pytest
from dask import dataframe as dd
from distributed import futures_of
from scipy import sparse

import maxmargin
from maxmargin.blocks.dask_collections import partitions_of
from maxmargin.dask import LinearSVC, LinearSVR
from maxmargin.dask.placement import await_tasks, place


def rows_of(array, chunks=600):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


def assert_same_optimum(model, local, tolerance=1e-4):
    """The intervals between dual and primal value of both models contain the same optimum."""
    for ours, theirs in zip(np.ravel(model.certificate_), np.ravel(local.certificate_), strict=True):
        assert ours.relative_gap <= tolerance
        assert ours.dual <= theirs.primal * (1 + 1e-12)
        assert theirs.dual <= ours.primal * (1 + 1e-12)
    assert all(status.converged for status in np.ravel(model.status_))
    assert model.coef_.shape == local.coef_.shape
    assert model.intercept_.shape == local.intercept_.shape
    np.testing.assert_allclose(model.coef_, local.coef_, atol=0.05)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept_scaling", [None, 1.0])
def test_two_classes(client, table, loss, intercept_scaling):
    X, y, _, _ = table
    options = {"loss": loss, "intercept_scaling": intercept_scaling}
    model = LinearSVC(**options).fit(rows_of(X), rows_of(y, 900), client=client)
    assert_same_optimum(model, maxmargin.LinearSVC(**options).fit(X, y))
    assert model.classes_.tolist() == [False, True]
    assert model.n_passes_ > 2


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_several_classes_with_names(client, table, loss):
    X, _, y, _ = table
    names = np.array(["ash", "birch", "cedar"])[y]
    model = LinearSVC(loss=loss).fit(rows_of(X), rows_of(names), client=client)
    local = maxmargin.LinearSVC(loss=loss).fit(X, names)
    assert_same_optimum(model, local)
    assert np.mean(model.predict(X) == local.predict(X)) > 0.98


def test_narrow_tolerance(client, table):
    X, y, _, _ = table
    model = LinearSVC(tol=1e-9).fit(rows_of(X), rows_of(y), client=client)
    local = maxmargin.LinearSVC(tol=1e-9).fit(X, y)
    assert_same_optimum(model, local, 1e-9)
    np.testing.assert_allclose(model.coef_, local.coef_, atol=1e-4)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression(client, table, loss):
    X, _, _, y = table
    model = LinearSVR(loss=loss, epsilon=0.2).fit(rows_of(X), rows_of(y), client=client)
    local = maxmargin.LinearSVR(loss=loss, epsilon=0.2).fit(X, y)
    assert_same_optimum(model, local)
    np.testing.assert_allclose(model.predict(rows_of(X)).compute(), local.predict(X), atol=0.1)


def test_weights_and_balanced_classes(client, table):
    X, y, _, _ = table
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weights[:600] = 0  # a partition without a row that takes part
    model = LinearSVC(class_weight="balanced").fit(rows_of(X), rows_of(y), rows_of(weights, 1400), client)
    local = maxmargin.LinearSVC(class_weight="balanced").fit(X, y, weights)
    assert_same_optimum(model, local)
    np.testing.assert_allclose(model.class_weight_, local.class_weight_)


def test_sparse_chunks(client, table):
    X, y, _, _ = table
    thin = np.where(np.abs(X) > 0.7, X, 0.0)
    chunks = rows_of(thin).map_blocks(sparse.csr_matrix)
    model = LinearSVC().fit(chunks, rows_of(y), client=client)
    assert_same_optimum(model, maxmargin.LinearSVC().fit(sparse.csr_matrix(thin), y))
    assert (model.predict(chunks).compute() == model.predict(thin)).all()


def test_more_features_than_second_moments_are_formed_for(client):
    rng = np.random.default_rng(2)
    X = sparse.random(600, 3200, density=0.01, format="csr", random_state=rng)
    y = np.asarray(X[:, :1600].sum(axis=1)).ravel() > np.asarray(X[:, 1600:].sum(axis=1)).ravel()
    parts = [dask.delayed(X[first : first + 200]) for first in (0, 200, 400)]
    chunks = da.concatenate([da.from_delayed(part, (200, 3200), meta=sparse.csr_matrix((0, 3200))) for part in parts])
    model = LinearSVC(intercept_scaling=1.0).fit(chunks, rows_of(y, 200), client=client)
    assert_same_optimum(model, maxmargin.LinearSVC(intercept_scaling=1.0).fit(X, y))


def test_data_frame_with_categories_and_unknown_lengths(client, table):
    pandas = pytest.importorskip("pandas")
    X, _, y, _ = table
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    frame["g"] = np.arange(len(X)) % 5  # a column of integers
    frame["tree"] = pandas.Categorical.from_codes(y, ["birch", "ash", "cedar"])
    lazy = dd.from_pandas(frame, npartitions=5)
    lazy = lazy[lazy.a > -1]
    kept = frame[frame.a > -1]
    model = LinearSVC().fit(lazy.drop(columns="tree"), lazy.tree, client=client)
    local = maxmargin.LinearSVC().fit(kept.drop(columns="tree"), np.asarray(kept.tree))
    assert_same_optimum(model, local)
    assert model.feature_names_in_.tolist() == [*"abcdefg"]
    predicted = model.predict(lazy.drop(columns="tree")).compute()
    assert predicted.index.equals(kept.index)
    assert (predicted == model.predict(kept.drop(columns="tree"))).all()
    values = model.decision_function(lazy.drop(columns="tree"))
    assert values.compute().shape == (len(kept), 3)


def test_arrays_of_unknown_lengths(client, table):
    X, y, _, _ = table
    keep = rows_of(X)[:, 1] > 0
    model = LinearSVC().fit(rows_of(X)[keep], rows_of(y)[keep], client=client)
    assert_same_optimum(model, maxmargin.LinearSVC().fit(X[X[:, 1] > 0], y[X[:, 1] > 0]))


def test_uneven_and_empty_partitions(client, table):
    X, y, _, _ = table
    chunks = (1, 0, 2300, 0, 3, 696, 0)
    model = LinearSVC().fit(da.from_array(X, chunks=(chunks, (2, 4))), rows_of(y), client=client)
    assert_same_optimum(model, maxmargin.LinearSVC().fit(X, y))
    predicted = model.predict(da.from_array(X, chunks=(chunks, (6,)))).compute()
    assert (predicted == model.predict(X)).all()


def test_float32_and_partitions_in_memory(client, table):
    X, y, _, _ = table
    rows, labels = client.persist([rows_of(X.astype(np.float32)), rows_of(y)])
    model = LinearSVC().fit(rows, labels, client=client)
    assert_same_optimum(model, maxmargin.LinearSVC().fit(X.astype(np.float32), y))


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_partitions_stay_where_they_are(client, table, kind):
    pandas = pytest.importorskip("pandas")
    X, y, _, _ = table
    rows = rows_of(X) if kind == "array" else dd.from_pandas(pandas.DataFrame(X), npartitions=5)
    rows, labels = client.persist(rows), client.persist(rows_of(y))
    await_tasks(client, futures_of(rows))
    futures = place(client, partitions_of(rows, labels, None))
    await_tasks(client, futures)
    holders = {key[1]: set(addresses) for key, addresses in client.who_has(futures_of(rows)).items()}
    for number, future in enumerate(futures):
        assert set(client.who_has([future])[future.key]) <= holders[number]


def test_repeatable(client, table):
    X, y, _, _ = table
    first, second = (LinearSVC(loss="hinge").fit(rows_of(X, 250), rows_of(y), client=client) for _ in range(2))
    assert (first.coef_ == second.coef_).all()
    assert (first.intercept_ == second.intercept_).all()
    assert first.certificate_.gap == second.certificate_.gap


def test_two_threads_with_one_client(client, table):
    X, y, _, targets = table
    models = {}

    def fit(name, model, target):
        models[name] = model.fit(rows_of(X), rows_of(target), client=client)

    threads = [
        threading.Thread(target=fit, args=("svc", LinearSVC(loss="hinge"), y)),
        threading.Thread(target=fit, args=("svr", LinearSVR(epsilon=0.1), targets)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert_same_optimum(models["svc"], maxmargin.LinearSVC(loss="hinge").fit(X, y))
    assert_same_optimum(models["svr"], maxmargin.LinearSVR(epsilon=0.1).fit(X, targets))


def test_model_without_dask(client, table):
    X, y, _, _ = table
    model = LinearSVC().fit(rows_of(X), rows_of(y), client=client)
    local = pickle.loads(pickle.dumps(model.to_local()))
    assert type(local) is maxmargin.LinearSVC
    assert (local.decision_function(X) == model.decision_function(X)).all()
    assert local.certificate_.gap == model.certificate_.gap
    assert (pickle.loads(pickle.dumps(model)).coef_ == model.coef_).all()


def test_arrays_in_memory_need_no_cluster(table):
    X, y, _, _ = table
    model = LinearSVC().fit(X, y)
    assert (model.coef_ == maxmargin.LinearSVC().fit(X, y).coef_).all()


def test_predictions_are_lazy(client, table):
    X, y, three, _ = table
    model = LinearSVC().fit(X, three)

    def forbidden(block):
        if len(block):
            raise AssertionError("a block was computed")
        return block

    rows = rows_of(X).map_blocks(forbidden, meta=np.empty((0, 6)))
    with dask.config.set(scheduler=lambda *_: pytest.fail("something was computed")):
        predicted, values = model.predict(rows), model.decision_function(rows)
    assert (predicted.shape, predicted.dtype) == ((3000,), three.dtype)
    assert (values.shape, values.dtype) == ((3000, 3), np.float64)
    two = LinearSVC().fit(X, y)
    assert (two.decision_function(rows_of(X)).compute() == two.decision_function(X)).all()


def test_callback_stops_the_fit(client, table):
    X, y, _, _ = table
    seen = []

    def callback(progress):
        seen.append(progress)
        return len(seen) == 2

    with pytest.warns(UserWarning, match="stopped before the tolerance"):
        model = LinearSVC(loss="hinge", tol=1e-12, callback=callback).fit(rows_of(X), rows_of(y), client=client)
    assert model.status_ is maxmargin.Status.STOPPED
    assert np.isfinite(model.certificate_.primal)


def test_limits(client, table):
    X, y, _, _ = table
    with pytest.warns(UserWarning, match="iterations"):
        model = LinearSVC(loss="hinge", tol=1e-12, max_iter=2).fit(rows_of(X), rows_of(y), client=client)
    assert model.status_ is maxmargin.Status.MAX_ITERATIONS
