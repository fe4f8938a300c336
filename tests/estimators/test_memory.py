"""Memory: the peak of a fit is bounded, and a fit that gets no memory leaves the process and the old model healthy."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the benchmarks are not installed

from benchmarks.peak_memory import CASES, measure  # noqa: E402

#: Cases of `python -m benchmarks.peak_memory` that take a second or two.
QUICK = [name for name, case in CASES.items() if case.quick]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize("name", QUICK)
def test_peak_memory_is_within_data_budget_and_200_mb(name):
    measured = measure(name)
    assert measured.excess <= measured.allowed, measured


PROGRAM = """
import resource, sys, warnings
import numpy as np
from maxmargin import {names}

warnings.simplefilter("ignore")
random = np.random.default_rng(0)
small = random.normal(size=(200, 5))
labels = np.where(small[:, 0] > 0, 1, -1)
model = {model}
model.fit(small, labels)
expected = model.predict(small)
large = random.normal(size=({rows}, {features}))
targets = np.where(large[:, 0] + random.normal(size=len(large)) > 0, 1, -1)
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
_, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (pages + {extra}, hard))
try:
    {function}(large{targets})
    print("no error")
except MemoryError as error:
    print("MemoryError:", error)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
assert (model.predict(small) == expected).all(), "the old model is changed"
model.fit(small, labels)
assert (model.predict(small) == expected).all(), "a new fit differs"
print("healthy")
"""


def starved(model, function="model.fit", rows=6000, extra=2**23):
    """Call a function with little memory; return what it printed."""
    names = model.partition("(")[0]
    targets = ", targets" if function == "model.fit" else ""
    features = 20 if function == "model.fit" else 5
    program = PROGRAM.format(
        names=names, model=model, rows=rows, features=features, extra=extra, function=function, targets=targets
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    return run.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of the address space is set on Linux")
@pytest.mark.parametrize(
    ("model", "rows"),
    [
        ("SVC(n_jobs=2, C=100.0)", 6000),
        ("SVC(n_jobs=1, solver='pairwise', probability=True)", 6000),
        ("SVR(n_jobs=1)", 6000),
        ("LSSVC(n_jobs=1)", 6000),
        ("OneClassSVM(n_jobs=1)", 6000),
        ("LinearSVC(n_jobs=1, dual=False)", 300_000),
        ("KernelApproximationSVC(n_jobs=1, n_components=2000)", 6000),
        ("OnlineSVC(n_jobs=1, random_state=0)", 6000),
    ],
)
def test_a_fit_without_memory_raises_and_keeps_the_old_model(model, rows):
    lines = starved(model, rows=rows).splitlines()
    assert lines[-1] == "healthy"
    assert lines[0].startswith(f"MemoryError: not enough memory to fit {model.partition('(')[0]}: ")
    assert lines[0].endswith("; the previous fit is kept")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of the address space is set on Linux")
def test_predictions_without_memory_raise_and_keep_the_model():
    lines = starved("SVC(n_jobs=2)", function="model.decision_function", rows=300_000, extra=2**20).splitlines()
    assert lines[-1] == "healthy"
