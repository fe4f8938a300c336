"""Searches on a GPU: samples are copied and prepared once, and scores are those of the CPU."""

import threading
import weakref
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import accuracy_score, make_scorer

from maxmargin import SVC, SVCCV, SVRCV, KernelApproximationSVC, NuSVC, OneClassSVMCV, grid_search
from maxmargin.cuda import prediction
from maxmargin.cuda import samples as cuda_samples
from maxmargin.cuda.device import DeviceError
from maxmargin.cuda.device_table import DeviceSubset, DeviceTable
from maxmargin.deadline import Deadline
from maxmargin.kernels.formula import FeatureGammas
from maxmargin.search.device_trials import BlockwiseFoldScorer, DeviceFoldScorer, where_trained
from maxmargin.search.fold_scoring import FoldScorer, Split
from maxmargin.search.grid import Point
from maxmargin.search.path_trials import PathTrials
from maxmargin.search.trial_threads import TrialThreads
from maxmargin.training.fit_context import FitContext
from reference import cuda_twin

GRID = {"Cs": [0.1, 10.0], "gammas": [0.05, 0.5]}


def data(n=240, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return X, X[:, 0] * X[:, 1] + 0.5 * random.normal(size=n)


def assert_same_scores(found, expected, samples, folds, flips=1):
    """Scores are equal up to so many held-out samples of each fold, whose values are within the tolerance of 0."""
    assert found["params"] == expected["params"]
    for name in found:
        if name.endswith("_score") and name.startswith("split"):
            np.testing.assert_allclose(found[name], expected[name], atol=flips * folds / samples + 1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
def test_scores_of_the_cpu(device, classes, form):
    X, y = data()
    X = {"dense": X, "float32": X.astype(np.float32), "sparse": sparse.csr_matrix(np.where(X > 0, X, 0.0))}[form]
    labels = np.digitize(y, [0.0] if classes == 2 else [-0.5, 0.5])
    found = SVCCV(**GRID, cv=3, device="cuda").fit(X, labels)
    expected = SVCCV(**GRID, cv=3).fit(X, labels)
    assert_same_scores(found.cv_results_, expected.cv_results_, 240, 3)
    assert found.device_ == "cuda"


@pytest.mark.parametrize(
    "search",
    [
        SVCCV(**GRID, cv=3, kernel="laplacian"),
        SVCCV(Cs=[0.1, 1.0], gammas=[0.1], cv=3, class_weight="balanced"),
        SVCCV(**GRID, cv=3, multi_class="ovr", scoring="f1_macro"),
        SVCCV(Cs=[0.1, 1.0], kernel="poly", degree=2, coef0=1.0, cv=3),
    ],
    ids=repr,
)
def test_other_kernels_and_scores(device, search):
    X, y = data()
    labels = np.digitize(y, [-0.5, 0.5])
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 240)
    expected = type(search)(**search.get_params()).fit(X, labels, sample_weight=weights)
    found = type(search)(**search.get_params() | {"device": "cuda"}).fit(X, labels, sample_weight=weights)
    assert_same_scores(found.cv_results_, expected.cv_results_, 240, 3, flips=2)


def test_regression(device):
    X, y = data()
    found, expected = (SVRCV(**GRID, cv=3, device=name).fit(X, y) for name in ("cuda", "cpu"))
    for name in (f"split{fold}_test_score" for fold in range(3)):
        np.testing.assert_allclose(found.cv_results_[name], expected.cv_results_[name], atol=5e-3)
    assert found.best_params_ == expected.best_params_


def test_novelty_detection(device):
    X, _ = data()
    found, expected = (
        OneClassSVMCV(nus=[0.1, 0.3], gammas=[0.05, 0.5], cv=3, device=name).fit(X) for name in ("cuda", "cpu")
    )
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=0.02)


def test_scores_are_those_of_independent_fits(device, monkeypatch):
    X, y = data()
    together = grid_search(X, y > 0, SVC(device="cuda"), Cs=[0.1, 10.0], gammas=[0.05, 0.5], folds=3)
    monkeypatch.setattr("maxmargin.search.trial_threads.where_trained", lambda scorer: scorer)
    alone = grid_search(X, y > 0, SVC(device="cuda"), Cs=[0.1, 10.0], gammas=[0.05, 0.5], folds=3)
    for one, other in zip(together.scores, alone.scores, strict=True):
        assert one.point == other.point
        assert abs(one.mean - other.mean) <= 1 / 240


def test_samples_are_copied_and_prepared_once(device, monkeypatch):
    """However many values of C and γ, and folds; the model at the end copies them once more."""
    X, y = data(600)
    copies, splits = [], []
    to_device, split = cuda_samples.to_device, cuda_samples.split_halves
    monkeypatch.setattr(cuda_samples, "to_device", lambda array: copies.append(len(array)) or to_device(array))
    monkeypatch.setattr(
        cuda_samples, "split_halves", lambda shape, values: splits.append(shape) or split(shape, values)
    )
    SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.05, 0.1, 0.5], cv=4, device="cuda", refit=False, n_jobs=3).fit(X, y > 0)
    assert copies.count(600) == 1
    assert splits.count((600, 4)) == 1
    assert all(rows <= 450 for rows in copies if rows != 600)  # support vectors, for predictions


def test_prepared_samples_are_few(device):
    """Features whose gap is cut have halves of their own for each γ, of which the last are kept."""
    X, y = data()
    X = np.hstack([X, 1000.0 * (np.arange(240) % 50 == 0)[:, None]])
    table = DeviceTable(device.asarray(X), 0).check(None, "SVC")
    everything = DeviceSubset(table, np.arange(240))
    for gamma in np.geomspace(0.01, 1.0, 20):
        SVC(gamma=gamma, device="cuda").fit(everything, y > 0)
    prepared = [key for key in table.memo if key[0] == "cuda"]
    assert len(prepared) == cuda_samples.MAX_KEPT_HALVES
    assert len({id(table.memo[key].halves[0]) for key in prepared}) == len(prepared)


def test_samples_for_a_gamma_of_each_feature_are_few(device):
    X, y = data()
    table = DeviceTable(device.asarray(X), 0).check(None, "SVC")
    everything = DeviceSubset(table, np.arange(240))
    for gamma in (0.1, 0.2, 0.3, 0.4):
        SVC(gamma=np.full(X.shape[1], gamma), device="cuda").fit(everything, y > 0)
    gammas = {key[-1] for key in table.memo if key[0] in ("cuda", "shared") and isinstance(key[-1], FeatureGammas)}
    assert len(gammas) == cuda_samples.MAX_KEPT_HALVES


def accuracy_of_arrays(estimator, X, y):
    assert type(X) is np.ndarray
    return accuracy_score(y, estimator.predict(X))


def scorer_of(estimator, X, y, folds=3):
    return FoldScorer.of(estimator, X, y, folds, None, 0)


def test_a_scorer_of_the_user_gets_samples_in_host_memory(device):
    X, y = data()
    seen = []

    def own(estimator, X, y):
        seen.append(type(X))
        return accuracy_score(y, estimator.predict(X))

    found = grid_search(X, y > 0, SVC(device="cuda"), Cs=[1.0], gammas=[0.1], folds=3, scoring=own)
    assert set(seen) == {np.ndarray}
    same = grid_search(
        X, y > 0, SVC(device="cuda"), Cs=[1.0], gammas=[0.1], folds=3, scoring=make_scorer(accuracy_score)
    )
    assert found.best.mean == same.best.mean


@pytest.mark.parametrize("scoring", [None, accuracy_of_arrays], ids=["known", "of the user"])
def test_scores_of_training_samples(device, scoring):
    X, y = data()
    options = {"cv": 3, "return_train_score": True, "scoring": scoring}
    found, expected = (SVCCV(**GRID, **options, device=name).fit(X, y > 0) for name in ("cuda", "cpu"))
    assert_same_scores(found.cv_results_, expected.cv_results_, 240, 3, flips=2)
    assert "split0_train_score" in found.cv_results_


def test_rows_of_folds_are_copied_in_blocks_and_not_kept(monkeypatch):
    twin = cuda_twin.install_backend(monkeypatch)
    X, y = data()
    plain = scorer_of(SVC(device="cuda", C=0.1), X, y > 0)
    scorer = where_trained(replace(plain, scoring=replace(plain.scoring, train=True)))
    assert isinstance(scorer, DeviceFoldScorer)
    copies, rows = [], DeviceTable.rows

    def recorded(self, chosen):
        found = rows(self, chosen)
        if found.base is not self.array:
            copies.append((len(found), weakref.ref(found)))
        return found

    point = Point(C=0.1)
    models = [scorer.trained(copy(scorer.estimator), fold) for fold in range(3)]
    monkeypatch.setattr(DeviceTable, "rows", recorded)
    monkeypatch.setattr(prediction, "VALUES_PER_BLOCK", 20 * min(len(model.support_) for model in models))
    scores = [scorer.scores(model, point, fold) for fold, model in enumerate(models)]
    assert {len(found) for found in scores} == {2}
    assert max(count for count, _ in copies) <= 20
    assert sum(count for count, _ in copies) >= 3 * 160
    assert [array() for _, array in copies] == [None] * len(copies)
    assert isinstance(scorer.table.array, twin.ndarray)


def test_which_trials_share_a_table(device, monkeypatch):
    X, y = data()
    labels = y > 0
    assert isinstance(where_trained(scorer_of(SVC(device="cuda"), X, labels)), DeviceFoldScorer)
    assert where_trained(scorer_of(SVC(device="cuda"), X, labels)).workers == 8
    for estimator in (SVC(), SVC(device="cuda", kernel="precomputed"), SVC(device="cuda", kernel=lambda X, Z: X @ Z.T)):
        scorer = scorer_of(estimator, X, labels)
        assert where_trained(scorer) is scorer
    auto = scorer_of(SVC(device="auto"), X, labels)
    few = where_trained(auto)
    assert type(few) is FoldScorer
    assert few.estimator.device == "cpu"
    assert PathTrials.of(auto, [], 1) is None
    monkeypatch.setattr("maxmargin.machines.devices.MIN_SAMPLES_FOR_GPU", 160)
    many = where_trained(auto)
    assert isinstance(many, DeviceFoldScorer)
    extreme = SVC(device="auto", C=1e16)
    assert many.trained(extreme, 0).device_ == "cpu"
    assert many.trained(SVC(device="auto"), 0).device_ == "cuda:0"
    monkeypatch.setattr("maxmargin.machines.devices.MIN_SAMPLES_FOR_GPU", 161)
    assert type(where_trained(auto)) is FoldScorer
    monkeypatch.setattr(cuda_samples, "MAX_TABLE_FRACTION", 0.0)
    assert type(where_trained(scorer_of(SVC(device="cuda"), X, labels))) is BlockwiseFoldScorer


@pytest.mark.parametrize(
    ("n_jobs", "trials", "problems"),
    [(1, 1, (1, 1)), (2, 2, (1, 1)), (8, 4, (2, 1)), (32, 4, (2, 4)), (32, 1, (3, 10))],
)
def test_trials_and_their_problems_at_the_same_time(device, monkeypatch, n_jobs, trials, problems):
    """At most n_jobs trials; eight problems on the GPU, whatever the number of threads."""
    monkeypatch.setattr("maxmargin.training.fit_context.MAX_SINGLE_THREAD_ROWS", 0)
    monkeypatch.setattr("maxmargin.search.fold_scoring.SMALL_PROBLEM_SAMPLES", 0)
    X, y = data()
    labels = np.digitize(y, [-0.5, 0.5])
    scorer = scorer_of(SVC(device="cuda", gamma=0.1), X, labels, folds=2)
    jobs = [[(Point(C=0.1 * (k + 1)), k % 2)] for k in range(4 if trials > 1 or n_jobs == 1 else 1)]
    running, most, divided, lock = [0], [0], [], threading.Lock()
    trained, divide = DeviceFoldScorer.trained, FitContext.divide_threads

    def counted(self, estimator, fold):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        try:
            return trained(self, estimator, fold)
        finally:
            with lock:
                running[0] -= 1

    def recorded(self, X, count):
        found = divide(self, X, count)
        divided.append((count, found))
        return found

    monkeypatch.setattr(DeviceFoldScorer, "trained", counted)
    monkeypatch.setattr(FitContext, "divide_threads", recorded)
    with TrialThreads(n_jobs, scorer, jobs, Deadline(None)) as threads:
        assert threads.workers == trials
        finished = 0
        while finished < len(jobs):
            finished += threads.collect()[1]
    assert most[0] <= trials
    assert {found for count, found in divided if count == 3} == {problems}
    assert len([count for count, _ in divided if count == 3]) == len(jobs)
    assert trials * problems[0] <= 8


def test_auto_is_what_it_is_for_a_fit(device, monkeypatch):
    """It is replaced only where it is the CPU for every fold."""
    X, y = data()
    labels = y > 0
    monkeypatch.setattr("maxmargin.machines.devices.MIN_SAMPLES_FOR_GPU", 160)

    def found(estimator, X=X, **changes):
        scorer = replace(scorer_of(estimator, X, labels), **changes)
        trained_by = where_trained(scorer)
        return "as it is" if trained_by is scorer else (type(trained_by).__name__, trained_by.estimator.device)

    shared, on_cpu = ("DeviceFoldScorer", "auto"), ("FoldScorer", "cpu")
    assert found(SVC(device="auto")) == shared
    for estimator in (
        SVC(device="auto", kernel="precomputed"),
        SVC(device="auto", kernel=lambda X, Z: X @ Z.T),
        SVC(device="auto", solver="pairwise"),
        SVC(device="auto", C=1e16),
    ):
        assert found(estimator) == on_cpu
    assert found(KernelApproximationSVC(device="auto")) == "as it is"
    unequal = (Split(None, np.arange(10)), Split(None, np.arange(100)))
    assert found(SVC(device="auto"), splits=unequal) == "as it is"
    assert found(SVC(device="auto"), splits=unequal[1:]) == on_cpu
    with monkeypatch.context() as without_space:
        without_space.setattr(cuda_samples, "MAX_TABLE_FRACTION", 0.0)
        assert found(SVC(device="auto")) == ("BlockwiseFoldScorer", "auto")
        monkeypatch.setattr("maxmargin.search.fold_scoring.SMALL_PROBLEM_SAMPLES", 0)
        trials = TrialThreads(8, scorer_of(SVC(device="auto"), X, labels), [[(Point(C=1.0), 0)]] * 3, Deadline(None))
        assert (trials.workers, trials.threads) == (1, 8)
        assert trials.scorer.trained(copy(trials.scorer.estimator), 0).device_ == "cuda"
    monkeypatch.setattr("maxmargin.search.device_trials.is_available", lambda: False)
    assert found(SVC(device="auto")) == on_cpu


def test_samples_in_gpu_memory(device):
    X, y = data()
    there, labels = device.asarray(X), device.asarray((y > 0).astype(int))
    found = SVCCV(**GRID, cv=3, device="cuda").fit(there, labels)
    expected = SVCCV(**GRID, cv=3, device="cuda").fit(X, y > 0)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    result = grid_search(there, labels, SVC(device="cuda"), Cs=[1.0], gammas=[0.1], folds=3)
    assert len(result.scores) == 1


def test_errors_are_those_of_the_trials(device):
    X, y = data()
    labels = y > 0
    with pytest.raises(ValueError, match="NaN"):
        grid_search(np.where(X > 2, np.nan, X), labels, SVC(device="cuda"), Cs=[1.0], gammas=[0.1], folds=3)
    with pytest.raises(DeviceError, match="does not exist"):
        grid_search(X, labels, SVC(device="cuda:9"), Cs=[1.0], gammas=[0.1], folds=3)
    with pytest.raises(ValueError, match="device must be"):
        grid_search(X, labels, SVC(device="gpu"), Cs=[1.0], gammas=[0.1], folds=3)
    with pytest.raises(ValueError, match="solver='auto' or 'block'"):
        SVCCV(**GRID, cv=3, device="cuda", solver="pairwise").fit(X, labels)


def test_without_a_gpu(monkeypatch):
    """ "auto" is the engine of the CPU; "cuda" says what is missing."""
    monkeypatch.setattr("maxmargin.machines.devices.MIN_SAMPLES_FOR_GPU", 1)

    def missing(name):
        raise DeviceError("there is no GPU")

    for module in ("maxmargin.search.device_trials", "maxmargin.cuda.device"):
        monkeypatch.setattr(f"{module}.open_device", missing)
    X, y = data()
    scorer = where_trained(scorer_of(SVC(device="auto"), X, y > 0))
    assert scorer.estimator.device == "cpu"
    with pytest.raises(DeviceError, match="there is no GPU"):
        grid_search(X, y > 0, SVC(device="cuda"), Cs=[1.0], gammas=[0.1], folds=3)


@pytest.mark.parametrize("model", [SVC(probability=True), NuSVC(nu=0.6, probability=True)], ids=repr)
def test_probabilities(device, model):
    X, y = data()
    search = {"Cs": [1.0]} if isinstance(model, SVC) else {"nus": [0.6]}
    own = type(model)(**model.get_params() | {"device": "cuda"})
    found = grid_search(X, y > 0, own, gammas=[0.1], folds=3, scoring="neg_log_loss", **search)
    expected = grid_search(X, y > 0, model, gammas=[0.1], folds=3, scoring="neg_log_loss", **search)
    assert abs(found.best.mean - expected.best.mean) <= 0.02


def test_a_limit(device):
    X, y = data()
    with pytest.raises(ValueError, match="found no parameters"):
        SVCCV(**GRID, cv=3, device="cuda", max_seconds=0.0).fit(X, y > 0)
