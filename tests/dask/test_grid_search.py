"""Grid searches on a cluster have the scores of a search on one machine."""

import os
import signal
import threading
import time

import dask.array as da
import distributed
import numpy as np
import pytest
from distributed import Client, LocalCluster

import maxmargin
from maxmargin import SVC, SVR, LinearSVC
from maxmargin.dask import grid_search, trial_tasks
from maxmargin.datasets import chessboard
from maxmargin.deadline import Deadline
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.grid import grid_points

BOARD = chessboard(600, noise=0.1)


def assert_same(result, local):
    assert [score[:3] for score in result.scores] == [score[:3] for score in local.scores]
    assert result.best.point == local.best.point
    assert result.rounds == local.rounds
    assert result.status == "complete"


def test_kernel_estimator_with_refinements(client):
    X, y = BOARD
    options = {"Cs": [1, 10], "gammas": [0.1, 1], "refine": 1, "folds": 3, "seed": 4}
    result = grid_search(X, y, SVC(), client=client, **options)
    assert_same(result, maxmargin.grid_search(X, y, SVC(), **options))
    assert result.best_estimator.fit(X, y).score(X, y) > 0.8


def test_linear_estimator_and_score(client, table):
    X, _, y, _ = table
    options = {"Cs": [0.01, 1, 100], "folds": 4, "scoring": "f1_macro"}
    result = grid_search(X, y, LinearSVC(loss="hinge"), client=client, **options)
    assert_same(result, maxmargin.grid_search(X, y, LinearSVC(loss="hinge"), n_jobs=1, **options))


def test_points_that_cannot_win_are_dropped(client):
    X, y = BOARD
    options = {"Cs": [0.01, 1, 10], "gammas": [0.001, 1, 10], "folds": 4, "seed": 4}
    result = grid_search(X, y, SVC(), client=client, prune=True, **options)
    whole = maxmargin.grid_search(X, y, SVC(), **options)
    assert result.status == "complete"
    assert result.best.point == whole.best.point
    assert result.best.mean == whole.best.mean
    assert len(result.scores) + len(result.pruned) == 9


def test_regression_in_a_function_of_the_user(client, table):
    X, _, _, y = table
    X, y = X[:300], y[:300]

    def error(model, X, y):
        return -float(np.abs(model.predict(X) - y).max())

    options = {"Cs": [0.1, 1], "gammas": [], "folds": 2, "scoring": error}
    assert_same(
        grid_search(X, y, SVR(), client=client, **options), maxmargin.grid_search(X, y, SVR(), **options)
    )  # fmt: skip


def test_journal_callback_and_resume(client, tmp_path):
    X, y = BOARD
    options = {"Cs": [1, 10, 100], "gammas": [0.1, 1], "folds": 3}
    journal, seen = tmp_path / "journal.jsonl", []
    stopped = grid_search(
        X, y, client=client, journal=journal, callback=lambda found: seen.append(found) or len(seen) == 2, **options
    )
    assert stopped.status == "stopped"
    known = len(stopped.trials)
    assert 0 < known < 18
    assert journal.read_text().count("\n") == known + 1
    resumed = grid_search(X, y, client=client, journal=journal, resume=True, **options)
    assert [trial[:3] for trial in resumed.trials[:known]] == [trial[:3] for trial in stopped.trials]
    local = maxmargin.grid_search(X, y, **options)
    assert_same(resumed, local)
    journal.unlink()
    maxmargin.grid_search(X, y, journal=journal, **options)
    assert_same(grid_search(X, y, client=client, journal=journal, resume=True, **options), local)  # one format


def assert_no_tasks(client):
    def left(dask_worker):
        return [(key, task.state) for key, task in dask_worker.state.tasks.items() if str(key).startswith("run_job")]

    until = time.monotonic() + 30
    while any(client.run(left).values()):
        assert time.monotonic() < until, (client.run(left), {k: v.status for k, v in client.futures.items()})
        time.sleep(0.05)


def test_interruption_and_time_limit(client, table):
    X, y, _, _ = table
    slow = {"Cs": [1e5], "gammas": [1e-3, 1], "folds": 3}  # the fits take long

    def interrupt(result):
        raise KeyboardInterrupt

    options = {"Cs": [1.0], "gammas": [0.1, 1], "folds": 3}
    result = grid_search(X, y, SVC(), client=client, callback=interrupt, **options)
    assert result.status == "interrupted"
    assert_no_tasks(client)
    limited = grid_search(X, ~y, SVC(tol=1e-9), client=client, max_seconds=0.2, **slow)
    assert limited.status == "time limit"
    assert_no_tasks(client)


def test_error_of_a_trial(client):
    X, y = BOARD

    def fail(model, X, y):
        raise LookupError("of the score")

    with pytest.raises(LookupError, match="of the score"):
        grid_search(X, y, client=client, Cs=[1, 2], gammas=[1], scoring=fail)
    assert_no_tasks(client)


def fail_at_2(model, X, y):
    if model.C == 2:
        raise LookupError("of the score")
    return model.score(X, y)


def test_trials_beside_an_error_are_kept(client):
    X, y = BOARD
    scorer = FoldScorer.of(SVC(), X, y, 3, fail_at_2, 0)
    jobs = scorer.jobs(grid_points({"C": (2.0, 1.0), "gamma": (1.0,)}), set())
    with trial_tasks.TrialTasks(client, scorer, jobs, Deadline.after(None)) as running:
        distributed.wait(list(running._running))
        trials, finished = running.collect()
        assert [trial.point.C for trial in trials] == [1.0] * 3
        assert finished == 3
        with pytest.raises(LookupError, match="of the score"):
            running.collect()
    assert_no_tasks(client)


def test_arguments(client):
    X, y = BOARD
    with pytest.raises(TypeError, match="no n_jobs"):
        grid_search(X, y, client=client, n_jobs=2)
    with pytest.raises(ValueError, match="X must be in memory"):
        grid_search(da.from_array(X), y, client=client)
    with pytest.raises(ValueError, match="y must be in memory"):
        grid_search(X, da.from_array(y), client=client)


def be_slow(model, X, y):
    time.sleep(0.3)
    return model.score(X, y)


@pytest.mark.parametrize("workers", [2, 1])
def test_killed_worker(workers):
    """Trials are run elsewhere; data that were lost with the only worker are sent again."""
    X, y = BOARD
    options = {"Cs": [1, 10], "gammas": [1], "folds": 3, "scoring": be_slow}
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        process = min(client.run(os.getpid).items())[1]
        killer = threading.Timer(0.7, os.kill, (process, signal.SIGKILL))
        killer.start()
        result = grid_search(X, y, client=client, **options)
        killer.join()
    assert_same(result, maxmargin.grid_search(X, y, **{**options, "scoring": "accuracy"}))


def test_no_workers(monkeypatch):

    X, y = BOARD
    monkeypatch.setattr(trial_tasks, "MAX_SECONDS_WITHOUT_WORKERS", 0.2)
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        pytest.raises(RuntimeError, match="no workers"),
    ):
        grid_search(X, y, client=client, Cs=[1], gammas=[1])
