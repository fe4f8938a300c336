"""Models of problems that were posed as one: made when they are read, the same as those of single problems."""

import gc
import pickle
import time
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest

from maxmargin import SVC, load, save
from maxmargin.problems import Status
from maxmargin.solvers.smo.small_problem_batch import SmallProblemBatch
from maxmargin.training import small_problems
from maxmargin.training.joined_models import JoinedModels


def many_classes(classes=40, members=3, features=4):
    random = np.random.default_rng(7)
    y = np.repeat(np.arange(classes), members)
    return random.normal(size=(len(y), features)) + 0.1 * y[:, None], y


@pytest.fixture(params=[{}, {"loss": "squared_hinge"}, {"fit_intercept": False}, {"max_iter": 1}], ids=str)
def model(request):
    X, y = many_classes()
    return SVC(**request.param), X, y


@pytest.mark.filterwarnings("ignore:.*stopped before the tolerance")
def test_arrays_are_those_of_the_models(model):
    model, X, y = model
    models = model.fit(X, y)._models_
    assert isinstance(models, JoinedModels)
    assert len(models) == len(models[:]) == 780
    np.testing.assert_array_equal(models.samples, np.concatenate([one.samples for one in models]))
    np.testing.assert_array_equal(models.coefficients, np.concatenate([one.expansion.coefficients for one in models]))
    np.testing.assert_array_equal(model.intercept_, [one.expansion.offset for one in models])
    np.testing.assert_array_equal(model.n_iter_, [one.counters.iterations for one in models])
    assert model.status_ == [one.status for one in models]
    assert model.fit_status_ == int(any(status is not Status.CONVERGED for status in model.status_))


@pytest.mark.parametrize("pair", [(0, 1), (3, 17), (38, 39)])
def test_a_model_is_that_of_its_pair_alone(pair):
    X, y = many_classes()
    models, number = SVC(tol=1e-8).fit(X, y)._models_, 0
    for number, classes in enumerate(zip(*np.triu_indices(40, 1), strict=True)):  # noqa: B007
        if classes == pair:
            break
    rows = np.isin(y, pair)
    alone = SVC(tol=1e-8, gamma=1 / (X.shape[1] * X.var())).fit(X[rows], y[rows])
    np.testing.assert_array_equal(models[number].samples, np.flatnonzero(rows))
    np.testing.assert_allclose(models[number].expansion.coefficients, -alone._models_[0].dual, atol=1e-7)
    certificate = models[number].certificate
    assert certificate.violation <= 1e-8
    assert certificate.dual == pytest.approx(alone.certificate_.dual, rel=1e-9)
    assert models[number] is models[number]
    assert models[number - 780] is models[number]


def test_models_are_made_when_they_are_read():
    X, y = many_classes()
    models = SVC().fit(X, y)._models_
    assert not models._read
    assert models[5] is models[5]
    assert list(models._read) == [5]
    with pytest.raises(IndexError):
        models[780]


def test_kernel_values_of_the_fit_are_released():
    X, y = many_classes(3, 600)
    SVC().fit(X, y)
    tracemalloc.start()
    model = SVC().fit(X, y)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 0.1 * 8 * len(X) ** 2
    assert model._models_[-1].certificate.violation <= 1e-3


def test_copies_pickles_and_files(tmp_path):
    X, y = many_classes(6)
    model = SVC().fit(X, y)
    save(model, tmp_path / "model")
    for other in (deepcopy(model), pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
        assert len(other._models_) == 15
        assert other.status_ == model.status_
        np.testing.assert_array_equal(other._models_[3].dual, model._models_[3].dual)
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))


def stop_after(calls, error=None):
    """Return a callback that asks to stop, or raises, at a call."""
    count = 0

    def callback(_progress):
        nonlocal count
        count += 1
        if count >= calls and error is not None:
            raise error
        return count >= calls

    return callback


def solving_in_time(problems, monkeypatch):
    """Let the time limit pass when so many problems of a batch are solved."""
    solve_chunk = SmallProblemBatch._solve_chunk

    def solve_some(batch, solved, first, last, limits, deadline, *others):
        solve_chunk(batch, solved, first, min(first + problems, last), limits, None, *others)
        time.sleep(max(0.0, deadline - time.perf_counter()))
        return False

    monkeypatch.setattr(SmallProblemBatch, "_solve_chunk", solve_some)


def reaching_a_limit(case, monkeypatch, **parameters):
    """Return a model whose fit ended after 100 of 780 problems, and the status of the others."""
    X, y = many_classes()
    if case == "time":
        solving_in_time(100, monkeypatch)
        with pytest.warns(UserWarning, match="in 680 of 780 pairs of classes: the time limit"):
            return SVC(max_seconds=0.05, **parameters).fit(X, y), Status.MAX_SECONDS
    if case == "stop":
        with pytest.warns(UserWarning, match="of 780 pairs of classes: the callback asked to stop"):
            return SVC(callback=stop_after(200), **parameters).fit(X, y), Status.STOPPED
    model = SVC(callback=stop_after(200, KeyboardInterrupt()), **parameters)
    with pytest.raises(KeyboardInterrupt, match="usable"):
        model.fit(X, y)
    return model, Status.INTERRUPTED


@pytest.mark.parametrize("case", ["time", "stop", "interrupt"])
@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}, {"loss": "squared_hinge"}], ids=str)
def test_a_fit_that_ends_early_makes_no_models(case, parameters, monkeypatch):
    monkeypatch.setattr(small_problems, "solve_and_verify", lambda *_: pytest.fail("continued after the end"))
    model, status = reaching_a_limit(case, monkeypatch, **parameters)
    models = model._models_
    assert isinstance(models, JoinedModels)
    assert len(models._read) <= 1  # the one of the warning
    stopped = np.array([one is status for one in model.status_])
    assert all(one is Status.CONVERGED for one in np.array(model.status_)[~stopped])
    assert 0 < stopped.sum() < 780
    assert model.fit_status_ == 1
    np.testing.assert_array_equal(models.coefficients, np.concatenate([one.expansion.coefficients for one in models]))
    np.testing.assert_array_equal(model.intercept_, [one.expansion.offset for one in models])
    assert model.status_ == [one.status for one in models]
    for one, ended_early in zip(models, stopped, strict=True):
        known, certificate = one.known_violation, one.certificate
        assert (certificate.violation <= model.tol) != ended_early
        assert known == pytest.approx(certificate.violation, abs=1e-9)
        assert certificate.gap >= 0
        if ended_early:  # not begun
            assert not one.dual.any()
            assert certificate.dual == pytest.approx(0.0, abs=1e-9)


def test_problems_that_need_many_steps_are_left_where_they_are(monkeypatch):
    X, y = many_classes(12, 8)
    optimum = SVC(C=1e3, gamma=1.0).fit(X, y)
    monkeypatch.setattr(small_problems, "MAX_STEPS", 3)
    solving_in_time(40, monkeypatch)
    with pytest.warns(UserWarning, match="of 66 pairs of classes: the time limit"):
        model = SVC(C=1e3, gamma=1.0, max_seconds=0.05).fit(X, y)
    begun = np.array([bool(one.dual.any()) for one in model._models_])
    assert 0 < begun.sum() < 66
    for one, best in zip(model._models_, optimum._models_, strict=True):
        known, known_value, certificate = one.known_violation, one.known_value, one.certificate
        assert known == pytest.approx(certificate.violation, abs=1e-9)
        assert known_value == pytest.approx(certificate.dual, abs=1e-9)
        assert certificate.dual <= best.certificate.primal
        assert one.dual.sum() == pytest.approx(0.0, abs=1e-9)
        assert one.expansion.offset == pytest.approx(float(certificate.offset[0]), abs=1e-9)


def test_the_limit_may_pass_while_problems_are_continued(monkeypatch):
    X, y = many_classes(12, 8)
    monkeypatch.setattr(small_problems, "MAX_STEPS", 3)
    solve_and_verify, continued = small_problems.solve_and_verify, []

    def solve_some(problem, solver, verifier, start, session, spent):
        continued.append(problem)
        if len(continued) == 10:
            session.deadline.at = time.perf_counter()
        return solve_and_verify(problem, solver, verifier, start, session, spent)

    monkeypatch.setattr(small_problems, "solve_and_verify", solve_some)
    with pytest.warns(UserWarning, match="in 57 of 66 pairs of classes: the time limit"):
        model = SVC(C=1e3, gamma=1.0, max_seconds=60, n_jobs=1).fit(X, y)
    assert len(continued) == 10
    assert model.status_[:9] == [Status.CONVERGED] * 9
    assert model.status_[9:] == [Status.MAX_SECONDS] * 57
    assert [one.status for one in model._models_] == model.status_


def test_points_that_overflowed_are_left_at_zero(monkeypatch):
    X, y = many_classes(12, 8)
    solve = SmallProblemBatch.solve

    def overflow(batch, *arguments, **options):
        solved = solve(batch, *arguments, **options)
        solved.dual[3], solved.gradient[40], solved.dual[80] = np.nan, np.inf, batch.upper[80] + 1
        solved.outcomes[:, 0] = small_problems.StopReason.PAUSED
        return solved

    monkeypatch.setattr(SmallProblemBatch, "solve", overflow)
    with pytest.warns(UserWarning, match="in 66 of 66 pairs of classes: the time limit"):
        model = SVC(max_seconds=0).fit(X, y)
    assert model.status_ == [Status.MAX_SECONDS] * 66
    assert all(np.isfinite(one.certificate.gap) for one in model._models_)
    assert not any(model._models_[p].dual.any() for p in (0, 2, 5))


def test_a_checkpoint_of_a_fit_that_ends_early_is_kept(tmp_path, monkeypatch):
    X, y = many_classes()
    with monkeypatch.context() as patched:
        model, _ = reaching_a_limit("time", patched, checkpoint=tmp_path / "points")
    assert (tmp_path / "points").exists()
    again = model.set_params(max_seconds=None).fit(X, y)
    assert again.status_ == [Status.CONVERGED] * 780
    np.testing.assert_array_equal(again.dual_coef_, SVC().fit(X, y).dual_coef_)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_training_data_are_kept_for_leaving_samples_out_and_released_with_the_model(kernel):
    X, y = many_classes(5, 20)
    data = X if kernel == "rbf" else np.exp(-np.square(X[:, None] - X[None]).sum(axis=2))
    known, model = weakref.ref(data), SVC(kernel=kernel).fit(data, y)
    del X, data
    assert len(model.certificate_) == 10
    gc.collect()
    assert [one.status for one in model._models_] == model.status_
    assert known() is not None
    assert 0 <= model.loo_error_ <= 1
    del model
    gc.collect()
    assert known() is None


def test_threads_read_the_same_models():
    X, y = many_classes()
    for _ in range(5):
        models = SVC().fit(X, y)._models_
        with ThreadPoolExecutor(4) as pool:
            read = list(pool.map(lambda _, models=models: models[:], range(4)))
        assert all(one is other for some in read for one, other in zip(some, models, strict=True))
