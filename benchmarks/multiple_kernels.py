"""Multiple kernel learning: time against single fits, and accuracy beside MKLpy's EasyMKL.

    python -m benchmarks.multiple_kernels --data FOLDER [--repetitions 5]

The first table is of 50 kernels on 2,000 generated samples: 20 Gaussian kernels of all features with γ at ratios of 2,
and 30 of eight features each, at random. Times are processor seconds of one thread, medians; "single" is `SVC` with one
Gaussian kernel, "sum" is `SVC` with the mean of the 50 kernels, which evaluates them all.

The second one is the test accuracy on halves of sets of `FOLDER`: a linear kernel and Gaussians with γ of 2⁻⁶ to 2⁶
times "scale", and one for each feature. C of `MKLSVC`, and λ of EasyMKL with C of its `SVC`, are chosen by five folds
of the training half. EasyMKL is skipped if MKLpy is not installed (``pip install MKLpy torch cvxopt``).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split

from maxmargin import MKLSVC, SVC
from maxmargin.datasets import load_libsvm
from maxmargin.kernels import Combination, Kernel

FILES = {"sonar": "sonar_scale.libsvm", "ionosphere": "ionosphere_scale.libsvm", "heart": "heart_scale.libsvm"}

KERNELS = ["linear", {"gamma_factors": [2.0**k for k in range(-6, 7, 2)]}, {"features": "each"}]
COSTS = [0.1, 1.0, 10.0, 100.0]
LAMBDAS = [0.0, 0.1, 0.5, 0.9]


def seconds(model: Any, X: Any, y: Any, repetitions: int) -> float:
    """Fit the model and return the median processor time."""
    times = []
    for _ in range(repetitions):
        began = process_time()
        model.fit(X, y)
        times.append(process_time() - began)
    return float(np.median(times))


def print_times(repetitions: int) -> None:
    """Print the times of 50 kernels on 2,000 samples."""
    print("features  C   single     sum    p = 1  kernels  changes    p = 2  changes  p = 1 / single  p = 1 / sum")
    for features in (10, 40, 100):
        X, y = make_classification(2000, features, n_informative=8, flip_y=0.05, random_state=0)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        random = np.random.default_rng(0)
        groups = [random.choice(features, 8, replace=False).tolist() for _ in range(30)]
        kernels = [{"gamma_factors": [2.0**k for k in range(-10, 10)]}, {"features": groups}]
        for cost in (1.0, 10.0):
            one, two = (MKLSVC(kernels, C=cost, norm=norm, n_jobs=1) for norm in (1.0, 2.0))
            single = seconds(SVC(C=cost, n_jobs=1), X, y, repetitions)
            first, second = seconds(one, X, y, repetitions), seconds(two, X, y, 1)
            mean = Combination(tuple(one.kernels_), (1.0 / 50,) * 50)
            total = seconds(SVC(C=cost, kernel=mean, n_jobs=1), X, y, repetitions)
            used = int(np.count_nonzero(one.kernel_weights_))
            print(
                f"{features:8} {cost:2.0f} {single:8.3f} {total:7.3f} {first:8.3f} {used:8} {one.n_iter_:8} "
                f"{second:8.3f} {two.n_iter_:8} {first / single:15.1f} {first / total:12.2f}", flush=True
            )  # fmt: skip


def halves(folder: Path, name: str, seed: int) -> list[Any]:
    """Return training and test samples, and labels of both."""
    X, y = load_libsvm(folder / FILES[name])[:2]
    X = X.toarray() if sparse.issparse(X) else X
    halved: list[Any] = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    return halved


def chosen(model: Any, X: Any, y: Any, parameters: dict[str, Any]) -> Any:
    """Return the model with the parameters that five folds choose."""
    return GridSearchCV(model, parameters, cv=StratifiedKFold(5)).fit(X, y).best_estimator_


def easy_mkl(kernels: list[Kernel], X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, float]:
    """Return test accuracy and training time of EasyMKL with the parameters that five folds choose."""
    from MKLpy.algorithms import EasyMKL
    from MKLpy.model_selection import cross_val_score
    from sklearn import svm

    tables, tests = ([kernel(left, X) for kernel in kernels] for left in (X, X_test))

    def model(lam: float, cost: float) -> Any:
        return EasyMKL(lam=lam, learner=svm.SVC(kernel="precomputed", C=cost))

    scores = {
        (lam, cost): np.mean(
            cross_val_score(tables, y, model(lam, cost), n_folds=5, scoring="accuracy", random_state=0)
        )
        for lam in LAMBDAS for cost in COSTS
    }  # fmt: skip
    best = max(scores, key=lambda key: scores[key])
    began = process_time()
    fitted = model(*best).fit(tables, y)
    spent = process_time() - began
    return float(np.mean(np.asarray(fitted.predict(tests)) == y_test)), spent


def print_accuracies(folder: Path, repetitions: int) -> None:
    """Print the test accuracy of all methods."""
    try:
        import MKLpy.algorithms  # noqa: F401  # needs torch
    except ImportError as error:
        print(f"without EasyMKL: {error}")
        easy = False
    else:
        easy = True
    print("set         kernels      SVC  MKLSVC p = 1    p = 2  EasyMKL   seconds: p = 1    p = 2  EasyMKL")
    for name in FILES:
        rows = []
        for seed in range(repetitions):
            X, X_test, y, y_test = halves(folder, name, seed)
            row = [chosen(SVC(), X, y, {"C": COSTS}).score(X_test, y_test)]
            times = []
            for norm in (1.0, 2.0):
                model = chosen(MKLSVC(KERNELS, norm=norm), X, y, {"C": COSTS})
                times.append(seconds(model, X, y, 1))
                row.append(model.score(X_test, y_test))
            accuracy, spent = easy_mkl(model.kernels_, X, y, X_test, y_test) if easy else (np.nan, np.nan)
            rows.append([*row, accuracy, *times, spent])
            count = len(model.kernels_)
        means = np.mean(rows, axis=0)
        print(
            f"{name:11} {count:7} {means[0]:8.1%} {means[1]:13.1%} {means[2]:8.1%} {means[3]:8.1%} "
            f"{means[4]:16.3f} {means[5]:8.3f} {means[6]:8.3f}", flush=True
        )  # fmt: skip


def main() -> None:
    """Parse the command line and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print_times(options.repetitions)
    if options.data is not None:
        print_accuracies(options.data, options.repetitions)


if __name__ == "__main__":
    main()
