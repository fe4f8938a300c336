"""Slowly converging problems: unscaled columns and large costs, compared with scikit-learn under an iteration limit.

    python -m benchmarks.hard_fits

Both solutions are verified by the same certificate: scikit-learn's coefficients are a point of our dual problem.
"""

from __future__ import annotations

import warnings
from time import perf_counter

import numpy as np
from sklearn import svm
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin.datasets import chessboard
from maxmargin.formulations.c_classification import pose
from maxmargin.kernels import Gaussian, Linear, Points
from maxmargin.matrices import KernelMatrix

MAX_ITERATIONS = 10_000_000


def cases():
    linear = {"kernel": "linear", "C": 1.0}
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer, not scaled, linear, C = 1", X, y, linear, Linear()
    yield "breast cancer, not scaled, linear, C = 100", X, y, {**linear, "C": 100.0}, Linear()
    X, y = make_classification(1000, 5, n_redundant=0, flip_y=0.3, random_state=0)
    yield (
        "two clouds, 1000 x 5, columns times 1000, linear, C = 1",
        X * 1000,
        y,
        {"kernel": "linear", "C": 1.0},
        Linear(),
    )
    X, y = chessboard(2000)
    for cost in (1e4, 1e6):
        yield f"chessboard, n = 2000, γ = 0.5, C = {cost:.0e}", X, y, {"gamma": 0.5, "C": cost}, Gaussian(0.5)


def main() -> None:
    print("| data | scikit-learn: seconds | steps | violation | maxmargin: seconds | steps | violation |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, X, y, options, kernel in cases():
        started = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            theirs = svm.SVC(max_iter=MAX_ITERATIONS, **options).fit(X, y)
        their_seconds = perf_counter() - started
        problem = pose(KernelMatrix(kernel, Points(X)), np.where(y == 1, 1.0, -1.0), np.full(len(y), options["C"]))
        dual = np.zeros(len(y))
        dual[theirs.support_] = theirs.dual_coef_[0]
        started = perf_counter()
        ours = maxmargin.SVC(**options).fit(X, y)
        our_seconds = perf_counter() - started
        cells = [
            f"{their_seconds:.2f} | {theirs.n_iter_[0]:,} | {maxmargin.certify(problem, dual).violation:.1e}",
            f"{our_seconds:.2f} | {ours.n_iter_[0]:,} | {ours.certificate_.violation:.1e}",
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
