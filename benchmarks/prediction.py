"""Prediction times of maxmargin and scikit-learn: 20,000 samples, 5,000 support vectors, all usable cores.

    python -m benchmarks.prediction

Both predict with the same support vectors and coefficients; runs alternate in one process; medians.
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from sklearn import svm
from sklearn.datasets import make_classification

import maxmargin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--support", type=int, default=5_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print("| features | support vectors | scikit-learn | maxmargin | ratio | largest difference |")
    print("|---:|---:|---:|---:|---:|---:|")
    for features in (20, 100):
        X, y = make_classification(
            options.support, features, n_informative=8, n_redundant=0, flip_y=0.5, random_state=0
        )
        theirs = svm.SVC(C=0.1, cache_size=1000).fit(X, y)
        ours = maxmargin.SVC(C=0.1).fit(X, y)
        Z = np.random.default_rng(0).normal(size=(options.samples, features))
        times: dict[str, list[float]] = {"theirs": [], "ours": []}
        for _ in range(options.runs):
            for name, model in (("theirs", theirs), ("ours", ours)):
                started = perf_counter()
                values = model.decision_function(Z)
                times[name].append(perf_counter() - started)
                if name == "theirs":
                    expected = values
        slow, quick = float(np.median(times["theirs"])), float(np.median(times["ours"]))
        difference = np.abs(values - expected).max()
        figures = f"{slow:.2f} s | {quick:.3f} s | {slow / quick:.1f} | {difference:.1e}"
        print(f"| {features} | {len(ours.support_)} | {figures} |")


if __name__ == "__main__":
    main()
