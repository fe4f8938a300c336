"""Fit and prediction times on small data, compared with scikit-learn: the overhead of a fit.

    python -m benchmarks.small_fits
    python -m benchmarks.small_fits --machines    # every machine on 20 and 50 rows, and on three classes

Fits alternate in one process, after a warm-up; medians of many runs. Both use default parameters. Every machine is
measured by the processor time of this thread, in blocks of equal fits: other work on the computer matters little.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from functools import partial
from time import perf_counter, thread_time

import numpy as np
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

import maxmargin
from benchmarks.peers.generated import small_sample

#: Fits of one library after another.
BLOCK = 20

REGRESSORS = ("SVR", "NuSVR", "LinearSVR")
MACHINES = ("SVC", "NuSVC", "OneClassSVM", *REGRESSORS[:2], "LinearSVC", REGRESSORS[2])


def alternate(first, second, runs: int) -> tuple[float, float]:
    """Return the median times of two alternating functions."""
    times = ([], [])
    for _ in range(runs):
        for function, seconds in zip((first, second), times, strict=True):
            started = perf_counter()
            function()
            seconds.append(perf_counter() - started)
    return tuple(float(np.median(seconds)) for seconds in times)


def block_seconds(function) -> float:
    """Return the processor time of one of several runs, the first of which does not count."""
    function()
    started = thread_time()
    for _ in range(BLOCK):
        function()
    return (thread_time() - started) / BLOCK


def compare_machines(blocks: int) -> None:
    """Print the times of a fit and of a prediction for every machine."""
    scaled = StandardScaler().fit_transform
    several = [(name, load(return_X_y=True)) for name, load in (("iris", load_iris), ("wine", load_wine))]
    samples = {(name, machine): (scaled(X), y) for name, (X, y) in several for machine in ("SVC", "NuSVC", "LinearSVC")}
    for n in (20, 50):
        X, labels, targets = small_sample(n)
        samples |= {(f"random, {n}", m): (X, targets if m in REGRESSORS else labels) for m in MACHINES}
    print("| data | machine | fit: scikit-learn | maxmargin | ratio | predict: scikit-learn | maxmargin | ratio |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for (data, machine), (X, y) in samples.items():
        both = getattr(svm, machine)(), getattr(maxmargin, machine)()
        cells = []
        for functions in ([partial(one.fit, X, y) for one in both], [partial(one.predict, X) for one in both]):
            times = [[block_seconds(function) for function in functions] for _ in range(blocks)]
            theirs, ours = np.median(times, axis=0)
            cells.append(f"{theirs * 1e3:.2f} ms | {ours * 1e3:.2f} ms | {theirs / ours:.2f}")
        print(f"| {data} | {machine} | {' | '.join(cells)} |", flush=True)


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
    parser.add_argument("--machines", action="store_true", help="every machine, ratios above 1: maxmargin is faster")
    options = parser.parse_args()
    runs = options.runs
    if options.machines:
        warnings.simplefilter("ignore", ConvergenceWarning)  # of scikit-learn's LinearSVC
        compare_machines(max(1, runs // 5))
        return
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
