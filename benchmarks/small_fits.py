"""Fit and prediction times on small data, compared with scikit-learn: the overhead of a fit.

    python -m benchmarks.small_fits

Fits alternate in one process, after a warm-up; medians of many runs. Both use default parameters.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from functools import partial
from time import perf_counter

import numpy as np
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import maxmargin


def alternate(first, second, runs: int) -> tuple[float, float]:
    """Return the median times of two alternating functions."""
    times = ([], [])
    for _ in range(runs):
        for function, seconds in zip((first, second), times, strict=True):
            started = perf_counter()
            function()
            seconds.append(perf_counter() - started)
    return tuple(float(np.median(seconds)) for seconds in times)


def import_seconds(statement: str) -> float:
    times = []
    for _ in range(7):
        started = perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(perf_counter() - started)
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print("| data | fit: scikit-learn | maxmargin | ratio | predict: scikit-learn | maxmargin | ratio |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        X, y = load(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        theirs, ours = svm.SVC(), maxmargin.SVC()
        fits = partial(theirs.fit, X, y), partial(ours.fit, X, y)
        times = alternate(*fits, runs if len(X) < 1000 else runs // 5)
        predict = alternate(partial(theirs.predict, X), partial(ours.predict, X), runs // 5)
        name = load.__name__.removeprefix("load_").replace("_", " ")
        cells = [f"{t * 1e3:.2f} ms | {o * 1e3:.2f} ms | {o / t:.2f}" for t, o in (times, predict)]
        print(f"| {name}, {X.shape[0]} x {X.shape[1]} | {' | '.join(cells)} |")
    alone, both = import_seconds("import sklearn.svm"), import_seconds("import sklearn.svm, maxmargin")
    print(f"\nimport sklearn.svm: {alone:.2f} s; with maxmargin: {both:.2f} s; added: {both - alone:.2f} s")


if __name__ == "__main__":
    main()
