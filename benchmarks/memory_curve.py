"""Time and kernel evaluations against the size of the row cache.

    python -m benchmarks.memory_curve [--samples 8000] [--output curve.png]

The same fit with a cache for all rows of support vectors down to a hundredth of them. The time must grow gradually, and
the certificate must hold for every size.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from sklearn.datasets import make_classification

from maxmargin import SVC

RUNS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("--output", help="save a plot to this file")
    options = parser.parse_args()
    X, y = make_classification(options.samples, 150, n_informative=60, n_redundant=0, flip_y=0.02, random_state=0)
    support = len(SVC(C=10).fit(X, y).support_)
    whole = 4e-6 * options.samples * support
    print(f"{options.samples} samples, {support} support vectors: all their rows take {whole:.0f} MB\n")
    print("| cache, fraction of all rows | MB | seconds | kernel values / (n S) | rounds | violation |")
    print("|---:|---:|---:|---:|---:|---:|")
    shares = [2.0, 1.0, 0.5, 0.3, 0.1, 0.03, 0.01]
    models = [SVC(C=10, cache_size=share * whole) for share in shares]
    seconds = np.empty((RUNS, len(shares)))
    for run in range(RUNS):  # the sizes alternate
        for k, model in enumerate(models):
            started = perf_counter()
            model.fit(X, y)
            seconds[run, k] = perf_counter() - started
    times = np.median(seconds, axis=0).tolist()
    for share, model, time in zip(shares, models, times, strict=True):
        counters = model._models_[0].counters
        values = counters.kernel_evaluations / (options.samples * support)
        print(
            f"| {share:g} | {share * whole:.0f} | {time:.2f} | {values:.1f} | {counters.rounds} "
            f"| {model.certificate_.violation:.1e} |"
        )
    if options.output:
        draw(shares, times, options.output)


def draw(shares: list[float], times: list[float], output: str) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.semilogx(shares, times, "o-", color="#0072b2")
    axes.set_ylim(bottom=0.0)
    axes.set(
        xlabel="memory for rows, as a fraction of all rows of support vectors", ylabel="seconds", title="Smaller cache"
    )
    axes.grid(True, which="both", alpha=0.3)
    figure.savefig(output, dpi=150)


if __name__ == "__main__":
    main()
