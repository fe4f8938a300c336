"""Fits in parallel threads, after a fork, with signals, and inside joblib: the same results, and nothing hangs."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from maxmargin import (
    LSSVC,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearSVC,
    LinearSVR,
    NuSVC,
    OneClassSVM,
    OnlineSVC,
    QuantileSVR,
    RankSVC,
)
from maxmargin.datasets import chessboard

X, Y = chessboard(400, noise=0.05, seed=1)

MODELS = [
    SVC(C=10, n_jobs=2),
    SVC(C=10, n_jobs=2, solver="block"),
    SVC(probability=True, random_state=0, n_jobs=2),
    NuSVC(nu=0.3, n_jobs=2),
    SVR(n_jobs=2),
    LSSVC(n_jobs=2),
    OneClassSVM(n_jobs=2),
    SVDD(n_jobs=2),
    QuantileSVR(n_jobs=2),
    RankSVC(kernel="linear", n_jobs=2),
    LinearSVC(n_jobs=2),
    LinearSVR(n_jobs=2),
    KernelApproximationSVC(n_components=50, random_state=0, n_jobs=2),
    OnlineSVC(random_state=0, n_jobs=2),
]


def fitted(model):
    """Fit a copy of a model and return its decision values."""
    own = clone(model)
    rows = 60 if isinstance(model, RankSVC) else 400
    own.fit(X[:rows], Y[:rows])
    return own.decision_function(X[:50]) if hasattr(own, "decision_function") else own.predict(X[:50])


@pytest.fixture(scope="module")
def alone():
    """Decision values of each model, fitted one after the other."""
    return [fitted(model) for model in MODELS]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_in_parallel_threads_give_the_same_results(alone):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(fitted, MODELS * 3))
    for number, decisions in enumerate(found):
        np.testing.assert_array_equal(decisions, alone[number % len(MODELS)])


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_nested_joblib_gives_the_same_results(alone, backend):
    some = [0, 1, 10]
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(fitted)(MODELS[k]) for k in some)
    for k, decisions in zip(some, found, strict=True):
        np.testing.assert_array_equal(decisions, alone[k])


def scores():
    """Cross-validate in two threads of joblib."""
    with joblib.parallel_config(backend="threading"):
        return cross_val_score(SVC(C=10), X, Y, cv=3, n_jobs=2)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_cross_validation_inside_joblib(backend):
    alone = cross_val_score(SVC(C=10), X, Y, cv=3)
    for found in joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(scores)() for _ in range(2)):
        np.testing.assert_array_equal(found, alone)


def test_one_model_predicts_in_many_threads():
    model = SVC(C=10, n_jobs=2).fit(X, Y)
    expected = model.decision_function(X)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: model.decision_function(X), range(64)):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_fits_after_threaded_fits_in_the_parent():
    """In a process of its own: pytest's threads and captured files do not matter there."""
    program = """
import os, sys, threading, warnings
import numpy as np
from maxmargin import SVC, LinearSVC
from maxmargin.datasets import chessboard
warnings.simplefilter("ignore", DeprecationWarning)  # fork in a process with threads
X, y = chessboard(3000, noise=0.05, seed=1)
parent = SVC(C=10, gamma=1.0, n_jobs=4).fit(X, y)
expected = parent.decision_function(X[:100])
stop = threading.Event()
def fit_again():
    while not stop.is_set():
        SVC(n_jobs=2).fit(X[:500], y[:500])
worker = threading.Thread(target=fit_again)
worker.start()
for _ in range(3):
    child = os.fork()
    if child == 0:
        try:
            again = SVC(C=10, gamma=1.0, n_jobs=4).fit(X, y)
            same = np.array_equal(again.decision_function(X[:100]), expected)
            same = same and np.array_equal(parent.decision_function(X[:100]), expected)
            LinearSVC(n_jobs=2).fit(X, y)
            os._exit(0 if same else 1)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
worker.join()
print("finished")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert run.stdout == "finished\n", run.stderr


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
def test_signals_do_not_change_a_fit():
    """A handler that runs a thousand times a second: system calls are interrupted, fits are not."""
    expected = [fitted(model) for model in MODELS[:3]]
    calls = []
    before = signal.signal(signal.SIGALRM, lambda *_: calls.append(time.perf_counter()))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        found = [fitted(model) for model in MODELS[:3]]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert calls
    for decisions, same in zip(found, expected, strict=True):
        np.testing.assert_array_equal(decisions, same)


def test_an_exception_of_a_signal_handler_ends_the_fit():
    """As Ctrl-C does, any exception of a handler leaves the fit; other threads and later fits are not affected."""

    class AlarmError(Exception):
        pass

    def handler(*_):
        raise AlarmError

    results = []
    other = threading.Thread(target=lambda: results.append(fitted(MODELS[0])))
    hard, labels = np.random.default_rng(0).normal(size=(3000, 10)), np.arange(3000) % 2
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    other.start()
    try:
        with pytest.raises(AlarmError):
            SVC(C=1e6, tol=1e-12).fit(hard, labels)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    other.join()
    np.testing.assert_array_equal(results[0], fitted(MODELS[0]))
