"""Speed-up of fits and predictions over one thread, with 2, 4, 8 and 16 threads.

    python -m benchmarks.cores --data FOLDER
    python -m benchmarks.cores --data FOLDER --cases covtype_50k svr --threads 1 8

Each case runs in a process of its own: after a warm-up, the median of several runs for every number of threads. Cases
whose files are not in the folder are left out. Kernel-bound cases spend most of their time on kernel values.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.peers import loading
from benchmarks.peers.loading import Data, standardised

Loader = Callable[[Path], Data]
Run = Callable[[int], Any]


@dataclass(frozen=True)
class Case:
    """Something to time with different numbers of threads.

    `prepare` takes the folder with the data and returns a function of the number of threads.
    """

    kind: str
    prepare: Callable[[Path], Run]
    runs: int = 3


def physics(n_samples: int = 15_000, n_features: int = 18) -> Data:
    """Return two classes that overlap so much that half of the samples are bounded support vectors."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_samples, n_features))
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * np.abs(X[:, 3]) + random.normal(scale=1.2, size=n_samples)
    return X, (score > np.median(score)).astype(np.int64)


def targets(n_samples: int = 10_000) -> Data:
    """Return a smooth function of eight features with noise of standard deviation 0.5."""
    random = np.random.default_rng(0)
    X = random.uniform(size=(n_samples, 8))
    y = np.sin(np.pi * X[:, 0] * X[:, 1]) + 2 * (X[:, 2] - 0.5) ** 2 + X[:, 3] + 0.5 * random.normal(size=n_samples)
    return standardised((X, y))


def _fit(
    estimator: str, parameters: dict[str, Any], load: Callable[[Path], Data], folder: Path
) -> Callable[[int], Any]:
    import maxmargin

    X, y = load(folder)
    machine = getattr(maxmargin, estimator)
    return lambda threads: machine(**parameters, n_jobs=threads).fit(X, y)


def _predict(folder: Path) -> Run:
    import maxmargin

    X, y = physics(10_000, 50)
    model = maxmargin.SVC().fit(X, y)
    return lambda threads: model.set_params(n_jobs=threads).decision_function(X)


def _search(folder: Path) -> Run:
    from maxmargin import SVC
    from maxmargin.search import grid_search

    X, y = standardised(loading.covtype(folder, 2_000))
    grid = {"Cs": [1, 10, 100], "gammas": [0.01, 0.1, 1.0]}
    return lambda threads: grid_search(X, y, SVC(), **grid, n_jobs=threads)


def _cover(count: int, folder: Path) -> Data:
    return standardised(loading.covtype(folder, count))


def _mnist(count: int, folder: Path) -> Data:
    return loading.mnist(folder, count)


def _even_odd(folder: Path) -> Data:
    X, y = loading.mnist(folder, 20_000)
    return X, y % 2


def _case(kind: str, estimator: str, load: Loader, **parameters: Any) -> Case:
    return Case(kind, partial(_fit, estimator, parameters, load))


CASES = {
    "covtype_50k": _case("kernel-bound", "SVC", partial(_cover, 50_000), gamma=1 / 54),
    "mnist_even_odd": _case("kernel-bound", "SVC", _even_odd, C=10, gamma=0.02),
    "mnist_10k": _case("kernel-bound", "SVC", partial(_mnist, 10_000), C=10, gamma=0.02),
    "physics": _case("other", "SVC", lambda folder: physics()),
    "svr": _case("other", "SVR", lambda folder: targets()),
    "svr_narrow": _case("other", "SVR", lambda folder: targets(), C=10, gamma=0.5),
    "nu_svc": _case("other", "NuSVC", lambda folder: physics(10_000, 8), nu=0.6),
    "linear_covtype": _case("other", "LinearSVC", partial(_cover, 581_012)),
    "linear_covtype_hinge": _case("other", "LinearSVC", partial(_cover, 581_012), loss="hinge"),
    "linear_mnist": _case("other", "LinearSVC", partial(_mnist, 20_000)),
    "prediction": Case("prediction", _predict),
    "grid_search": Case("other", _search),
}


def measure(case: Case, folder: Path, threads: list[int]) -> list[float]:
    """Return the median seconds of a case for each number of threads."""
    run = case.prepare(folder)
    medians = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for count in threads:
            run(count)
            seconds = []
            for _ in range(case.runs):
                started = perf_counter()
                run(count)
                seconds.append(perf_counter() - started)
            medians.append(float(np.median(seconds)))
    return medians


def main() -> None:
    """Print a table with a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder with the files of benchmarks.peers")
    parser.add_argument("--cases", nargs="+", choices=sorted(CASES), default=list(CASES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)  # print the seconds of the one case
    options = parser.parse_args()
    if options.one:
        print(*measure(CASES[options.cases[0]], options.data, options.threads))
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{cores} usable cores. Seconds with {options.threads[0]} thread(s), then the speed-up over that.\n")
    print("| case | kind | seconds |", *(f"{count} |" for count in options.threads[1:]))
    print("|---|---|---:|" + "---:|" * (len(options.threads) - 1))
    for name in options.cases:
        command = [sys.executable, "-m", "benchmarks.cores", "--one", "--data", str(options.data), "--cases", name]
        command += ["--threads", *map(str, options.threads)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            print(f"{name}: {result.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            continue
        first, *others = map(float, result.stdout.split())
        print(f"| {name} | {CASES[name].kind} | {first:.3f} |", *(f"{first / s:.2f} |" for s in others), flush=True)


if __name__ == "__main__":
    main()
