"""Fit time and log loss with probabilities, compared with scikit-learn.

    python -m benchmarks.probability --data FOLDER

A random half of the rows is for training, the other for the log loss; default parameters except C. Times are relative
to a fit without probabilities: ``probability=True``, ``CalibratedClassifierCV(SVC(), ensemble=False)`` around our SVC
and scikit-learn's, and scikit-learn's own ``SVC(probability=True)`` where it still exists. Fits alternate in one
process; medians.
"""

from __future__ import annotations

import argparse
import inspect
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss

import maxmargin
from benchmarks.peers import loading


def sets(folder: Path):
    """Yield name, samples and labels."""
    yield "breast cancer", *loading.standardised(load_breast_cancer(return_X_y=True))
    yield "digits", *loading.standardised(load_digits(return_X_y=True))
    yield "german", *loading.standardised(loading.libsvm_text(folder, "german.numer_scale.libsvm"))
    yield "banana", *loading.banana(folder)
    yield "svmguide1", *loading.standardised(loading.libsvm_text(folder, "svmguide1.libsvm", "svmguide1.t.libsvm"))
    yield "ijcnn1", *(part[:12000] for part in loading.libsvm_text(folder, "ijcnn1.libsvm.bz2"))
    yield "covtype", *loading.standardised(loading.covtype(folder, 12000))
    yield "a9a", *(part[:12000] for part in loading.libsvm_text(folder, "a9a.libsvm"))
    yield "usps", *loading.libsvm_text(folder, "usps.libsvm.xz")


def estimators(C: float):
    """Return estimators by name, the first without probabilities."""
    named = {
        "plain": maxmargin.SVC(C=C),
        "ours": maxmargin.SVC(C=C, probability=True),
        "calibrated ours": CalibratedClassifierCV(maxmargin.SVC(C=C), ensemble=False),
        "calibrated theirs": CalibratedClassifierCV(svm.SVC(C=C), ensemble=False),
    }
    if "probability" in inspect.signature(svm.SVC).parameters:
        named["theirs"] = svm.SVC(C=C, probability=True, random_state=0)
    return named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--costs", type=float, nargs="+", default=[1.0, 10.0])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)  # scikit-learn deprecates `probability`
    ratios = []
    names = list(estimators(1.0))[1:]
    print(f"| data | C | without | {' | '.join(f'{name}: time, log loss' for name in names)} |")
    print("|---|---:|---:|" + "---:|" * len(names))
    for data, X, y in sets(arguments.data):
        order = np.random.default_rng(0).permutation(len(y))  # some files are sorted by time
        X, y = X[order], np.unique(y, return_inverse=True)[1][order]
        for C in arguments.costs:
            times: dict[str, list[float]] = {}
            losses: dict[str, float] = {}
            for _ in range(arguments.runs):
                for name, model in estimators(C).items():
                    started = perf_counter()
                    model.fit(X[::2], y[::2])
                    times.setdefault(name, []).append(perf_counter() - started)
                    if name != "plain" and name not in losses:
                        losses[name] = log_loss(y[1::2], model.predict_proba(X[1::2]))
            medians = {name: float(np.median(seconds)) for name, seconds in times.items()}
            ratios.append(medians["ours"] / medians["plain"])
            cells = [f"{medians[name] / medians['plain']:.1f} ×, {losses[name]:.3f}" for name in names]
            size = f"{data}, {len(X[::2]):,} x {X.shape[1]}"
            print(f"| {size} | {C:g} | {medians['plain'] * 1e3:.0f} ms | {' | '.join(cells)} |", flush=True)
    mean = np.exp(np.mean(np.log(ratios)))
    print(f"\nTime with probabilities / time without: geometric mean {mean:.1f}, maximum {max(ratios):.1f}.")


if __name__ == "__main__":
    main()
