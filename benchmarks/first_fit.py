"""The first fit of a process, compared with the second, for every estimator.

    python -m benchmarks.first_fit [--samples 400] [--processes 5] [--names SVC SVR ...]

Each process imports one estimator and fits it several times to the same generated data, on one thread. Times are those
of the processor, since other programs delay a first fit more than others; medians over the processes. "second" is the
median of the fits after the first one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from time import process_time

import numpy as np

NAMES = (
    *("SVC", "NuSVC", "LSSVC", "SVR", "NuSVR", "LSSVR", "QuantileSVR", "OneClassSVM", "SVDD", "RankSVC"),
    *("LinearSVC", "LinearSVR", "LinearOneClassSVM", "KernelApproximationSVC", "OnlineSVC", "OnlineOneClassSVM"),
)

#: Number of fits after the first one.
REPEATS = 5


def targets(name: str, values: np.ndarray) -> np.ndarray:
    """Return classes, ranks or targets, as the estimator needs them."""
    if name == "RankSVC":
        return np.round(values)
    return np.asarray(values > 0, dtype=np.int64) if name.endswith("SVC") else values


def measure(name: str, samples: int) -> tuple[float, float, float]:
    """Return the seconds of import, first fit and later fits in this process."""
    started = process_time()
    import maxmargin

    kind = getattr(maxmargin, name)
    imported = process_time() - started
    random = np.random.default_rng(0)
    X = random.normal(size=(samples, 8))
    y = targets(name, X @ random.normal(size=8) + 0.5 * random.normal(size=samples))
    seconds = []
    for _ in range(1 + REPEATS):
        model = kind() if name.startswith("Online") else kind(n_jobs=1)
        started = process_time()
        model.fit(X, y)
        seconds.append(process_time() - started)
    return imported, seconds[0], statistics.median(seconds[1:])


def in_processes(name: str, samples: int, processes: int) -> tuple[float, ...]:
    """Return the medians of `measure` in processes of their own."""
    command = [sys.executable, "-m", "benchmarks.first_fit", "--measure", name, "--samples", str(samples)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
        for _ in range(processes)
    ]
    return tuple(statistics.median(column) for column in zip(*runs, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--names", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--measure", choices=NAMES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.samples)))
        return
    print("| estimator | import | first fit | second | first / second |")
    print("|---|---:|---:|---:|---:|")
    for name in options.names:
        imported, first, second = in_processes(name, options.samples, options.processes)
        times = f"{imported:.2f} s | {first * 1e3:.2f} ms | {second * 1e3:.2f} ms | {first / second:.2f}"
        print(f"| {name} | {times} |", flush=True)


if __name__ == "__main__":
    main()
