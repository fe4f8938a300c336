"""The suite `small`: every machine with default parameters on data of 20 to 2,000 rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from sklearn import datasets

from benchmarks.peers import generated, loading
from benchmarks.peers.cases import Case
from benchmarks.peers.loading import Data, standardised

#: The machines, in the order of the table.
CLASSIFIERS, REGRESSORS = ("SVC", "NuSVC", "LinearSVC"), ("SVR", "NuSVR", "LinearSVR")
MACHINES = ("SVC", "NuSVC", "OneClassSVM", "SVR", "NuSVR", "LinearSVC", "LinearSVR")

#: Numbers of rows of the generated data.
SIZES = (20, 50, 200, 500, 2_000)
QUICK_SIZES = (50, 500)

#: Warm fits in each process.
REPEATS = 60


def small(folder: Path) -> list[Case]:
    """Return published data with the machines that fit them, and random data with all machines."""
    published = {**built_in(), **files(folder)}
    cases = [Case(name, load, repeats=REPEATS) for name, load in published.items()]
    others = {
        "NuSVC": ("heart", "german.numer", "fourclass", "wine"),
        "OneClassSVM": ("breast-cancer", "sonar", "digits"),
        "LinearSVC": ("iris", "heart", "splice", "digits"),
    }
    cases += [of_machine(name, published[name], m) for m, names in others.items() for name in names]
    targets = with_targets(folder)
    cases += [of_machine(name, load, m) for m in REGRESSORS for name, load in targets.items()]
    return [*cases, *random_data(SIZES)]


def small_quick(folder: Path) -> list[Case]:
    """Return all machines on random data of two sizes."""
    return random_data(QUICK_SIZES)


def random_data(sizes: tuple[int, ...]) -> list[Case]:
    """Return all machines on random data with eight features."""
    return [of_machine(f"random_{n}", partial(_random, n, machine), machine) for n in sizes for machine in MACHINES]


def of_machine(data: str, load: Callable[[], Data], machine: str) -> Case:
    """Return the case of a machine with default parameters; ε is 0 by default for a linear model."""
    epsilon = 0.0 if machine == "LinearSVR" else 0.1
    return Case(f"{data}_{machine}", load, machine=machine, epsilon=epsilon, repeats=REPEATS)


def built_in() -> dict[str, Callable[[], Data]]:
    """Return scikit-learn's data sets of several classes, standardised."""
    loaders = {
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
        "breast_cancer": datasets.load_breast_cancer,
        "digits": datasets.load_digits,
    }
    return {name: lambda load=load: standardised(load(return_X_y=True)) for name, load in loaders.items()}


def files(folder: Path) -> dict[str, Callable[[], Data]]:
    """Return the published files of two classes."""
    names = ("heart", "australian", "german.numer", "diabetes", "ionosphere", "sonar", "fourclass", "breast-cancer")
    scaled = {name: partial(loading.libsvm_text, folder, f"{name}_scale.libsvm") for name in names}
    return {**scaled, "splice": lambda: standardised(loading.libsvm_text(folder, "splice.libsvm"))}


def with_targets(folder: Path) -> dict[str, Callable[[], Data]]:
    """Return the data sets with targets."""
    return {
        "progression": lambda: datasets.load_diabetes(return_X_y=True),
        "housing": partial(loading.libsvm_text, folder, "housing_scale.libsvm"),
    }


def _random(count: int, machine: str) -> Data:
    X, labels, targets = generated.small_sample(count)
    return X, targets if machine in REGRESSORS else labels
