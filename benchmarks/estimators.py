"""Fit times of the other kernel estimators and scikit-learn's: regression, ν-classification, novelty detection.

    python -m benchmarks.estimators --data ../shared/data

Default parameters, ν = 0.1 or half of the largest feasible value; both libraries alternate in one process, medians of
three. Regression predicts the first feature from the others. Tolerances are equal; the violation is certified.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn import svm

import maxmargin
from benchmarks.peers import loading


def sets(folder: Path):
    """Yield name, samples, labels of two classes and targets."""
    for name, (X, y) in {
        "covtype, 6,000 rows": loading.covtype(folder, 6000),
        "ijcnn1, 6,000 rows": tuple(part[:6000] for part in loading.libsvm_text(folder, "ijcnn1.libsvm.bz2")),
        "usps, 7,291 rows": loading.libsvm_text(folder, "usps.libsvm.xz"),
    }.items():
        X, y = loading.standardised((X, y))
        yield name, X, y == np.unique(y)[0], X[:, np.argmax(X.var(axis=0) > 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    ratios = []
    print("| data | estimator | scikit-learn | maxmargin | ratio | violation |")
    print("|---|---|---:|---:|---:|---:|")
    for name, X, labels, targets in sets(folder):
        minority = min(labels.mean(), 1 - labels.mean())
        for estimator, options, given, y in (
            ("SVR", {}, X[:, 1:], targets),
            ("NuSVR", {}, X[:, 1:], targets),
            ("NuSVC", {"nu": float(minority)}, X, labels),
            ("OneClassSVM", {"nu": 0.1}, X, None),
        ):
            times: dict[str, list[float]] = {"theirs": [], "ours": []}
            for _ in range(3):
                for who, module in (("theirs", svm), ("ours", maxmargin)):
                    model = getattr(module, estimator)(**options)
                    started = perf_counter()
                    model.fit(given, y)
                    times[who].append(perf_counter() - started)
            theirs, ours = np.median(times["theirs"]), np.median(times["ours"])
            ratios.append(theirs / ours)
            violation = model.certificate_.violation
            cells = (name, estimator, f"{theirs:.2f} s", f"{ours:.2f} s", f"{ratios[-1]:.1f}", f"{violation:.0e}")
            print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nGeometric mean of the ratios: {np.exp(np.mean(np.log(ratios))):.2f}.")


if __name__ == "__main__":
    main()
