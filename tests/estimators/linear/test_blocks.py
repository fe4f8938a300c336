"""Linear estimators on blocks of rows: the same optimum as in memory, limits, checkpoints, errors."""

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, KernelApproximationSVC, LinearOneClassSVM, LinearSVC, LinearSVR, blocks, load, save
from maxmargin.machines.linear import block_data
from maxmargin.problems import Status
from maxmargin.solvers.linear.newton_by_passes import NewtonByPasses

RANDOM = np.random.default_rng(0)
X = (RANDOM.normal(size=(5000, 8)) + 0.7).astype(np.float32)
SCORE = X @ RANDOM.normal(size=8) + RANDOM.normal(size=5000)
CLASSES = np.array(["no", "yes"])[(np.median(SCORE) < SCORE).astype(int)]
SEVERAL = np.digitize(SCORE, np.quantile(SCORE, [0.2, 0.7]))
WEIGHTS = RANDOM.choice([0.0, 0.5, 2.0], size=5000)

CASES = {
    "squared hinge": (LinearSVC(), CLASSES),
    "hinge": (LinearSVC(loss="hinge", C=0.1), CLASSES),
    "regularised intercept": (LinearSVC(intercept_scaling=1.0), CLASSES),
    "no intercept": (LinearSVC(fit_intercept=False, loss="hinge"), CLASSES),
    "balanced": (LinearSVC(class_weight="balanced", C=10), SEVERAL),
    "class weights": (LinearSVC(class_weight={"yes": 3.0}), CLASSES),
    "regression": (LinearSVR(epsilon=0.2), SCORE + 100),
    "squared regression": (LinearSVR(loss="squared_epsilon_insensitive", epsilon=0.1, C=0.1), SCORE),
    "one class": (LinearOneClassSVM(nu=0.2), None),
}


def certificates(model):
    found = model.certificate_
    return found if isinstance(found, list) else [found]


@pytest.fixture
def small_sample(monkeypatch):
    """Start from few rows, so that passes have something to do."""
    monkeypatch.setattr(block_data, "SAMPLE_VALUES", 400)
    monkeypatch.setattr(block_data, "MIN_SAMPLE_ROWS", 300)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted"])
def test_the_optimum_is_that_in_memory(name, kind, small_sample):
    estimator, y = CASES[name]
    data = sparse.csr_array(np.where(np.abs(X) < 0.5, 0, X)) if kind == "sparse" else X
    weights = WEIGHTS if kind == "weighted" else None
    streamed = clone(estimator).fit(blocks.open(data, y, weights, block_rows=700))
    whole = clone(estimator).set_params(tol=1e-7).fit(data, y, weights)
    assert streamed.n_passes_ >= 2
    for one, other in zip(certificates(streamed), certificates(whole), strict=True):
        assert one.relative_gap <= 1e-4
        assert one.dual <= other.primal
        assert other.dual <= one.primal
        assert 0 <= one.rounding <= one.gap + 1e-9 * abs(one.primal)
    if y is not None and y.dtype.kind in "iU":
        assert streamed.classes_.dtype == whole.classes_.dtype
        assert (streamed.predict(data) == whole.predict(data)).mean() > 0.99


@pytest.mark.parametrize("name", ["squared hinge", "balanced", "regression", "one class"])
def test_blocks_without_weight(name):
    estimator, y = CASES[name]
    weights = np.where((np.arange(5000) >= 1000) & (np.arange(5000) < 2500), 0.0, 1.5)
    streamed = clone(estimator).fit(blocks.open(X, y, weights, block_rows=500))
    some = np.flatnonzero(weights)
    without = clone(estimator).fit(blocks.open(X[some], None if y is None else y[some], weights[some], block_rows=500))
    for one, other in zip(certificates(streamed), certificates(without), strict=True):
        assert one.relative_gap <= 1e-4
        assert one.dual <= other.primal
        assert other.dual <= one.primal


NOISE = np.random.default_rng(3).normal(size=(2000, 6))
NOISY = (NOISE[:, 0] + np.random.default_rng(4).normal(size=2000) > 0).astype(int)
SPARSE = sparse.random_array((800, 3500), density=0.01, format="csr", rng=np.random.default_rng(5))


def test_one_class_of_zeros():
    for zeros in (np.zeros((500, 4)), sparse.csr_array((500, 4))):
        model = LinearOneClassSVM(nu=0.3).fit(blocks.open(zeros, block_rows=100))
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.primal == model.certificate_.dual == 0
        assert not model.coef_.any()


HARD = {
    "huge C": (LinearSVC(C=1e8), NOISE, NOISY),
    "tiny C": (LinearSVC(C=1e-6), NOISE, NOISY),
    "unscaled columns": (LinearSVC(), NOISE * [1, 10, 1e3, 1e-3, 1e5, 1], NOISY),
    "duplicates": (LinearSVC(), np.repeat(NOISE[:20], 100, axis=0), np.tile([0, 1], 1000)),
    "two rows": (LinearSVC(), NOISE[:2], np.array([0, 1])),
    "separable": (LinearSVC(C=1e4), NOISE, (NOISE[:, 0] > 0).astype(int)),
    "one row of a class": (LinearSVC(), NOISE, (np.arange(2000) == 77).astype(int)),
    "constant column": (LinearSVC(), np.column_stack([NOISE, np.full(2000, 7.0)]), NOISY),
    "only zeros": (LinearSVC(), np.zeros((2000, 3)), NOISY),
    "more features than rows": (LinearSVC(tol=0.05), SPARSE, NOISY[:800]),
    "tight tolerance": (LinearSVC(tol=1e-9), NOISE, NOISY),
    "exact regression": (LinearSVR(C=100), NOISE, NOISE @ np.arange(6.0)),
    "flat regression": (LinearSVR(), NOISE, np.full(2000, 3.7)),
    "optimum 0": (LinearOneClassSVM(nu=0.3), NOISE, None),
    "all outside": (LinearOneClassSVM(nu=1.0), NOISE + 3, None),
}


@pytest.mark.parametrize("loss", ["squared", "plain"])
@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name, loss, small_sample):
    estimator, data, y = HARD[name]
    losses = {
        "LinearSVC": ("squared_hinge", "hinge"),
        "LinearSVR": ("squared_epsilon_insensitive", "epsilon_insensitive"),
    }
    if (choices := losses.get(type(estimator).__name__)) is not None:
        estimator = clone(estimator).set_params(loss=choices[loss == "plain"])
    streamed = clone(estimator).fit(blocks.open(data, y, block_rows=300))
    whole = clone(estimator).fit(data, y)
    one, other = streamed.certificate_, whole.certificate_
    assert streamed.status_ is Status.CONVERGED
    assert one.dual <= other.primal
    assert other.dual <= one.primal


@pytest.mark.parametrize("name", ["squared hinge", "balanced", "squared regression", "regularised intercept"])
def test_moments_of_a_sample(name, monkeypatch):
    monkeypatch.setattr(block_data, "SAMPLE_VALUES", 400)
    monkeypatch.setattr(block_data, "MIN_SAMPLE_ROWS", 1500)
    seen = []
    receive = NewtonByPasses.receive
    monkeypatch.setattr(NewtonByPasses, "receive", lambda run, sums: (seen.append(sums.moments), receive(run, sums)))
    estimator, y = CASES[name]
    streamed = clone(estimator).set_params(tol=1e-7).fit(blocks.open(X, y, block_rows=700))
    whole = clone(estimator).set_params(tol=1e-8).fit(X, y)
    assert all(moments is None for moments in seen[:3])  # those of all rows are not computed
    for one, other in zip(certificates(streamed), certificates(whole), strict=True):
        assert one.relative_gap <= 1e-7
        assert one.primal == pytest.approx(other.primal, rel=2e-7)


def test_blocks_change_nothing_but_rounding(small_sample):
    fits = [LinearSVC().fit(blocks.open(X, CLASSES, block_rows=rows)) for rows in (5000, 5000, 640)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_allclose(fits[0].coef_, fits[2].coef_, rtol=1e-2)


@pytest.mark.parametrize("threads", [1, 2])
def test_predictions_scores_and_certificates_of_blocks(threads):
    table = blocks.open(X, CLASSES, block_rows=999)
    model = LinearSVC(n_jobs=threads).fit(table)
    np.testing.assert_array_equal(model.predict(table), model.predict(X))
    np.testing.assert_allclose(model.decision_function(table), model.decision_function(X))
    assert model.score(table) == model.score(X, CLASSES)
    weighted = blocks.open(X, CLASSES, WEIGHTS)
    assert model.score(weighted) == pytest.approx(model.score(X, CLASSES, WEIGHTS))
    again = model.certify(table)
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert again.relative_gap <= 1e-4
    regression = LinearSVR(epsilon=0.1, C=0.01).fit(blocks.open(X, SCORE))
    assert regression.score(blocks.open(X, SCORE)) == pytest.approx(regression.score(X, SCORE))
    assert regression.certify(blocks.open(X, SCORE)).primal == pytest.approx(regression.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("estimator", [LinearSVC(), LinearSVC(loss="hinge"), LinearOneClassSVM(nu=0.2)])
def test_blocks_in_which_all_weights_are_0(estimator, small_sample):
    weights = np.where(np.arange(5000) // 700 % 3 == 1, 0.0, 1.0)
    streamed = clone(estimator).fit(blocks.open(X, CLASSES, weights, block_rows=700))
    whole = clone(estimator).fit(X, CLASSES, weights)
    assert streamed.certificate_.dual <= whole.certificate_.primal
    assert whole.certificate_.dual <= streamed.certificate_.primal


def test_labels_and_weights_given_to_fit():
    given = LinearSVC().fit(blocks.open(X), CLASSES, WEIGHTS)
    inside = LinearSVC().fit(blocks.open(X, CLASSES, WEIGHTS))
    np.testing.assert_array_equal(given.coef_, inside.coef_)


def test_large_memory_maps_are_read_in_blocks(tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert not hasattr(LinearSVC().fit(mapped, CLASSES), "n_passes_")
    monkeypatch.setattr(block_data, "available_memory", lambda: X.nbytes)
    model = LinearSVC().fit(mapped, CLASSES)
    assert model.n_passes_ >= 2
    assert model.score(mapped, CLASSES) == model.score(X, CLASSES)


def test_a_class_that_appears_late():
    y = np.where(np.arange(5000) < 4900, CLASSES, "late")
    model = LinearSVC().fit(blocks.open(X, y, block_rows=500))
    assert model.classes_.tolist() == ["late", "no", "yes"]
    assert all(one.relative_gap <= 1e-4 for one in model.certificate_)


def test_models_are_stored_without_the_data(tmp_path):
    model = LinearSVC().fit(blocks.open(X, CLASSES))
    for other in (pickle.loads(pickle.dumps(model)), _saved(model, tmp_path / "model")):
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        assert other.certificate_.primal == model.certificate_.primal
    assert "violation" not in str(model.certificate_)


def _saved(model, path):
    save(model, path)
    return load(path)


class TestLandmarks:
    def test_the_optimum_is_that_in_memory(self):
        y = np.where(np.linalg.norm(X - 0.7, axis=1) > 2.7, "out", "in")
        options = {"C": 3.0, "n_components": 60, "random_state": 0, "landmarks": X[:60].astype(float), "gamma": 0.1}
        streamed = KernelApproximationSVC(**options).fit(blocks.open(X, y, block_rows=900))
        whole = KernelApproximationSVC(**options).fit(X, y)
        assert streamed.certificate_.relative_gap <= 1e-3
        assert streamed.certificate_.dual <= whole.certificate_.primal
        assert whole.certificate_.dual <= streamed.certificate_.primal
        assert streamed.n_passes_ >= 3
        table = blocks.open(X, y, block_rows=700)
        np.testing.assert_array_equal(streamed.predict(table), streamed.predict(X))
        assert streamed.score(table) == streamed.score(X, y) > 0.85

    def test_landmarks_of_random_rows(self, small_sample, tmp_path):
        model = KernelApproximationSVC(n_components=40, random_state=0).fit(blocks.open(X, SEVERAL, block_rows=900))
        assert model.landmarks_.shape == (40, 8)
        assert model.score(X, SEVERAL) > 0.6
        np.testing.assert_array_equal(_saved(model, tmp_path / "model").predict(X), model.predict(X))

    def test_a_polish_needs_the_data(self):
        with pytest.raises(ValueError, match="polish=True needs the data in memory"):
            KernelApproximationSVC(polish=True).fit(blocks.open(X, CLASSES))


class TestLimits:
    def test_max_iter(self, small_sample):
        with pytest.warns(ConvergenceWarning, match="iterations"):
            model = LinearSVC(loss="hinge", max_iter=1, tol=1e-8).fit(blocks.open(X, CLASSES))
        assert model.status_ is Status.MAX_ITERATIONS
        assert model.n_passes_ == 2
        assert model.certificate_.dual <= LinearSVC(loss="hinge", tol=1e-6).fit(X, CLASSES).certificate_.primal

    def test_max_seconds(self, small_sample):
        with pytest.warns(ConvergenceWarning, match="time"):
            model = LinearSVC(loss="hinge", max_seconds=0, tol=1e-8).fit(blocks.open(X, CLASSES))
        assert model.status_ is Status.MAX_SECONDS
        assert model.predict(X).shape == (5000,)

    @pytest.mark.parametrize("limit", [{"max_iter": 0}, {"max_seconds": 0}])
    @pytest.mark.parametrize("name", ["hinge", "regression", "one class"])
    def test_limits_of_0_leave_finite_bounds(self, name, limit):
        estimator, y = CASES[name]
        with pytest.warns(ConvergenceWarning):
            model = clone(estimator).set_params(**limit, tol=1e-9).fit(blocks.open(X, y, block_rows=700))
        exact = clone(estimator).set_params(tol=1e-6).fit(X, y).certificate_
        found = model.certificate_
        assert model.n_passes_ == 2
        assert np.isfinite([found.primal, found.dual]).all()
        assert found.dual <= exact.primal
        assert found.primal >= exact.dual

    def test_callback(self, small_sample):
        seen = []
        model = LinearSVC(loss="hinge", tol=1e-8, callback=lambda progress: seen.append(progress) or True)
        with pytest.warns(ConvergenceWarning, match="callback"):
            model.fit(blocks.open(X, CLASSES))
        assert model.status_ is Status.STOPPED
        assert len(seen) == 1
        assert seen[0].primal >= seen[0].dual

    def test_observers_change_nothing(self, small_sample):
        silent = LinearSVC(loss="hinge").fit(blocks.open(X, CLASSES))
        observed = LinearSVC(loss="hinge", callback=lambda _: None, max_seconds=1e6, max_iter=10**6)
        np.testing.assert_array_equal(observed.fit(blocks.open(X, CLASSES)).coef_, silent.coef_)

    def test_ctrl_c_leaves_a_model(self, small_sample):
        class Interrupted(blocks.RowBlocks):
            name, n_rows, n_features, has_labels, passes = "rows", 5000, 8, True, 0

            def __iter__(self):
                self.passes += 1
                if self.passes == 3:
                    raise KeyboardInterrupt
                yield blocks.RowBlock(X, CLASSES, None, 0)

        model = LinearSVC(loss="hinge", tol=1e-9)
        with pytest.raises(KeyboardInterrupt):
            model.fit(Interrupted())
        assert model.status_ is Status.INTERRUPTED
        assert np.isfinite(model.certificate_.primal)


class TestCheckpoints:
    def test_resumes(self, tmp_path, small_sample):
        file = tmp_path / "state"
        table = blocks.open(X, SEVERAL, block_rows=900)
        options = {"loss": "hinge", "checkpoint": file, "checkpoint_seconds": 0}
        with pytest.warns(ConvergenceWarning):
            stopped = LinearSVC(max_iter=4, tol=1e-6, **options).fit(table)
        assert file.exists()
        resumed = LinearSVC(tol=1e-6, **options).fit(table)
        fresh = LinearSVC(tol=1e-6, loss="hinge").fit(table)
        assert not file.exists()
        assert resumed.n_passes_ <= fresh.n_passes_ + 2
        for one, other, before in zip(resumed.certificate_, fresh.certificate_, stopped.certificate_, strict=True):
            assert one.relative_gap <= 1e-6
            assert one.primal == pytest.approx(other.primal, rel=2e-6)
            assert one.gap < before.gap

    def test_other_data_and_parameters_are_refused(self, tmp_path, small_sample):
        file = tmp_path / "state"
        with pytest.warns(ConvergenceWarning):
            LinearSVC(loss="hinge", max_iter=1, tol=1e-9, checkpoint=file).fit(blocks.open(X, CLASSES))
        with pytest.raises(ValueError, match="other data"):
            LinearSVC(loss="hinge", checkpoint=file).fit(blocks.open(X[:4000], CLASSES[:4000]))
        with pytest.raises(ValueError, match="C=1, this fit has C=2"):
            LinearSVC(loss="hinge", C=2, checkpoint=file).fit(blocks.open(X, CLASSES))
        assert file.exists()

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
    def test_a_killed_process(self, tmp_path):
        np.save(tmp_path / "X.npy", X), np.save(tmp_path / "y.npy", CLASSES)
        program = (
            "from maxmargin import LinearSVC, blocks; import time\n"
            "LinearSVC(loss='hinge', tol=1e-12, checkpoint='state', checkpoint_seconds=0,\n"
            "          callback=lambda _: time.sleep(0.05)).fit(blocks.open('X.npy', 'y.npy'))"
        )
        process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, env=os.environ)
        limit = time.monotonic() + 60
        while not (tmp_path / "state").exists() and time.monotonic() < limit:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        model = LinearSVC(loss="hinge", checkpoint=tmp_path / "state").fit(
            blocks.open(tmp_path / "X.npy", tmp_path / "y.npy")
        )
        assert model.certificate_.relative_gap <= 1e-4
        assert [path.name for path in tmp_path.iterdir()] == ["X.npy", "y.npy"] or not (tmp_path / "state").exists()


class TestOtherModels:
    def test_certificates_are_those_of_the_same_problem(self):
        with pytest.raises(ValueError, match="penalty='l2', not 'l1'"):
            LinearSVC(penalty="l1", C=0.1).fit(X, CLASSES).certify(blocks.open(X, CLASSES))
        with pytest.raises(ValueError, match="several outputs"):
            LinearSVR().fit(X, np.column_stack([SCORE, SCORE])).certify(blocks.open(X, SCORE))
        model = LinearSVC().fit(X, CLASSES).sparsify()
        assert model.certify(blocks.open(X, CLASSES)).primal == pytest.approx(model.certificate_.primal, rel=1e-6)

    def test_attributes_of_other_fits_are_removed(self):
        frame = pd.DataFrame(X, columns=list("abcdefgh"))
        model = LinearSVC().fit(frame, CLASSES).fit(blocks.open(X, CLASSES))
        assert not hasattr(model, "feature_names_in_")
        assert not hasattr(model.partial_fit(X, CLASSES), "n_passes_")
        assert not hasattr(LinearSVC().fit(blocks.open(X, CLASSES)).fit(X, CLASSES), "n_passes_")

    @pytest.mark.parametrize("dtype", [np.uint8, bool, np.float32])
    def test_types_of_labels(self, dtype):
        y = (CLASSES == "yes").astype(dtype)
        assert LinearSVC().fit(blocks.open(X, y)).classes_.dtype == LinearSVC().fit(X, y).classes_.dtype

    def test_large_unsigned_labels(self):
        labels = np.array([2**63 + 1, 2**64 - 1], dtype=np.uint64)
        for y in (labels[(CLASSES == "yes").astype(int)], (CLASSES == "yes") + labels[0]):
            np.testing.assert_array_equal(LinearSVC().fit(blocks.open(X, y)).classes_, np.unique(y))

    def test_blocks_that_are_cut_differently_in_each_pass(self, small_sample):
        class Changing:
            shape, passes = X.shape, 0

            def __iter__(self):
                self.passes += 1
                for first in range(0, 5000, 500 + self.passes):
                    rows = slice(first, first + 500 + self.passes)
                    yield X[rows], CLASSES[rows]

        assert LinearSVC(loss="hinge").fit(blocks.open(Changing())).certificate_.relative_gap <= 1e-4


FULL_DISK = """
import resource, signal, warnings
from maxmargin import LinearSVC, blocks
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
table = blocks.open({X!r}, {y!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = LinearSVC(loss="hinge", checkpoint={file!r}, checkpoint_seconds=0).fit(table)
print(sum("state could not be written: File too large" in str(one.message) for one in caught), model.status_[0].name)
"""


class TestErrors:
    def test_all_weights_are_zero(self):
        for estimator, y in ((LinearSVC(), CLASSES), (LinearSVR(), SCORE), (LinearOneClassSVM(), None)):
            with pytest.raises(ValueError, match="weights"):
                clone(estimator).fit(blocks.open(X, y, np.zeros(5000)))

    def test_labels_of_several_types(self):
        parts = [(X[:100], CLASSES[:100]), (X[100:], np.arange(4900) % 2)]
        message = (
            r"block 1: row 100 \(counting from 0\): the label 0 is numbers, but those of the blocks before are text"
        )
        with pytest.raises(ValueError, match=message):
            LinearSVC().fit(blocks.open(lambda: iter(parts)))

    def test_estimators_that_need_the_data(self):
        with pytest.raises(ValueError, match="SVC needs the data in memory, not blocks of rows, which LinearSVC"):
            SVC().fit(blocks.open(X), CLASSES)

    @pytest.mark.parametrize("seconds", [60, -1])
    def test_checkpoints_that_cannot_be_written(self, seconds, tmp_path):
        name = tmp_path / ("state" if seconds < 0 else "none/state")
        with pytest.raises(ValueError, match="checkpoint"):
            LinearSVC(checkpoint=name, checkpoint_seconds=seconds).fit(blocks.open(X, CLASSES))

    @pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
    def test_a_full_disk_does_not_end_the_fit(self, tmp_path, small_sample):
        """Files of this process may have 100 bytes: the checkpoint fails as on a full disk."""
        program = FULL_DISK.format(file=str(tmp_path / "state"), X=str(tmp_path / "X.npy"), y=str(tmp_path / "y.npy"))
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", SEVERAL)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["1", "CONVERGED"]
        assert sorted(path.name for path in tmp_path.iterdir()) == ["X.npy", "y.npy"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"penalty": "l1"}, "penalty='l2', not 'l1'"),
            ({"multi_class": "crammer_singer"}, "multi_class='ovr'"),
            ({"probability": True}, "probability=False"),
            ({"solver": "semismooth_newton"}, "solver='auto'"),
        ],
    )
    def test_options_that_need_all_rows(self, options, message):
        with pytest.raises(ValueError, match=message):
            LinearSVC(**options).fit(blocks.open(X, CLASSES))

    def test_one_class(self):
        with pytest.raises(ValueError, match="only one class, 'no'"):
            LinearSVC().fit(blocks.open(X, np.full(5000, "no")))

    def test_no_labels(self):
        with pytest.raises(ValueError, match="has no labels"):
            LinearSVC().fit(blocks.open(X))

    def test_targets_are_not_classes(self):
        with pytest.raises(ValueError, match="continuous"):
            LinearSVC().fit(blocks.open(X, SCORE))

    def test_text_is_no_target(self):
        with pytest.raises(ValueError, match="finite number"):
            LinearSVR().fit(blocks.open(X, CLASSES))

    def test_not_a_number(self):
        broken = X.copy()
        broken[4321, 3] = np.nan
        with pytest.raises(ValueError, match="4,?321"):
            LinearSVC().fit(blocks.open(broken, CLASSES, block_rows=500))

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_numbers_that_overflow(self, loss):
        with pytest.raises(ValueError, match="not finite|overflows float64"):
            LinearSVC(loss=loss).fit(blocks.open(X.astype(float) * 1e200, CLASSES))

    def test_unknown_labels_in_certify(self):
        model = LinearSVC().fit(blocks.open(X, CLASSES))
        with pytest.raises(ValueError, match="label 'other'"):
            model.certify(blocks.open(X, np.where(np.arange(5000) == 7, "other", CLASSES)))

    def test_other_width(self):
        model = LinearSVC().fit(blocks.open(X, CLASSES))
        with pytest.raises(ValueError, match="features"):
            model.predict(blocks.open(X[:, :5]))
        with pytest.raises(ValueError, match="no labels"):
            model.score(blocks.open(X))
