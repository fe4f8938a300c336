"""Peak memory of fits: at most the data, the row cache and 200 MB.

    python -m benchmarks.peak_memory                    # the whole table, about 5 minutes
    python -m benchmarks.peak_memory "SVC, 20,000 × 50"

Each fit runs in a process of its own, which first imports everything and fits a few samples. The excess is the peak of
the resident memory during the fit over the resident memory before it, which includes the data; it may be `cache_size`
and 200 MB. Fits are stopped after some seconds: a solver allocates its arrays in the first rounds. Exits with 1 if a
fit exceeds its limit. Linux only, because the peak is read from /proc.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass

#: Memory besides data and cache, in MB.
CONSTANT_MB = 200

#: Row cache in MB; OnlineSVC and linear estimators have none.
CACHE_MB = 100

PROGRAM = """
import json, os, sys, warnings
import numpy as np
from scipy import sparse
import maxmargin

case = json.loads(sys.argv[1])
warnings.simplefilter("ignore")
random = np.random.default_rng(0)
rows, columns = case["rows"], case["columns"]
if case["sparse"]:
    places = np.sort(random.integers(0, columns, (rows, case["sparse"]), dtype=np.int32)).ravel()
    starts = np.arange(0, len(places) + 1, case["sparse"])
    X = sparse.csr_matrix((random.normal(size=len(places)), places, starts), (rows, columns))
    X.sum_duplicates()
    score = np.asarray(X[:, : columns // 2].sum(axis=1)).ravel() - np.asarray(X[:, columns // 2 :].sum(axis=1)).ravel()
else:
    X = random.normal(size=(rows, columns))
    score = X[:, 0] + X[:, 1] ** 2
score += random.normal(size=rows)
y = np.digitize(score, np.quantile(score, np.arange(1, case["classes"]) / case["classes"]))
model = eval("maxmargin." + case["model"])

def status(name):
    for line in open("/proc/self/status"):
        if line.startswith(name):
            return int(line.split()[1]) * 1024

model.fit(X[:60], y[:60]).predict(X[:10])
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")  # resets the peak
model.fit(X, y)
fit = status("VmHWM") - before
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before = status("VmRSS")
model.predict(X)
data = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if case["sparse"] else X.nbytes
print(json.dumps({"fit": fit, "predict": status("VmHWM") - before, "data": data}), flush=True)
os._exit(0)  # the threads of OpenBLAS, which an ordinary exit joins, may miss their wake-up
"""


@dataclass(frozen=True)
class Case:
    """A fit: the constructor of the estimator, samples, features, classes, and nonzeros per row of sparse data."""

    model: str
    rows: int
    columns: int
    classes: int = 2
    sparse: int = 0
    cache: float = CACHE_MB
    quick: bool = False

    def __str__(self) -> str:
        name = self.model.partition("(")[0]
        variants = ("probability=True", "'pairwise'", "'weston_watkins'", "'l1'", "'linear'")
        words = [
            name,
            f"{self.rows:,} × {self.columns:,}",
            f"{self.classes} classes" if self.classes > 2 else "",
            f"{self.sparse} nonzeros per row" if self.sparse else "",
            *(variant.strip("'").partition("=")[0] for variant in variants if variant in self.model),
        ]
        return ", ".join(word for word in words if word)


def _kernel(name: str, options: str = "", cache: int = CACHE_MB, seconds: float = 10) -> str:
    return f"{name}(cache_size={cache}, n_jobs=2, max_seconds={seconds}{options})"


CASES = {
    str(case): case
    for case in (
        Case(_kernel("SVC"), 20_000, 50),
        Case(_kernel("SVC"), 100_000, 20),
        Case(_kernel("SVC"), 5_000, 2_000),
        Case(_kernel("SVC", ", solver='pairwise'"), 20_000, 50),
        Case(_kernel("SVC"), 20_000, 20, classes=10),
        Case(_kernel("SVC"), 2_000, 20, classes=500),
        Case(_kernel("SVC", ", multi_class='weston_watkins'"), 5_000, 20, classes=10),
        Case(_kernel("SVC", ", probability=True"), 10_000, 20),
        Case(_kernel("SVC"), 20_000, 100_000, sparse=100),
        Case(_kernel("NuSVC", ", nu=0.3"), 20_000, 50),
        Case(_kernel("SVR"), 20_000, 50),
        Case(_kernel("NuSVR"), 20_000, 50),
        Case(_kernel("LSSVC"), 20_000, 50),
        Case(_kernel("LSSVR"), 20_000, 50),
        Case(_kernel("QuantileSVR"), 20_000, 50),
        Case(_kernel("OneClassSVM"), 20_000, 50),
        Case(_kernel("SVDD"), 20_000, 50),
        Case(_kernel("RankSVC", ", kernel='linear'"), 1_000, 50),
        Case("OnlineSVC(n_jobs=2, cache_size=100)", 20_000, 50),
        Case("LinearSVC(n_jobs=2, max_seconds=10)", 200_000, 100, cache=0),
        Case("LinearSVC(n_jobs=2, max_seconds=10, penalty='l1', dual=False)", 200_000, 50, cache=0),
        Case("LinearSVC(n_jobs=2, max_seconds=10)", 100_000, 1_000_000, sparse=100, cache=0),
        Case("LinearSVR(n_jobs=2, max_seconds=10)", 200_000, 100, cache=0),
        Case("LinearOneClassSVM(n_jobs=2, max_seconds=10)", 200_000, 100, cache=0),
        Case("KernelApproximationSVC(n_components=500, n_jobs=2, max_seconds=10)", 20_000, 50, cache=0),
        # Some seconds in all, for the tests.
        Case(_kernel("SVC", seconds=2), 10_000, 20, quick=True),
        Case(_kernel("SVC", ", solver='pairwise'", seconds=1), 8_000, 20, quick=True),
        Case(_kernel("SVC", seconds=2), 4_000, 10, classes=10, quick=True),
        Case(_kernel("SVC", seconds=2), 5_000, 100_000, sparse=50, quick=True),
        Case(_kernel("SVR", seconds=2), 8_000, 20, quick=True),
        Case(_kernel("LSSVC", seconds=2), 8_000, 20, quick=True),
        Case(_kernel("SVDD", seconds=2), 8_000, 20, quick=True),
        Case("OnlineSVC(n_jobs=2, cache_size=100)", 3_000, 20, quick=True),
        Case("LinearSVC(n_jobs=2, max_seconds=2)", 50_000, 50, cache=0, quick=True),
    )
}


@dataclass(frozen=True)
class Measured:
    """Peak memory of a fit and of a prediction over the memory before, and what is allowed, in MB."""

    case: str
    data: float
    fit: float
    predict: float
    allowed: float

    @property
    def excess(self) -> float:
        """The larger of the two."""
        return max(self.fit, self.predict)

    def row(self) -> str:
        """Return the row of a table."""
        verdict = "" if self.excess <= self.allowed else "exceeded"
        numbers = f"{self.data:.0f} | {self.fit:.0f} | {self.predict:.0f} | {self.allowed:.0f}"
        return f"| {self.case} | {numbers} | {verdict} |"


def measure(name: str) -> Measured:
    """Run a case in a process of its own."""
    case = CASES[name]
    command = [sys.executable, "-c", PROGRAM, json.dumps(vars(case))]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{name}: exit code {run.returncode}, {run.stderr[-2000:]}")
    found = {key: value / 1e6 for key, value in json.loads(run.stdout).items()}
    return Measured(name, found["data"], found["fit"], found["predict"], case.cache + CONSTANT_MB)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="by default all")
    parser.add_argument("--quick", action="store_true", help="only the cases of the tests")
    options = parser.parse_args()
    names = options.cases or [name for name, case in CASES.items() if case.quick or not options.quick]
    print("| fit | data, MB | peak of the fit, MB | peak of predict, MB | allowed, MB | |")
    print("|---|---:|---:|---:|---:|---|")
    exceeded = 0
    for name in names:
        measured = measure(name)
        exceeded += measured.excess > measured.allowed
        print(measured.row(), flush=True)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
