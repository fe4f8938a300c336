"""`KernelApproximationSVC` on a cluster has the optimum and the certificate of one machine with the same landmarks."""

import pickle
from io import BytesIO

import dask.array as da
import numpy as np
import pytest
from dask import dataframe as dd
from scipy import sparse

import maxmargin
from maxmargin.dask import KernelApproximationSVC
from maxmargin.datasets import chessboard


@pytest.fixture(scope="module")
def board():
    return chessboard(2400, noise=0.05)


def rows_of(array, chunks=500):
    return da.from_array(array, chunks=(chunks, *array.shape[1:]))


def assert_same_optimum(model, local, tolerance=1e-3):
    """Both solve one problem: the intervals between dual and primal value contain the same optimum."""
    assert np.shape(model.certificate_) == np.shape(local.certificate_)
    for ours, theirs in zip(np.ravel(model.certificate_), np.ravel(local.certificate_), strict=True):
        assert ours.relative_gap <= tolerance
        assert ours.dual <= theirs.primal * (1 + 1e-5)  # features are in single precision
        assert theirs.dual <= ours.primal * (1 + 1e-5)
    assert all(status.converged for status in np.ravel(model.status_))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_same_optimum_as_on_one_machine(client, board, loss):
    X, y = board
    options = {"C": 10.0, "gamma": 2.0, "landmarks": X[::40], "loss": loss}
    model = KernelApproximationSVC(**options).fit(rows_of(X), rows_of(y, 700), client=client)
    local = maxmargin.KernelApproximationSVC(**options).fit(X, y)
    assert_same_optimum(model, local)
    np.testing.assert_array_equal(model.landmarks_, local.landmarks_)
    assert np.mean(model.predict(X) == local.predict(X)) > 0.99
    assert model.n_features_in_ == 2
    assert model.n_passes_ > 3


def test_classes_with_names_and_weights(client, table):
    X, _, y, _ = table
    names = np.array(["ash", "birch", "cedar"])[y]
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weights[:500] = 0  # a partition without a row that takes part
    options = {"landmarks": X[500:3000:50], "gamma": 0.2, "class_weight": "balanced", "tol": 1e-5}
    model = KernelApproximationSVC(**options).fit(rows_of(X), rows_of(names), rows_of(weights), client)
    local = maxmargin.KernelApproximationSVC(**options).fit(X, names, weights)
    assert_same_optimum(model, local, 1e-5)
    assert model.classes_.tolist() == ["ash", "birch", "cedar"]
    np.testing.assert_allclose(model.class_weight_, local.class_weight_)
    np.testing.assert_allclose(model.decision_function(X), local.decision_function(X), atol=0.02)


@pytest.mark.parametrize("landmarks", ["sample", "kmeans"])
def test_landmarks_are_repeatable_and_wherever_partitions_are(client, board, landmarks):
    X, y = board
    fits = [
        KernelApproximationSVC(
            C=10.0, gamma=2.0, n_components=60, landmarks=landmarks, random_state=seed
        ).fit(rows_of(X), rows_of(y), client=client)
        for seed in (3, 3, 4)
    ]  # fmt: skip
    assert (fits[0].landmarks_ == fits[1].landmarks_).all()
    assert (fits[0].dual_coef_ == fits[1].dual_coef_).all()
    assert fits[0].certificate_.gap == fits[1].certificate_.gap
    assert (fits[0].landmarks_ != fits[2].landmarks_).any()
    assert 0 < fits[0].approximation_error_ < 0.5
    assert fits[0].score(X, y) > 0.9
    elsewhere = client.persist([rows_of(X), rows_of(y)], workers=[max(client.nthreads())])
    moved = KernelApproximationSVC(C=10.0, gamma=2.0, n_components=60, landmarks=landmarks, random_state=3)
    np.testing.assert_array_equal(moved.fit(*elsewhere, client=client).landmarks_, fits[0].landmarks_)


def test_random_state_of_a_generator(client, board):
    X, y = (rows_of(part, 1200) for part in board)
    random = np.random.RandomState(0)
    first, second = (
        KernelApproximationSVC(gamma=2.0, n_components=20, random_state=random).fit(X, y, client=client)
        for _ in range(2)
    )
    assert (first.landmarks_ != second.landmarks_).any()  # the generator has advanced, as on one machine


def test_all_rows_as_sample_give_the_landmarks_of_one_machine(board):
    """Where the sample is of all rows, the choice of landmarks is that of a fit in memory."""
    from maxmargin.dask.landmark_tasks import choose_landmarks, generator

    X, y = board
    machine = maxmargin.KernelApproximationSVC(n_components=50, random_state=7)
    parts = [(X[:1000], y[:1000], np.ones(1000)), None, (X[1000:], y[1000:], np.ones(1400))]
    chosen = choose_landmarks(machine, generator(7), parts)
    np.testing.assert_array_equal(chosen.features.landmarks.data, machine.fit(X, y).landmarks_)
    assert chosen.error == pytest.approx(machine.approximation_error_)
    pickle.dumps(chosen)


def test_sparse_chunks_and_empty_partitions(client, table):
    X, y, _, _ = table
    thin = np.where(np.abs(X) > 0.7, X, 0.0)
    landmarks = sparse.csr_matrix(thin[:100])
    chunks = da.from_array(thin, chunks=((1, 0, 2300, 0, 3, 696, 0), 6)).map_blocks(sparse.csr_matrix)
    model = KernelApproximationSVC(landmarks=landmarks, gamma=0.2).fit(chunks, rows_of(y), client=client)
    local = maxmargin.KernelApproximationSVC(landmarks=landmarks, gamma=0.2).fit(sparse.csr_matrix(thin), y)
    assert_same_optimum(model, local)
    assert (model.predict(chunks).compute() == model.predict(sparse.csr_matrix(thin))).all()


def test_data_frame_and_lazy_predictions(client, table):
    pandas = pytest.importorskip("pandas")
    X, _, y, _ = table
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    frame["tree"] = pandas.Categorical.from_codes(y, ["birch", "ash", "cedar"])
    lazy = dd.from_pandas(frame, npartitions=4)
    features = lazy.drop(columns="tree")
    model = KernelApproximationSVC(n_components=50, random_state=0).fit(features, lazy.tree, client=client)
    assert model.feature_names_in_.tolist() == [*"abcdef"]
    predicted = model.predict(features)
    assert (predicted.compute() == model.predict(frame.drop(columns="tree"))).all()
    assert model.decision_function(features).compute().shape == (len(X), 3)


def test_model_of_a_single_machine(client, board):
    X, y = board
    model = KernelApproximationSVC(gamma=2.0, n_components=30, random_state=0)
    model.fit(rows_of(X), rows_of(y), client=client)
    local = model.to_local()
    assert type(local) is maxmargin.KernelApproximationSVC
    file = BytesIO()
    maxmargin.save(local, file)
    stored = maxmargin.load(BytesIO(file.getvalue()))
    assert (stored.decision_function(X) == model.decision_function(X)).all()
    assert stored.certificate_.gap == model.certificate_.gap
    assert (
        model.fit(X, y).predict(X) == maxmargin.KernelApproximationSVC(**local.get_params()).fit(X, y).predict(X)
    ).all()


def test_errors(client, board):
    X, y = board
    with pytest.raises(ValueError, match="certify must be"):
        KernelApproximationSVC(certify="exactly").fit(rows_of(X), rows_of(y), client=client)
    with pytest.raises(ValueError, match="polish=False"):
        KernelApproximationSVC(polish=True).fit(rows_of(X), rows_of(y), client=client)
    with pytest.raises(ValueError, match="precomputed"):
        KernelApproximationSVC(kernel="precomputed").fit(rows_of(X), rows_of(y), client=client)
    with pytest.raises(ValueError, match="chi"):
        KernelApproximationSVC(kernel="chi_squared").fit(rows_of(X - 9.0), rows_of(y), client=client)
    with pytest.raises(ValueError, match="2 features|X has"):
        KernelApproximationSVC(landmarks=np.ones((3, 5))).fit(rows_of(X), rows_of(y), client=client)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_bounds_on_the_exact_optimum(client, board, loss):
    X, y = board
    options = {"C": 10.0, "gamma": 2.0, "landmarks": X[::40], "loss": loss}
    model = KernelApproximationSVC(**options, certify="exact").fit(rows_of(X), rows_of(y), client=client)
    exact = maxmargin.SVC(C=10.0, gamma=2.0, loss=loss, tol=1e-6).fit(X, y).certificate_
    bounds = model.exact_certificate_
    assert bounds.dual <= exact.primal
    assert exact.dual <= bounds.primal == bounds.model_primal
    assert bounds.relative_gap < 0.1
    assert model.certify_exact(rows_of(X), rows_of(y), client=client) == bounds  # the sums are those of the partitions
    streamed = model.to_local().certify_exact(maxmargin.blocks.open(X, y, block_rows=500))
    assert streamed.primal == pytest.approx(bounds.primal, rel=1e-9)
    assert streamed.dual == pytest.approx(bounds.dual, rel=1e-6)
    assert model.certify_exact(X, y).primal == pytest.approx(bounds.primal, rel=1e-9)


def test_bounds_of_several_classes(client, table):
    X, _, y, _ = table
    names = np.array(["ash", "birch", "cedar"])[y]
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weights[:500] = 0  # a partition without a row that takes part
    options = {"landmarks": X[500:3000:50], "gamma": 0.2, "class_weight": "balanced", "certify": "exact"}
    model = KernelApproximationSVC(**options).fit(rows_of(X), rows_of(names), rows_of(weights), client)
    local = maxmargin.KernelApproximationSVC(**options).fit(X, names, weights)
    for ours, theirs in zip(model.exact_certificate_, local.exact_certificate_, strict=True):
        assert ours.dual <= theirs.primal
        assert theirs.dual <= ours.primal
        assert ours.relative_gap < 0.2
    with pytest.raises(ValueError, match="5 features, but the model was fitted with 6"):
        model.certify_exact(rows_of(X[:, :5]), rows_of(names), client=client)
    with pytest.raises(ValueError, match="'oak', which is not one of the 3 classes"):
        model.certify_exact(rows_of(X), rows_of(np.where(np.arange(3000) == 2999, "oak", names)), client=client)


def test_too_many_features_for_the_workers(monkeypatch):
    from maxmargin.dask import landmark_tasks
    from maxmargin.kernels import Gaussian, Points
    from maxmargin.models import LandmarkFeatures

    class Client:
        def run(self, function):
            return {"a": 2**20, "b": 2**20}

    features = LandmarkFeatures.of(Gaussian(1.0), Points(np.arange(10.0)[:, None]))
    landmark_tasks.check_worker_memory(Client(), 10_000, features)
    with pytest.raises(ValueError, match=r"10 features of 1,000,000 samples take 0.0 GiB.*2 workers"):
        landmark_tasks.check_worker_memory(Client(), 1_000_000, features)
