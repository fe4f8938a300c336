"""The cases of C-classification with the RBF kernel, in suites: kernel, large, growth, quick.

A suite is a function of the data folder; nothing is read before a case is loaded. `machine_cases` and `small_cases`
define the suites of the other machines and kernels, `suites` lists all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets

from benchmarks.peers import loading
from benchmarks.peers.loading import Data, standardised

#: Numbers of rows of the growth suite.
GROWTH = (2_000, 5_000, 10_000, 20_000, 40_000, 80_000)


@dataclass(frozen=True)
class Case:
    """A data set, a machine and the parameters of its fit.

    Attributes
    ----------
    name : str
        Without blanks, as in `--cases`; it starts with the name of the data.
    load : function without arguments
        Returns samples and labels or targets; with `kernel="precomputed"`, the samples are the kernel matrix.
    gamma : float or "scale"
        "scale" is 1 / (features · variance of X), computed once for all libraries.
    repeats : int
        Warm fits in each process, after the first fit; their median counts.
    max_seconds : float, optional
        A smaller time limit than that of the benchmark, where peers are known to be slow.
    machine : str
        The name of the estimator in scikit-learn.
    """

    name: str
    load: Callable[[], Data]
    C: float = 1.0
    gamma: float | str = "scale"
    repeats: int = 1
    max_seconds: float | None = None
    machine: str = "SVC"
    kernel: str = "rbf"
    degree: int = 3
    coef0: float = 0.0
    nu: float = 0.5
    epsilon: float = 0.1


def width(gamma: float | str, X: Any) -> float:
    """Return the numeric value of `gamma`."""
    if not isinstance(gamma, str):
        return float(gamma)
    variance = X.var() if isinstance(X, np.ndarray) else X.multiply(X).mean() - X.mean() ** 2
    return float(1.0 / (X.shape[1] * variance))


def kernel(folder: Path) -> list[Case]:
    """Return data sets of the literature: 3,000 to 50,000 rows, easy and hard parameters."""
    text = partial(loading.libsvm_text, folder)
    return [
        Case("a9a", lambda: text("a9a.libsvm", features=123), gamma=1 / 123),
        Case("ijcnn1", lambda: text("ijcnn1.libsvm.bz2"), C=32, gamma=2.0),
        Case("usps", lambda: text("usps.libsvm.xz"), C=10, gamma=1 / 128),
        Case("letter", lambda: text("letter.scale.libsvm"), C=10, gamma=4.0),
        Case("mnist_10k", lambda: loading.mnist(folder, 10_000), C=10, gamma=0.02),
        Case("mnist_even_odd", lambda: even_odd(loading.mnist(folder, 20_000)), C=10, gamma=0.02),
        Case("covtype_20k", lambda: cover(folder, 20_000), gamma=1 / 54),
        Case("covtype_20k_narrow", lambda: cover(folder, 20_000), C=10, gamma=1.0),
        Case("covtype_50k", lambda: cover(folder, 50_000), gamma=1 / 54),
        Case("splice", lambda: standardised(text("splice.libsvm", "splice.t.libsvm")), gamma=1 / 60),
        Case("mushrooms", lambda: text("mushrooms.libsvm"), gamma=1 / 112),
        Case("reuters", lambda: text("lasvm_reuters.libsvm.bz2", dense=False), gamma=1.0),
        *(Case(f"chessboard_1e{power}", _chessboard, C=10.0**power, gamma=0.5) for power in (3, 4, 5, 6)),
        Case("banana", lambda: loading.banana(folder), C=316, gamma=0.5),
        Case("unscaled", lambda: loading.covtype(folder, 5_000)),
        Case("duplicated", lambda: _repeated(cover(folder, 5_000), 4), gamma=1 / 54),
        Case("synthetic_200", lambda: _synthetic(20_000, 200), gamma=1 / 200),
        Case("synthetic_20", lambda: _synthetic(20_000, 20), C=10, gamma=1 / 20),
    ]


def large(folder: Path) -> list[Case]:
    """Return cases of 60,000 rows and more."""
    return [
        Case("covtype_100k", lambda: cover(folder, 100_000), gamma=1 / 54),
        Case("mnist_60k", lambda: loading.mnist(folder, 60_000), C=10, gamma=0.02),
    ]


def growth(folder: Path) -> list[Case]:
    """Return one data set with increasing numbers of rows; larger samples contain smaller ones."""
    return [Case(f"covtype_{n}", lambda n=n: cover(folder, n), gamma=1 / 54) for n in GROWTH]


def quick(folder: Path) -> list[Case]:
    """Return tiny generated cases as a smoke test: two classes, three classes, sparse rows."""
    return [
        Case("clouds", lambda: _synthetic(300, 8), C=1.0),
        Case("iris", lambda: standardised(datasets.load_iris(return_X_y=True)), C=10.0, gamma=0.1, repeats=3),
        Case("sparse", _sparse_clouds, C=1.0, gamma=0.5),
    ]


def cover(folder: Path, count: int) -> Data:
    """Return standardised rows of the forest cover types."""
    return standardised(loading.covtype(folder, count))


def even_odd(data: Data) -> Data:
    """Return the data with the classes even and odd."""
    return data[0], data[1] % 2


def _repeated(data: Data, times: int) -> Data:
    return np.tile(data[0], (times, 1)), np.tile(data[1], times)


def _chessboard() -> Data:
    from maxmargin.datasets import chessboard

    return chessboard(5_000)


def _synthetic(count: int, features: int) -> Data:
    return standardised(
        datasets.make_classification(
            count, features, n_informative=features // 2, flip_y=0.05, class_sep=0.5, random_state=0
        )
    )


def _sparse_clouds() -> Data:
    from scipy import sparse

    X, y = _synthetic(200, 20)
    return sparse.csr_matrix(np.where(np.abs(X) > 0.8, X, 0.0)), y
