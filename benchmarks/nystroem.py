"""Nyström features and scikit-learn's `Nystroem`: fit and transform with the same landmarks.

    python -m benchmarks.nystroem

Runs alternate in one process, after a warm-up; medians. ``--clock cpu`` measures the CPU time of all cores, which
other programs disturb less. The approximation error is
the mean of k(x, x) − ‖φ(x)‖² over 1,000 samples, in double precision for both; the difference is the largest one
between their approximations of k(x, z).
"""

from __future__ import annotations

import argparse
from time import perf_counter, process_time

import numpy as np
from sklearn.kernel_approximation import Nystroem
from threadpoolctl import threadpool_limits

from maxmargin.feature_maps import NystroemMap
from maxmargin.resources import thread_count

CLOCKS = {"wall": perf_counter, "cpu": process_time}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=54)
    parser.add_argument("--landmarks", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=thread_count(None))
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    print(
        f"{options.samples:,} x {options.features}, {options.landmarks:,} landmarks, {options.threads} threads, "
        f"seconds by {options.clock} clock"
    )
    print("| samples are | gamma | scikit-learn | maxmargin | ratio | their error | our error | largest difference |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for precision in (np.float64, np.float32):
        for gamma in (0.1 / options.features, 1.0 / options.features, 1.0):
            with threadpool_limits(options.threads):
                print(row(options, precision, gamma), flush=True)


def row(options: argparse.Namespace, precision: type, gamma: float) -> str:
    X = np.random.default_rng(0).normal(size=(options.samples, options.features)).astype(precision)
    theirs = Nystroem(gamma=gamma, n_components=options.landmarks, random_state=0)
    ours = NystroemMap(gamma=gamma, landmarks=theirs.fit(X).components_, n_jobs=options.threads)
    times: dict[str, list[float]] = {"theirs": [], "ours": []}
    features = {}
    for run in range(options.runs + 1):
        for name, map in (("theirs", theirs), ("ours", ours)):
            features.pop(name, None)  # deallocation is not timed
            started = CLOCKS[options.clock]()
            features[name] = map.fit(X).transform(X)
            if run:
                times[name].append(CLOCKS[options.clock]() - started)
    left, right = (features[name][:1000].astype(float) for name in ("theirs", "ours"))
    errors = [1.0 - np.square(part).sum(axis=1).mean() for part in (left, right)]
    difference = np.abs(left @ left.T - right @ right.T).max()
    theirs_took, ours_took = (float(np.median(times[name])) for name in ("theirs", "ours"))
    return (
        f"| {np.dtype(precision)} | {gamma:.4g} "
        f"| {theirs_took:.2f} s | {ours_took:.2f} s | {ours_took / theirs_took:.2f} | "
        f"{errors[0]:.5f} | {errors[1]:.5f} | {difference:.1e} |"
    )


if __name__ == "__main__":
    main()
