"""The parameters of svm-train: options, defaults, checks, and the corresponding machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from maxmargin.cli.libsvm.program_options import Option, ProgramError, UsageError

#: Kernels by LIBSVM's number.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")

C_SVC, NU_SVC, ONE_CLASS, EPSILON_SVR, NU_SVR = range(5)

#: Number of values of each option.
OPTION_VALUES = {**dict.fromkeys("stdgrcnpmehbwv", 1), "q": 0}

#: Fields of options with a number, and of those with an integer.
NUMBER_FIELDS = {"g": "gamma", "r": "coef0", "c": "cost", "n": "nu", "p": "epsilon", "m": "cache", "e": "tolerance"}
INTEGER_FIELDS = {"s": "svm_type", "t": "kernel", "d": "degree", "h": "shrinking", "b": "probability", "v": "folds"}


@dataclass(frozen=True)
class SvmParameters:
    """The parameters of svm-train with their defaults.

    Attributes
    ----------
    svm_type, kernel : int
        LIBSVM's numbers.
    gamma : float
        0 means 1 / the largest index in the data.
    cache : float, optional
        Megabytes; the default of the machines if not given.
    weights : tuple of labels and factors
    folds : int, optional
        Number of folds of a cross-validation.
    """

    svm_type: int = C_SVC
    kernel: int = 2
    degree: int = 3
    gamma: float = 0.0
    coef0: float = 0.0
    cost: float = 1.0
    nu: float = 0.5
    epsilon: float = 0.1
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
        return self.svm_type in (C_SVC, NU_SVC)

    @property
    def regression(self) -> bool:
        """Whether labels are targets of a regression."""
        return self.svm_type in (EPSILON_SVR, NU_SVR)

    @property
    def precomputed(self) -> bool:
        """Whether the kernel is precomputed."""
        return self.kernel == KERNELS.index("precomputed")

    def check(self) -> None:
        """Raise the error of LIBSVM for invalid parameters."""
        for wrong, text in (
            (not 0 <= self.svm_type <= NU_SVR, "unknown svm type"),
            (not 0 <= self.kernel < len(KERNELS), "unknown kernel type"),
            (self.kernel in (1, 2, 3) and self.gamma < 0, "gamma < 0"),
            (self.kernel == 1 and self.degree < 0, "degree of polynomial kernel < 0"),
            (self.cache is not None and self.cache <= 0, "cache_size <= 0"),
            (self.tolerance <= 0, "eps <= 0"),
            (self.svm_type in (C_SVC, EPSILON_SVR, NU_SVR) and self.cost <= 0, "C <= 0"),
            (self.svm_type in (NU_SVC, ONE_CLASS, NU_SVR) and not 0 < self.nu <= 1, "nu <= 0 or nu > 1"),
            (self.svm_type == EPSILON_SVR and self.epsilon < 0, "p < 0"),
            (self.shrinking not in (0, 1), "shrinking != 0 and shrinking != 1"),
            (self.probability not in (0, 1), "probability != 0 and probability != 1"),
            (any(factor <= 0 for _, factor in self.weights), "weight of a class <= 0"),
        ):
            if wrong:
                raise ProgramError(f"ERROR: {text}")

    def gamma_for(self, max_index: int) -> float:
        """Return gamma for data with a largest index."""
        return self.gamma or (1.0 / max_index if max_index else 0.0)

    def machine(self, max_index: int, factors: dict[int, float] | None = None) -> Any:
        """Return the machine for data with a largest index; `factors` are class weights by class index."""
        common: dict[str, Any] = {
            "kernel": KERNELS[self.kernel],
            "degree": self.degree if self.kernel == 1 else 3,
            "gamma": self.gamma_for(max_index) if self.kernel in (1, 2, 3) else "auto",
            "coef0": self.coef0,
            "tol": self.tolerance,
            "cache_size": "auto" if self.cache is None else self.cache,
            "shrinking": bool(self.shrinking),
        }
        probability = bool(self.probability)
        # A program needs one machine, and imports only that.
        match self.svm_type:
            case 0:
                from maxmargin.machines.kernel.svc import SVC

                return SVC(C=self.cost, class_weight=factors or None, probability=probability, **common)
            case 1:
                from maxmargin.machines.kernel.nu_svc import NuSVC

                return NuSVC(nu=self.nu, probability=probability, **common)
            case 2:
                from maxmargin.machines.kernel.one_class_svm import OneClassSVM

                return OneClassSVM(nu=self.nu, probability=probability, **common)
            case 3:
                from maxmargin.machines.kernel.svr import SVR

                return SVR(C=self.cost, epsilon=self.epsilon, noise=probability, **common)
            case _:
                from maxmargin.machines.kernel.nu_svr import NuSVR

                return NuSVR(C=self.cost, nu=self.nu, noise=probability, **common)


def read_parameters(options: list[Option]) -> SvmParameters:
    """Return the parameters of options; the last one counts if an option is repeated."""
    parameters = SvmParameters()
    for option in options:
        if option.letter == "q":
            parameters = replace(parameters, quiet=True)
        elif option.letter == "w":
            weight = (label_of(option), option.number)
            parameters = replace(parameters, weights=(*parameters.weights, weight))
        elif option.letter in NUMBER_FIELDS:
            parameters = replace(parameters, **{NUMBER_FIELDS[option.letter]: option.number})  # type: ignore[arg-type]
        else:
            parameters = replace(parameters, **{INTEGER_FIELDS[option.letter]: option.integer})  # type: ignore[arg-type]
    if parameters.folds is not None and parameters.folds < 2:
        raise UsageError("n-fold cross validation: n must >= 2")
    return parameters


def label_of(option: Option) -> int:
    """Return the label of -wi."""
    try:
        return int(option.rest)
    except ValueError:
        raise ProgramError(f"ERROR: -w must be followed by a label without a blank, as in -w1 {option.value}") from None
