"""Seconds of fits and searches on a GPU that share samples or kernel values, and of those that do not.

    python -m benchmarks.gpu.sharing --data FOLDER [--rows 100000]

The data are the forest cover types. Four pairs: a fit of samples in host memory and of the same on the card; a grid of
C, γ and five folds with one table of the samples and with a copy for each trial; decision values of 45 pairs of ten
classes, fused and from stored kernel values; the product of a certificate in float64 and in pairs of float32, which is
for cards whose float64 is slow.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.peers import loading

#: Calls after a first one whose median counts.
REPEATS = 3

#: Rows of the grid search and of the model of ten classes, relative to those of the fit.
GRID_FRACTION, CLASSES_FRACTION = 0.1, 0.2


def seconds(call: Callable[[], Any]) -> float:
    """Return the median of some calls after a first one."""
    times = []
    for _ in range(REPEATS + 1):
        began = perf_counter()
        call()
        times.append(perf_counter() - began)
    return median(times[1:])


def report(what: str, first: float, other: float, difference: str) -> None:
    print(f"{what}: {first:.3f} s and {other:.3f} s; {difference}", flush=True)


def compare_fits(X: Any, y: Any, on_card: Any) -> None:
    """Print the times of a fit of samples on the card and in host memory."""
    from maxmargin import SVC

    models = [SVC(device="cuda"), SVC(device="cuda")]
    times = [
        seconds(lambda m=model, s=samples: m.fit(s, y)) for model, samples in zip(models, (on_card, X), strict=True)
    ]
    dual = [model.certificate_.dual for model in models]
    report("fit of samples on the card, in host memory", *times, f"dual objectives {dual[0]:.8g}, {dual[1]:.8g}")


def compare_searches(X: Any, y: Any) -> None:
    """Print the times of a grid with one table of the samples, and with a copy for each trial."""
    from maxmargin import SVC, grid_search

    found: list[Any] = []

    def search() -> None:
        grid = {"Cs": [0.1, 1.0, 10.0, 100.0], "gammas": [0.003, 0.018, 0.1], "folds": 5}
        found.append(grid_search(X, y, SVC(device="cuda"), **grid))

    shared = seconds(search)
    with patch("maxmargin.search.trial_threads.where_trained", lambda scorer: scorer):
        alone = seconds(search)
    means = ([one.mean for one in result.scores] for result in (found[0], found[-1]))
    difference = np.abs(np.subtract(*means)).max()
    report(
        f"60 fits of a grid, {len(X):,} rows: one table, copies", shared, alone, f"scores differ by {difference:.1e}"
    )


def compare_functions(X: Any) -> None:
    """Print the times of decision values of 45 pairs, fused and from stored values."""
    from maxmargin import SVC

    column = X[:, 0]
    classes = np.digitize(column, np.quantile(column, np.linspace(0.1, 0.9, 9)))
    rows = int(CLASSES_FRACTION * len(X))
    model = SVC(device="cuda", decision_function_shape="ovo").fit(X[:rows, 1:], classes[:rows])
    values: list[Any] = []
    fused = seconds(lambda: values.append(model.decision_function(X[:, 1:])))
    with patch("maxmargin.cuda.kernel_values.MAX_FUSED_WORK", 0):
        stored = seconds(lambda: values.append(model.decision_function(X[:, 1:])))
    difference = np.abs(values[0] - values[-1]).max()
    name = f"{len(X):,} decisions of 45 pairs, {len(model.support_):,} support vectors: fused, stored"
    report(name, fused, stored, f"values differ by {difference:.1e}")


def compare_sums(X: Any) -> None:
    """Print the times of a product with the kernel matrix in float64 and in pairs of float32."""
    from maxmargin.kernels import Gaussian, Points
    from maxmargin.kernels.split_sums import FeatureSums
    from maxmargin.matrices import KernelMatrix

    points, vector = Points(X), np.random.default_rng(0).normal(size=len(X))
    chosen = (FeatureSums.PRODUCTS, FeatureSums.SPLIT)
    double, split = (KernelMatrix(Gaussian(1.0 / X.shape[1]), points, 1, "cuda", sums) for sums in chosen)
    times = [seconds(lambda matrix=matrix: matrix.matvec(vector)) for matrix in (double, split)]
    difference = np.abs(double.matvec(vector) - split.matvec(vector)).max()
    bound = split.product_error(vector).double.max()
    report("product in float64, in pairs of float32", *times, f"difference {difference:.1e}, bound {bound:.1e}")


def main() -> None:
    import cupy

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the data set")
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    X, y = loading.standardised(loading.covtype(options.data, options.rows))
    compare_fits(X, y, cupy.asarray(X))
    rows = int(GRID_FRACTION * len(X))
    compare_searches(X[:rows], y[:rows])
    compare_functions(X)
    compare_sums(X)


if __name__ == "__main__":
    main()
