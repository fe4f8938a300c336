"""The parameters of svm-train: options, defaults, what LIBSVM refuses, and the estimator they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from maxmargin.cli.libsvm.option_words import Option, ProgramError, UsageError

#: The kernels by LIBSVM's number.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")

C_SVC, NU_SVC, ONE_CLASS, EPSILON_SVR, NU_SVR = range(5)

#: How many values each option has.
TAKES = {**dict.fromkeys("stdgrcnpmehbwv", 1), "q": 0}

#: The field of an option that is a number, and of one that is a whole number.
NUMBERS = {"g": "gamma", "r": "coef0", "c": "cost", "n": "nu", "p": "tube", "m": "cache", "e": "tolerance"}
WHOLE = {"s": "machine", "t": "kernel", "d": "degree", "h": "shrinking", "b": "probability", "v": "folds"}


@dataclass(frozen=True)
class Parameters:
    """What svm-train can be told, with its defaults.

    Attributes
    ----------
    machine, kernel : int
        By LIBSVM's numbers.
    gamma : float
        0 is one by the largest index in the data.
    cache : float, optional
        Megabytes; if it is not given, it is the estimators' choice.
    weights : tuple of labels and factors
    folds : int, optional
        For cross-validation.
    """

    machine: int = C_SVC
    kernel: int = 2
    degree: int = 3
    gamma: float = 0.0
    coef0: float = 0.0
    cost: float = 1.0
    nu: float = 0.5
    tube: float = 0.1
    cache: float | None = None
    tolerance: float = 1e-3
    shrinking: int = 1
    probability: int = 0
    weights: tuple[tuple[int, float], ...] = ()
    folds: int | None = None
    quiet: bool = False

    @property
    def classifies(self) -> bool:
        """Whether labels are classes."""
        return self.machine in (C_SVC, NU_SVC)

    @property
    def regression(self) -> bool:
        """Whether labels are numbers to come near to."""
        return self.machine in (EPSILON_SVR, NU_SVR)

    @property
    def precomputed(self) -> bool:
        """Whether the data are kernel values."""
        return self.kernel == KERNELS.index("precomputed")

    def check(self) -> None:
        """Raise the error of LIBSVM, if there is one."""
        for wrong, text in (
            (not 0 <= self.machine <= NU_SVR, "unknown svm type"),
            (not 0 <= self.kernel < len(KERNELS), "unknown kernel type"),
            (self.kernel in (1, 2, 3) and self.gamma < 0, "gamma < 0"),
            (self.kernel == 1 and self.degree < 0, "degree of polynomial kernel < 0"),
            (self.cache is not None and self.cache <= 0, "cache_size <= 0"),
            (self.tolerance <= 0, "eps <= 0"),
            (self.machine in (C_SVC, EPSILON_SVR, NU_SVR) and self.cost <= 0, "C <= 0"),
            (self.machine in (NU_SVC, ONE_CLASS, NU_SVR) and not 0 < self.nu <= 1, "nu <= 0 or nu > 1"),
            (self.machine == EPSILON_SVR and self.tube < 0, "p < 0"),
            (self.shrinking not in (0, 1), "shrinking != 0 and shrinking != 1"),
            (self.probability not in (0, 1), "probability != 0 and probability != 1"),
            (any(factor <= 0 for _, factor in self.weights), "weight of a class <= 0"),
        ):
            if wrong:
                raise ProgramError(f"ERROR: {text}")

    def gamma_for(self, max_index: int) -> float:
        """Return gamma for data of so many features."""
        return self.gamma or (1.0 / max_index if max_index else 0.0)

    def estimator(self, max_index: int, factors: dict[int, float] | None = None) -> Any:
        """Return the estimator for data of so many features; `factors` are weights of classes by their number."""
        from maxmargin.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM

        common: dict[str, Any] = {
            "kernel": KERNELS[self.kernel],
            "degree": self.degree if self.kernel == 1 else 3,
            "gamma": self.gamma_for(max_index) if self.kernel in (1, 2, 3) else "auto",
            "coef0": self.coef0,
            "tol": self.tolerance,
            "cache_size": "auto" if self.cache is None else self.cache,
            "shrinking": bool(self.shrinking),
        }
        uncertain = bool(self.probability)
        match self.machine:
            case 0:
                return SVC(C=self.cost, class_weight=factors or None, probability=uncertain, **common)
            case 1:
                return NuSVC(nu=self.nu, probability=uncertain, **common)
            case 2:
                return OneClassSVM(nu=self.nu, probability=uncertain, **common)
            case 3:
                return SVR(C=self.cost, epsilon=self.tube, noise=uncertain, **common)
            case _:
                return NuSVR(C=self.cost, nu=self.nu, noise=uncertain, **common)


def read_parameters(options: list[Option]) -> Parameters:
    """Return the parameters that options stand for; of an option given twice the last counts."""
    parameters = Parameters()
    for option in options:
        if option.letter == "q":
            parameters = replace(parameters, quiet=True)
        elif option.letter == "w":
            weight = (label_of(option), option.number)
            parameters = replace(parameters, weights=(*parameters.weights, weight))
        elif option.letter in NUMBERS:
            parameters = replace(parameters, **{NUMBERS[option.letter]: option.number})  # type: ignore[arg-type]
        else:
            parameters = replace(parameters, **{WHOLE[option.letter]: option.whole})  # type: ignore[arg-type]
    if parameters.folds is not None and parameters.folds < 2:
        raise UsageError("n-fold cross validation: n must >= 2")
    return parameters


def label_of(option: Option) -> int:
    """Return the label of -wi."""
    try:
        return int(option.rest)
    except ValueError:
        raise ProgramError(f"ERROR: -w must be followed by a label at once, as in -w1 {option.value}") from None
