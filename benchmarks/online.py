"""One pass of `OnlineSVC`, compared with batch fits and with LASVM written in NumPy.

    python -m benchmarks.online --data FOLDER [--rows N] [--skip NAME …]

RBF kernel; a9a with C = 1, γ = 0.05, ijcnn1 with C = 32, γ = 2. Wall-clock seconds, test accuracy, samples in memory
at the end, and the additional peak memory of the process. Each fit runs in its own process.
"""

from __future__ import annotations

import argparse
import bz2
import io
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_svmlight_file

from maxmargin import SVC, OnlineSVC

#: Files, features, C, γ.
DATA = {
    "a9a": ("a9a.libsvm", "a9a.t.libsvm", 123, 1.0, 0.05),
    "ijcnn1": ("ijcnn1.libsvm.bz2", "ijcnn1.t.libsvm.bz2", 22, 32.0, 2.0),
}


class NumpyLasvm:
    """A straightforward LASVM with most violating pairs in NumPy; kernel rows are computed on demand."""

    def __init__(self, C: float, gamma: float) -> None:
        self.C, self.gamma = C, gamma

    def fit(self, X: Any, y: Any) -> NumpyLasvm:
        """Make one pass in random order."""
        X = np.asarray(X.todense()) if sparse.issparse(X) else X
        signs = np.where(y > 0, 1.0, -1.0)
        self.X, self.dual, self.gradient = np.empty((0, X.shape[1])), np.empty(0), np.empty(0)
        self.signs = np.empty(0)
        order = np.random.default_rng(0).permutation(len(y))
        for t in order:
            self._process(X[t], signs[t])
            self._reprocess()
        return self

    @property
    def support_vectors_(self) -> Any:
        """The samples in memory."""
        return self.X

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy."""
        X = np.asarray(X.todense()) if sparse.issparse(X) else X
        parts = [self._row(part) @ self.dual for part in np.array_split(X, max(1, len(X) // 500))]
        low, high = self._ends()
        return float(
            (np.sign(np.concatenate(parts) + 0.5 * (self.gradient[low] + self.gradient[high])) == np.sign(y)).mean()
        )

    def _row(self, x: Any) -> Any:
        x = np.atleast_2d(x)
        squares = (x**2).sum(axis=1)[:, None] + (self.X**2).sum(axis=1) - 2.0 * x @ self.X.T
        return np.exp(-self.gamma * np.maximum(squares, 0.0))

    def _process(self, x: Any, sign: float) -> None:
        row = self._row(x)[0] if len(self.X) else np.empty(0)
        self.X, self.signs = np.vstack([self.X, x]), np.append(self.signs, sign)
        self.gradient, self.dual = np.append(self.gradient, sign - row @ self.dual), np.append(self.dual, 0.0)
        up, down = self._ends()
        self._step(*((len(self.dual) - 1, down) if sign > 0 else (up, len(self.dual) - 1)))

    def _reprocess(self) -> None:
        self._step(*self._ends())
        up, down = self._ends()
        keep = (self.dual != 0) | np.where(
            self.signs > 0, self.gradient > self.gradient[down], self.gradient < self.gradient[up]
        )
        if not keep.all() and len(np.unique(self.signs[keep])) == 2:
            self.X, self.signs = self.X[keep], self.signs[keep]
            self.dual, self.gradient = self.dual[keep], self.gradient[keep]

    def _ends(self) -> tuple[int, int]:
        upper, lower = np.where(self.signs > 0, self.C, 0.0), np.where(self.signs > 0, 0.0, -self.C)
        up = np.where(self.dual < upper, self.gradient, -np.inf).argmax()
        down = np.where(self.dual > lower, self.gradient, np.inf).argmin()
        return int(up), int(down)

    def _step(self, i: int, j: int) -> None:
        slope = self.gradient[i] - self.gradient[j]
        if not slope > 1e-3:
            return
        rows = self._row(self.X[[i, j]])
        room_up = (self.C if self.signs[i] > 0 else 0.0) - self.dual[i]
        room_down = self.dual[j] - (0.0 if self.signs[j] > 0 else -self.C)
        step = min(slope / max(2.0 - 2.0 * rows[0, j], 1e-12), room_up, room_down)
        self.dual[i] += step
        self.dual[j] -= step
        self.gradient -= step * (rows[0] - rows[1])


ESTIMATORS = {
    "OnlineSVC, one pass": lambda C, gamma: OnlineSVC(C=C, gamma=gamma, random_state=0),
    "OnlineSVC, one pass, first order": lambda C, gamma: OnlineSVC(
        C=C, gamma=gamma, random_state=0, selection="most_violating_pair"
    ),
    "LASVM in NumPy, one pass": NumpyLasvm,
    "SVC, batch": lambda C, gamma: SVC(C=C, gamma=gamma),
    "scikit-learn's SVC, batch": lambda C, gamma: svm.SVC(C=C, gamma=gamma, cache_size=1000),
}


def read(path: Path, features: int) -> tuple[Any, Any]:
    """Return samples and labels of a file."""
    raw = path.read_bytes()
    X, y = load_svmlight_file(io.BytesIO(bz2.decompress(raw) if path.suffix == ".bz2" else raw), n_features=features)
    return sparse.csr_matrix(X), y


def measure(folder: Path, name: str, estimator: str, rows: int) -> dict[str, Any]:
    """Fit one estimator in this process."""
    train, test, features, C, gamma = DATA[name]
    X, y = read(folder / train, features)
    X_test, y_test = read(folder / test, features)
    X, y = X[:rows], y[:rows]
    if features < 50:
        X, X_test = X.toarray(), X_test.toarray()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = perf_counter()
    model = ESTIMATORS[estimator](C, gamma).fit(X, y)
    seconds = perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": seconds,
        "accuracy": 100 * model.score(X_test[:20_000], y_test[:20_000]),
        "memory": model.support_vectors_.shape[0],
        "megabytes": (after - before) / 1024,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the files")
    parser.add_argument("--rows", type=int, default=10**9, help="use only the first rows")
    parser.add_argument(
        "--skip", nargs="*", default=[], metavar="NAME", help="skip estimators whose names contain this"
    )
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # in a separate process
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.data, *options.one, options.rows)))
        return
    print("| data | estimator | seconds | accuracy, % | support vectors | memory, MB |\n|---|---|---:|---:|---:|---:|")
    for name in DATA:
        for estimator in ESTIMATORS:
            if any(part in estimator for part in options.skip):
                continue
            command = [
                sys.executable,
                "-m",
                "benchmarks.online",
                "--data",
                str(options.data),
                "--rows",
                str(options.rows),
            ]
            run = subprocess.run([*command, "--one", name, estimator], capture_output=True, text=True, check=True)
            found = json.loads(run.stdout.splitlines()[-1])
            print(
                f"| {name} | {estimator} | {found['seconds']:.1f} | {found['accuracy']:.2f} | {found['memory']:,} | "
                f"{found['megabytes']:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
