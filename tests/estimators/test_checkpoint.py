"""Checkpoints of fits: resuming, refusing those of other fits, limits and errors."""

import contextlib
import os
import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import (
    LSSVC,
    SVC,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    RankSVC,
    estimators,
    load,
    save,
)
from maxmargin.datasets import chessboard
from maxmargin.problems import Status
from maxmargin.solvers import BlockSolver, PairwiseSolver
from maxmargin.training import checkpoint as checkpoints
from maxmargin.training.checkpoint_file import CheckpointError, read_checkpoint, write_checkpoint
from maxmargin.training.fit_context import FitContext

X, Y = chessboard(3000, seed=0)
THREE = np.digitize(X[:, 0], [0.3, 0.6])
TARGETS = np.sin(6 * X[:, 0]) + X[:, 1]
WIDE = np.random.default_rng(0).normal(size=(1000, 50))
SIGNS = np.sign(WIDE[:, :5].sum(axis=1) + np.random.default_rng(1).normal(size=1000))

#: Estimators whose fits take many reports, and their data.
CASES = {
    "svc": (SVC(C=1000, gamma=20.0), X, Y),
    "svc pairwise": (SVC(C=1000, gamma=20.0, solver="pairwise"), X, Y),
    "svc three classes": (SVC(C=1000, gamma=20.0), X, THREE),
    "svc one-vs-rest": (SVC(C=1000, gamma=20.0, multi_class="ovr"), X, THREE),
    "svc crammer-singer": (SVC(C=100, gamma=20.0, multi_class="crammer_singer"), X[:1500], THREE[:1500]),
    "svc hard margin": (SVC(C=np.inf, gamma=20.0), X[:500], Y[:500]),
    "svr": (SVR(C=10, gamma=20.0), X, TARGETS),
    "one_class_svm": (OneClassSVM(nu=0.5, gamma=50.0, tol=1e-5), X, None),
    "rank_svc": (RankSVC(), X[:150], np.round(4 * X[:150, 0])),
    "lssvc": (LSSVC(C=100.0), X[:1500], Y[:1500]),
    "linear_svc": (LinearSVC(tol=1e-5, dual=True), WIDE, SIGNS),
    "linear_svc newton": (LinearSVC(tol=1e-8, loss="hinge", dual=False), WIDE, SIGNS),
    "linear_svc l1": (LinearSVC(tol=1e-10, penalty="l1", C=0.1), WIDE, SIGNS),
    "linear_svr": (LinearSVR(epsilon=0.1, tol=1e-8), WIDE, WIDE[:, :2] + WIDE[:, 2:4] ** 2),
    "linear_one_class_svm": (LinearOneClassSVM(nu=0.3, tol=1e-8), WIDE + 1.0, None),
    "kernel_approximation_svc": (KernelApproximationSVC(C=100, n_components=100, random_state=0), X, Y),
}


class KilledError(Exception):
    """Ends a fit like a kill: nothing is written afterwards."""


@pytest.fixture
def file(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.fixture
def often(monkeypatch):
    """Write at every report."""
    monkeypatch.setattr(checkpoints, "MAX_WRITING_FRACTION", 1e9)


def fit(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(X) if y is None else model.fit(X, y)


def with_file(model, file, **parameters):
    return clone(model).set_params(checkpoint=file, checkpoint_seconds=0.0, **parameters)


def kill_after(monkeypatch, writes):
    """Let a fit fail right after so many writes of its checkpoint."""
    whole = checkpoints.Checkpoint.save

    def save(self):
        whole(self)
        if self.writes >= writes:
            raise KilledError

    monkeypatch.setattr(checkpoints.Checkpoint, "save", save)
    return lambda: monkeypatch.setattr(checkpoints.Checkpoint, "save", whole)


def problems(model):
    found = model.certificate_
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("writes", [1, 3, 8])
@pytest.mark.parametrize("name", CASES)
def test_a_fit_resumes_and_ends_at_the_same_optimum(name, writes, file, often, monkeypatch):
    model, samples, y = CASES[name]
    undo, killed = kill_after(monkeypatch, writes), False
    try:
        fit(with_file(model, file), samples, y)
    except KilledError:
        killed = True
        assert file.exists()
    undo()
    assert killed or writes > 1  # few reports: it ended before
    resumed = fit(with_file(model, file), samples, y)
    assert not list(file.parent.iterdir())
    for one, other in zip(problems(resumed), problems(fit(clone(model), samples, y)), strict=True):
        assert max(one.dual, other.dual) <= min(one.primal, other.primal) + 1e-9 * abs(other.primal)


@pytest.mark.parametrize("name", CASES)
def test_a_crafted_start_does_not_change_the_status(name, file, often, monkeypatch):
    model, samples, y = CASES[name]
    undo = kill_after(monkeypatch, 3)
    with contextlib.suppress(KilledError):
        fit(with_file(model, file), samples, y)
    undo()
    if not file.exists():
        return  # few reports: it ended before
    state, random = read_checkpoint(file), np.random.default_rng(0)
    for key, known in state.problems.items():
        vector = known.start if known.finished is None else known.finished.dual
        state.problems[key] = replace(known, start=1e35 * random.normal(size=len(vector)), finished=None)
    write_checkpoint(file, state)
    resumed = fit(with_file(model, file), samples, y)
    for one, other in zip(problems(resumed), problems(fit(clone(model), samples, y)), strict=True):
        assert max(one.dual, other.dual) <= min(one.primal, other.primal) + 1e-9 * abs(other.primal)


def test_finished_problems_are_not_solved_again(file, often, monkeypatch):
    monkeypatch.setattr(FitContext, "packed_kernel", lambda *about: None)  # a batch of pairs has no checkpoints
    plain = fit(SVC(C=1000, gamma=20.0, n_jobs=1), X, THREE)
    undo = kill_after(monkeypatch, 1)
    monkeypatch.setattr(checkpoints.ProblemRecorder, "record", lambda *state: None)  # only ends of problems are written
    with pytest.raises(KilledError):
        fit(with_file(plain, file), X, THREE)
    undo()
    [state] = read_checkpoint(file).problems.values()
    assert state.finished is not None
    solved, solve = [], BlockSolver.solve
    monkeypatch.setattr(BlockSolver, "solve", lambda *about: solved.append(about[1].size) or solve(*about))
    resumed = fit(with_file(plain, file), X, THREE)
    sizes = [len(model.samples) for model in resumed._models_]
    assert [size for size in solved if size in sizes] == sizes[1:]
    np.testing.assert_array_equal(resumed.dual_coef_, plain.dual_coef_)  # every bit
    np.testing.assert_array_equal(resumed.n_iter_, plain.n_iter_)


def test_folds_are_not_solved_again(file, often, monkeypatch):
    model = SVC(C=1000, gamma=20.0, probability=True)
    plain = fit(clone(model), X, Y)
    undo = kill_after(monkeypatch, 4)
    monkeypatch.setattr(checkpoints.ProblemRecorder, "record", lambda *state: None)
    with pytest.raises(KilledError):
        fit(with_file(model, file), X, Y)
    undo()
    states = read_checkpoint(file).problems.values()
    assert sum(state.finished is not None for state in states) == 4  # the problem and three of its folds
    resumed = fit(with_file(model, file), X, Y)
    np.testing.assert_array_equal(resumed.predict_proba(X[:100]), plain.predict_proba(X[:100]))


@pytest.mark.parametrize("limit", [{"max_iter": 500}, {"callback": lambda progress: True}])
def test_a_limit_keeps_the_checkpoint(limit, file):
    with pytest.warns(ConvergenceWarning):
        stopped = with_file(SVC(C=1000, gamma=20.0), file, **limit).fit(X, Y)
    assert file.exists()
    resumed = fit(with_file(SVC(C=1000, gamma=20.0), file), X, Y)
    assert not file.exists()
    assert resumed.n_iter_[0] > stopped.n_iter_[0]
    assert resumed.status_ is Status.CONVERGED


def test_an_interruption_keeps_the_checkpoint(file):
    def press(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_file(SVC(C=1000, gamma=20.0), file, callback=press).fit(X, Y)
    [state] = read_checkpoint(file).problems.values()
    assert state.start.any()
    fit(with_file(SVC(C=1000, gamma=20.0), file), X, Y)
    assert not file.exists()


@pytest.fixture
def stale(file):
    """The checkpoint of an unfinished fit."""
    with pytest.warns(ConvergenceWarning):
        with_file(SVC(C=10, gamma=20.0), file, max_iter=100).fit(X, Y)
    return file.read_bytes()


@pytest.mark.parametrize(
    ("model", "data", "reason"),
    [
        (SVC(C=1, gamma=20.0), (X, Y), "was written for C=10, this fit has C=1"),
        (SVC(C=10, gamma=2.5), (X, Y), "was written for gamma=20, this fit has gamma=2.5"),
        (SVC(C=10, gamma=20.0, class_weight={0: 2}), (X, Y), "class_weight=None, this fit has class_weight={0: 2}"),
        (SVC(C=10, gamma=20.0, kernel="laplacian"), (X, Y), "kernel='rbf', this fit has kernel='laplacian'"),
        (SVR(C=10, gamma=20.0), (X, Y), "was written for SVC, this fit is of SVR"),
        (SVC(C=10, gamma=20.0), (X + 1e-9, Y), "for other data: X differs"),
        (SVC(C=10, gamma=20.0), (X[1:], Y[1:]), "for other data: X differs"),
        (SVC(C=10, gamma=20.0), (X, Y[::-1]), "for other data: y differs"),
        (SVC(C=10, gamma=20.0), (X, Y, 1.0 + X[:, 0]), "for other data: sample_weight differs"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(model, data, reason, file, stale):
    with pytest.raises(CheckpointError, match=re.escape(reason)) as found:
        with_file(model, file).fit(*data)
    assert str(file) in str(found.value)
    assert "delete the file or choose another name" in str(found.value)
    assert file.read_bytes() == stale


@pytest.mark.parametrize(
    "change",
    [
        {"tol": 1e-5},
        {"n_jobs": 1, "cache_size": 100.0, "verbose": True, "checkpoint_seconds": 10.0},
        {"solver": "pairwise"},
        {"solver": PairwiseSolver()},
        {"probability": True},
        {"C": np.float64(10.0), "gamma": 20},
    ],
)
def test_parameters_that_leave_the_problem_alone_may_differ(change, file, stale):
    model = with_file(SVC(C=10, gamma=20.0), file).set_params(**change)
    assert fit(model, X, Y).status_ is Status.CONVERGED
    assert not file.exists()


def test_a_smaller_tolerance_continues_finished_problems(file, often, monkeypatch):
    undo = kill_after(monkeypatch, 1)
    monkeypatch.setattr(checkpoints.ProblemRecorder, "record", lambda *state: None)
    with pytest.raises(KilledError):
        fit(with_file(LinearSVC(tol=1e-2, penalty="l1"), file), WIDE, SIGNS)
    undo()
    resumed = fit(with_file(LinearSVC(tol=1e-8, penalty="l1"), file), WIDE, SIGNS)
    assert resumed.certificate_.relative_gap <= 1e-8


@pytest.mark.parametrize("cut", [0, 7, 63, 64, 300, -1])
def test_a_truncated_file_is_refused(cut, file, stale):
    file.write_bytes(stale[:cut])
    with pytest.raises(CheckpointError, match=f"cannot resume from {re.escape(str(file))}: "):
        with_file(SVC(C=10, gamma=20.0), file).fit(X, Y)
    assert file.read_bytes() == stale[:cut]


def test_a_damaged_file_is_refused(file, stale):
    for place in range(0, len(stale), 997):
        damaged = bytearray(stale)
        damaged[place] ^= 4
        file.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="cannot resume from"):
            with_file(SVC(C=10, gamma=20.0), file).fit(X, Y)


def test_another_file_is_refused(file):
    file.write_text("label,feature\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match="this is not a checkpoint of maxmargin"):
        with_file(SVC(), file).fit(X, Y)
    assert file.exists()


@pytest.mark.parametrize(
    ("value", "message"), [("", "the name of a file"), (3, "the name of a file"), ("/nowhere/file", "does not exist")]
)
def test_names_that_cannot_be_written(value, message):
    with pytest.raises(ValueError, match=message):
        SVC(checkpoint=value).fit(X, Y)


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match="it is a folder"):
        SVC(checkpoint=tmp_path).fit(X, Y)


@pytest.mark.parametrize("seconds", [-1, np.nan, "60", None])
def test_seconds_are_checked(seconds):
    with pytest.raises(ValueError, match="checkpoint_seconds must be a number"):
        SVC(checkpoint_seconds=seconds).fit(X, Y)


@pytest.mark.skipif(not hasattr(os, "geteuid") or not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_does_not_end_the_fit(file, often, monkeypatch):
    def on_a_full_disk(path):
        link = path.with_name("on_a_full_disk")  # a link, since the temporary file is removed
        link.unlink(missing_ok=True)
        link.symlink_to("/dev/full")
        return link

    monkeypatch.setattr("maxmargin.training.checkpoint_file.temporary_of", on_a_full_disk)
    monkeypatch.setattr(checkpoints, "remove_checkpoint", lambda path: None)
    with pytest.warns(RuntimeWarning, match="fit.checkpoint could not be written: No space left on device"):
        model = with_file(SVC(C=1000, gamma=20.0), file).fit(X, Y)
    assert model.status_ is Status.CONVERGED


def test_landmarks_are_drawn_once(file, often, monkeypatch):
    model = KernelApproximationSVC(C=100, n_components=100)
    undo = kill_after(monkeypatch, 1)
    with pytest.raises(KilledError):
        fit(with_file(model, file), X, Y)
    undo()
    seed = read_checkpoint(file).seed
    resumed = fit(with_file(model, file), X, Y)
    again = fit(clone(model).set_params(random_state=seed), X, Y)
    np.testing.assert_array_equal(resumed.landmarks_, again.landmarks_)


def test_kernel_functions_are_recognised(file):
    def linear(left, right):
        return left @ right.T

    def other(left, right):
        return 2.0 * left @ right.T

    with pytest.warns(ConvergenceWarning):
        with_file(SVC(kernel=linear), file, max_iter=5).fit(X[:300], Y[:300])
    with pytest.raises(CheckpointError, match="was written for kernel="):
        with_file(SVC(kernel=other), file).fit(X[:300], Y[:300])
    fit(with_file(SVC(kernel=linear), file), X[:300], Y[:300])


def test_samples_that_are_not_numbers(file):
    words = np.array(["a", "bb", "ccc", "d", "ee", "fff"] * 10, dtype=object)

    def lengths(left, right):
        return np.array([[float(len(a) == len(b)) for b in right] for a in left])

    y = np.arange(60) % 2
    with pytest.warns(ConvergenceWarning):
        with_file(SVC(kernel=lengths, solver="pairwise"), file, max_iter=1).fit(words, y)
    with pytest.raises(CheckpointError, match="X differs"):
        with_file(SVC(kernel=lengths), file).fit(words[::-1], y)
    fit(with_file(SVC(kernel=lengths, solver="pairwise"), file), words, y)


def test_the_parameters_are_those_of_scikit_learn(file, tmp_path):
    without = {"OnlineSVC", "OnlineOneClassSVM", "TransductiveSVC", "MKLSVC", "MKLSVR", "MKLOneClassSVM"}
    for name in set(estimators.__all__) - without:
        model = getattr(estimators, name)(checkpoint=file, checkpoint_seconds=5.0)
        assert clone(model).get_params()["checkpoint"] == file
        assert pickle.loads(pickle.dumps(model)).checkpoint_seconds == 5.0
    model = SVC(checkpoint=file, checkpoint_seconds=5.0).fit(X[:50], Y[:50])
    save(model, tmp_path / "model")
    restored = load(tmp_path / "model")
    assert restored.checkpoint == str(file)
    assert restored.checkpoint_seconds == 5.0
