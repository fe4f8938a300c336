"""Ctrl-C ends a fit at once, in one thread or several, and leaves a usable model and a healthy process."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
from maxmargin import SVC
from maxmargin.datasets import chessboard
from sklearn.datasets import make_classification

cost = {cost}
if cost == np.inf:
    X, y = np.random.default_rng(0).normal(size=(4000, 2)), np.arange(4000) % 2
elif {classes} == 2:
    X, y = chessboard(6000, noise=0.2)
else:
    X, y = make_classification(6000, 20, n_informative=10, n_classes={classes}, flip_y=0.2, random_state=0)
warm_up = SVC().fit(X[:50], y[:50])
pressed, working = [], threading.Event()

def press():
    working.wait()
    time.sleep(0.05)
    pressed.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press).start()
strategy = {strategy!r}
model = SVC(C=cost, gamma=1.0, tol=1e-10, multi_class=strategy, n_jobs={jobs}, callback=lambda _: working.set())
try:
    model.fit(X, y)
    sys.exit("the fit ended before it was interrupted")
except KeyboardInterrupt as interrupt:
    print("answered after", round(time.perf_counter() - pressed[0], 3))
    assert "usable" in str(interrupt), str(interrupt)
assert model.predict(X[:100]).shape == (100,)
assert "INTERRUPTED" in str(model.status_)
certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
assert all(c.gap >= 0 for c in certificates)
largest = 1e6 if cost < np.inf else abs(model.dual_coef_).max(initial=0.0)
assert all(c.infeasibility <= 1e-9 * largest for c in certificates)
assert SVC().fit(X[:200], y[:200]).fit_status_ == 0
print("healthy")
"""


@pytest.mark.parametrize(
    ("classes", "jobs", "cost", "strategy"),
    [
        (2, 1, "1e6", "ovo"),
        (4, 1, "1e6", "ovo"),
        (4, 2, "1e6", "ovo"),
        (2, 1, "np.inf", "ovo"),
        (4, 1, "1e6", "ovr"),
        (4, 2, "1e6", "ovr"),
        (4, 2, "1e6", "weston_watkins"),
    ],
)
def test_ctrl_c(classes, jobs, cost, strategy):
    program = PROGRAM.format(classes=classes, jobs=jobs, cost=cost, strategy=strategy)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "healthy" in run.stdout


LINEAR = """
import os, signal, sys, threading, time
import numpy as np
from maxmargin import LinearSVC

random = np.random.default_rng(0)
X = random.normal(size=(20000, 200)) * 10.0 ** random.uniform(-2, 2, 200)
y = random.integers(0, {classes}, 20000)
LinearSVC().fit(X[:50], y[:50])
pressed, working = [], threading.Event()

def press():
    working.wait()
    time.sleep(0.05)
    pressed.append(time.perf_counter())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press).start()
model = LinearSVC(C=1e4, loss="hinge", tol=1e-12, solver={solver!r}, n_jobs={jobs}, callback=lambda _: working.set())
try:
    model.fit(X, y)
    sys.exit("the fit ended before it was interrupted")
except KeyboardInterrupt as interrupt:
    print("answered after", round(time.perf_counter() - pressed[0], 3))
    assert "usable" in str(interrupt), str(interrupt)
assert model.predict(X[:100]).shape == (100,)
assert "INTERRUPTED" in str(model.status_)
certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
assert all(c.gap >= 0 for c in certificates)
assert LinearSVC().fit(X[:50], y[:50]).fit_status_ == 0
print("healthy")
"""


@pytest.mark.parametrize(
    ("classes", "jobs", "solver"), [(2, 1, "auto"), (2, 1, "dual_coordinate_ascent"), (4, 2, "auto")]
)
def test_ctrl_c_in_linear_machines(classes, jobs, solver):
    program = LINEAR.format(classes=classes, jobs=jobs, solver=solver)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "healthy" in run.stdout
