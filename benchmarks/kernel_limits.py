"""Fits with a kernel in multiples of the lower bound on their time, on one core and by processor time.

    python -m benchmarks.kernel_limits --data FOLDER
    python -m benchmarks.kernel_limits --data FOLDER --cases a9a,mnist_10k

The cases of the suite `kernel` whose bound is at least 50 ms, unless others are named. The bound is that of
`benchmarks.peers`: the kernel values of all samples with the support vectors, once, and the factor of the matrix of the
free ones. Fits and measurements of the bound alternate, and the least of each counts, so that a change can be measured
on a busy computer; what a second core saves is not part of it. The kernel values are the computed ones, relative to
those of the bound.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.peers import cases
from benchmarks.peers.launch import restrict
from benchmarks.peers.libraries import MaxMargin
from benchmarks.peers.limit import measure_limit
from benchmarks.peers.run_case import Settings
from benchmarks.peers.suites import group_of
from benchmarks.peers.verification import verify

#: Fits after the first one, and measurements of the bound.
FITS = 5

#: Without a selection, cases of a smaller bound are left out, of which the rest of a fit is most of the time.
MIN_SECONDS = 0.05

#: The cases that are not begun without being named: their bound is below that on any computer.
SMALL = ("usps", "splice", "mushrooms", "reuters", "chessboard_", "banana", "unscaled")


def cpu_seconds(library: MaxMargin) -> float:
    """Return the processor time of a fit."""
    started = process_time()
    library.fit()
    return process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with the data files")
    parser.add_argument("--cases", default="", help="only these, separated by commas")
    options = parser.parse_args()
    wanted = [name for name in options.cases.split(",") if name]
    settings = Settings(threads=restrict(1))
    print("| case | group | limit | fit | fit / limit | kernel values |")
    print("|---|---|---:|---:|---:|---:|", flush=True)
    for case in cases.kernel(options.data):
        if case.name not in wanted if wanted else case.name.startswith(SMALL):
            continue
        X, labels = case.load()
        y = np.unique(labels, return_inverse=True)[1]
        parameters = settings.parameters(case, X)
        library = MaxMargin(parameters)
        library.take(X, y)
        library.fit()
        found = library.coefficients()
        verified = verify(X, y, parameters, found)
        support = np.unique(found.support[(found.values != 0).any(axis=0)])
        limits, seconds = [], []
        for _ in range(FITS):
            seconds.append(cpu_seconds(library))
            limits.append(measure_limit(X, parameters, support, verified.values, verified.free_by_pair, process_time))
            if limits[0].seconds < MIN_SECONDS and not wanted:
                break
        limit, fit = min(one.seconds for one in limits), min(seconds)
        if limit < MIN_SECONDS and not wanted:
            continue
        values = library.evaluations() / verified.values
        cells = f"{limit:.3g} s | {fit:.3g} s | {fit / limit:.2f} | {values:.2f}"
        print(f"| {case.name} | {group_of(case.name)} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
