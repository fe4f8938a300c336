"""The suite `machines`: regression, ν-machines, one-class SVM, other kernels, classes of uneven size.

Half of the cases are published data, half generated data of the kinds in `generated`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.peers import generated, loading
from benchmarks.peers.cases import Case, cover, even_odd
from benchmarks.peers.loading import Data, standardised
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix

#: The cases of the quick suite: one of each machine and kernel, of a second or less.
QUICK = (
    "smooth_SVR_C1",
    "smooth_SVR_C10",
    "abalone_SVR_C1",
    "smooth_NuSVR",
    "low_dimensional_NuSVC",
    "covtype_OneClassSVM",
    "covtype_poly",
    "a9a_linear",
    "a9a_sigmoid",
    "mnist_precomputed",
    "uneven_classes",
    "abalone_28_classes",
    "six_classes",
    "noisy_physics",
    "few_support_vectors",
    "categorical",
)


def machines(folder: Path) -> list[Case]:
    """Return all cases, grouped by machine and kernel."""
    return [
        *regression(folder),
        *nu_machines(folder),
        *other_kernels(folder),
        *several_classes(folder),
        *two_classes(),
    ]


def machines_quick(folder: Path) -> list[Case]:
    """Return the cases that check a change in a few minutes."""
    by_name = {case.name: case for case in machines(folder)}
    return [by_name[name] for name in QUICK]


def regression(folder: Path) -> list[Case]:
    """Return ε- and ν-regression."""
    text = partial(loading.libsvm_text, folder)
    data = {
        "smooth": lambda: generated.smooth_targets(10_000),
        "abalone": lambda: standardised(text("abalone_scale.libsvm")),
        "cpusmall": lambda: standardised(text("cpusmall_scale.libsvm")),
        "housing": lambda: standardised(text("housing_scale.libsvm")),
    }
    often = {"housing": 10}
    cases = [
        Case(f"{name}_SVR_C{C:g}", load, C=C, machine="SVR", repeats=often.get(name, 1))
        for name, load in data.items()
        for C in (1.0, 10.0)
    ]
    narrow = Case("smooth_SVR_narrow", data["smooth"], C=10, gamma=0.5, machine="SVR")
    data["smooth"] = lambda: generated.smooth_targets(5_000)
    nu = [Case(f"{name}_NuSVR", load, machine="NuSVR", repeats=often.get(name, 1)) for name, load in data.items()]
    return [*cases, narrow, *nu]


def nu_machines(folder: Path) -> list[Case]:
    """Return ν-classification and the one-class SVM."""
    text = partial(loading.libsvm_text, folder)
    return [
        Case("low_dimensional_NuSVC", lambda: generated.low_dimensional(20_000), machine="NuSVC", nu=0.1),
        Case("covtype_NuSVC", lambda: cover(folder, 10_000), gamma=1 / 54, machine="NuSVC"),
        Case("mnist_NuSVC", lambda: even_odd(loading.mnist(folder, 6_000)), gamma=0.02, machine="NuSVC", nu=0.05),
        Case("splice_NuSVC", lambda: standardised(text("splice.libsvm", "splice.t.libsvm")), machine="NuSVC", nu=0.2),
        Case("covtype_OneClassSVM", lambda: cover(folder, 20_000), machine="OneClassSVM", nu=0.1),
        Case("mnist_OneClassSVM", lambda: loading.mnist(folder, 10_000), machine="OneClassSVM", nu=0.05),
        Case("smooth_OneClassSVM", lambda: generated.smooth_targets(20_000), machine="OneClassSVM"),
        Case("letter_OneClassSVM", lambda: text("letter.scale.libsvm"), machine="OneClassSVM", nu=0.2),
    ]


def other_kernels(folder: Path) -> list[Case]:
    """Return classification with the polynomial, linear, sigmoid and a precomputed kernel."""
    text = partial(loading.libsvm_text, folder)
    adult = lambda: first_rows(text("a9a.libsvm", features=123), 10_000)  # noqa: E731
    ijcnn = lambda: first_rows(text("ijcnn1.libsvm.bz2"), 20_000)  # noqa: E731
    usps = partial(text, "usps.libsvm.xz")
    return [
        Case("mnist_poly", lambda: loading.mnist(folder, 10_000), kernel="poly"),
        Case("covtype_poly", lambda: cover(folder, 10_000), gamma=1 / 54, kernel="poly", coef0=1.0),
        Case("usps_poly", usps, kernel="poly", degree=4, coef0=1.0, C=10),
        Case("a9a_linear", adult, kernel="linear"),
        Case("mnist_linear", lambda: loading.mnist(folder, 6_000), kernel="linear"),
        Case("covtype_linear", lambda: cover(folder, 5_000), kernel="linear"),
        Case("reuters_linear", lambda: text("lasvm_reuters.libsvm.bz2", dense=False), kernel="linear", C=10),
        Case("a9a_sigmoid", adult, gamma=1 / 123, kernel="sigmoid"),
        Case("ijcnn1_sigmoid", ijcnn, gamma=0.1, kernel="sigmoid"),
        Case("mnist_precomputed", lambda: kernel_matrix(loading.mnist(folder, 5_000), 0.02), C=10,
             kernel="precomputed"),
        Case("usps_precomputed", lambda: kernel_matrix(usps(), 1 / 128), C=10, kernel="precomputed"),
    ]  # fmt: skip


def several_classes(folder: Path) -> list[Case]:
    """Return several classes, of even and of very uneven size."""
    return [
        Case("uneven_classes", lambda: generated.uneven_classes(20_000), C=100),
        Case("abalone_28_classes", lambda: standardised(loading.libsvm_text(folder, "abalone_scale.libsvm"))),
        Case("six_classes", lambda: generated.several_classes(4_435)),
        Case("letter_26_classes", lambda: standardised(loading.libsvm_text(folder, "letter.scale.libsvm"))),
    ]


def two_classes() -> list[Case]:
    """Return generated data of two classes, of the kinds that users have."""
    return [
        Case("binary_features", lambda: generated.binary_features(20_000), C=8, gamma=1 / 300),
        Case("low_dimensional", lambda: generated.low_dimensional(20_000), C=4),
        Case("few_support_vectors", lambda: generated.few_support_vectors(20_000), C=10),
        Case("categorical", lambda: generated.categorical(11_055), C=4),
        Case("noisy_physics", lambda: generated.overlapping(15_000, 18, 0.3)),
        Case("noisier_physics", lambda: generated.overlapping(10_984, 28, 0.7)),
    ]


def first_rows(data: Data, count: int) -> Data:
    """Return the first rows of the data."""
    return data[0][:count], data[1][:count]


def kernel_matrix(data: Data, gamma: float) -> Data:
    """Return the Gaussian kernel matrix of the samples in place of the samples."""
    X, y = data
    every = np.arange(len(y))
    return KernelMatrix(Gaussian(gamma), Points(X), 1).block(every, every), y
