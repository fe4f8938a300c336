"""The parameters of LIBLINEAR's train: options, defaults, what it refuses, and the estimator they stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from maxmargin.cli.libsvm.classes import Weights
from maxmargin.cli.libsvm.option_words import Option, ProgramError, UsageError
from maxmargin.cli.libsvm.parameters import label_of

#: How many values each option has.
TAKES = {**dict.fromkeys("scpneBwv", 1), "q": 0, "C": 0, "R": 0}

#: The field of an option that is a number.
NUMBERS = {"c": "cost", "p": "tube", "n": "nu", "e": "tolerance", "B": "bias"}

#: The solver types that LIBLINEAR has and maxmargin has not: they are logistic regression.
LOGISTIC = (0, 6, 7)

#: What model files call the others.
SOLVER_TYPES = {
    1: "L2R_L2LOSS_SVC_DUAL",
    2: "L2R_L2LOSS_SVC",
    3: "L2R_L1LOSS_SVC_DUAL",
    4: "MCSVM_CS",
    5: "L1R_L2LOSS_SVC",
    11: "L2R_L2LOSS_SVR",
    12: "L2R_L2LOSS_SVR_DUAL",
    13: "L2R_L1LOSS_SVR_DUAL",
    21: "ONECLASS_SVM",
}

#: The one with a function for each of two classes, those whose labels are numbers, and the one without labels.
ALL_IN_ONE, REGRESSION, ONE_CLASS = 4, (11, 12, 13), 21

#: LIBLINEAR's own tolerance for each solver type.
TOLERANCES = {1: 0.1, 2: 0.01, 3: 0.1, 4: 0.1, 5: 0.01, 11: 1e-4, 12: 0.1, 13: 0.1, 21: 0.01}

#: What we prove by default: the gap as a part of the objective. It shrinks with -e as that does against its default.
RELATIVE_GAP = 1e-4

#: Solver types that report the primal value, and those of which the bias may be free of cost.
PRIMAL, FREE_BIAS = (2, 5, 11), (2, 5, 11)


@dataclass(frozen=True)
class LinearParameters:
    """What train can be told, with its defaults.

    Attributes
    ----------
    machine : int
        The solver type, by LIBLINEAR's number.
    tolerance, cost, tube : float, optional
        None if not given.
    bias : float
        Below 0 for none.
    free_bias : bool
        Whether the bias costs nothing (-R).
    search : bool
        Whether C is searched for (-C).
    """

    machine: int | None = None
    cost: float | None = None
    tube: float | None = None
    nu: float = 0.5
    tolerance: float | None = None
    bias: float = -1.0
    free_bias: bool = False
    weights: Weights = ()
    folds: int | None = None
    search: bool = False
    quiet: bool = False

    @property
    def solver_type(self) -> int:
        """The number, given or not."""
        return 1 if self.machine is None else self.machine

    @property
    def regression(self) -> bool:
        """Whether labels are numbers to come near to."""
        return self.solver_type in REGRESSION

    @property
    def classifies(self) -> bool:
        """Whether labels are classes."""
        return not self.regression and self.solver_type != ONE_CLASS

    def check(self) -> None:
        """Raise the error of LIBLINEAR, if there is one."""
        kind = self.solver_type
        if kind in LOGISTIC:
            raise ProgramError(
                f"ERROR: -s {kind} is logistic regression, which maxmargin does not train; "
                f"its solver types are {', '.join(map(str, TOLERANCES))}"
            )
        for wrong, text in (
            (self.tolerance is not None and self.tolerance <= 0, "eps <= 0"),
            (self.cost is not None and self.cost <= 0, "C <= 0"),
            (self.regression and self.tube is not None and self.tube < 0, "p < 0"),
            (self.bias >= 0 and kind == ONE_CLASS, "prob->bias >=0, but this is ignored in ONECLASS_SVM"),
            (self.free_bias and self.bias != 1, "To not regularize bias, must specify -B 1 along with -R"),
            (
                self.free_bias and kind not in FREE_BIAS,
                "-R option supported only for solver L2R_LR, L2R_L2LOSS_SVC, L1R_L2LOSS_SVC, L1R_LR, and "
                "L2R_L2LOSS_SVR",
            ),
            (kind not in TOLERANCES, "unknown solver type"),
            (kind == ONE_CLASS and not 0 < self.nu <= 1, "nu <= 0 or nu > 1"),
            (any(factor <= 0 for _, factor in self.weights), "weight of a class <= 0"),
        ):
            if wrong:
                raise ProgramError(f"ERROR: {text}")

    def estimator(self, factors: dict[int, float] | None = None) -> Any:
        """Return the estimator; `factors` are weights of classes by their number."""
        from maxmargin.estimators import LinearOneClassSVM, LinearSVC, LinearSVR

        kind = self.solver_type
        tolerance = RELATIVE_GAP * (1.0 if self.tolerance is None else self.tolerance / TOLERANCES[kind])
        if kind == ONE_CLASS:
            return LinearOneClassSVM(nu=self.nu, tol=tolerance)
        common: dict[str, Any] = {
            "C": 1.0 if self.cost is None else self.cost,
            "tol": tolerance,
            "fit_intercept": self.bias > 0,
            "intercept_scaling": None if self.free_bias or self.bias <= 0 else self.bias,
        }
        if self.regression:
            loss = "epsilon_insensitive" if kind == 13 else "squared_epsilon_insensitive"
            return LinearSVR(epsilon=0.1 if self.tube is None else self.tube, loss=loss, **common)
        return LinearSVC(
            penalty="l1" if kind == 5 else "l2",
            loss="hinge" if kind == 3 else "squared_hinge",
            multi_class="crammer_singer" if kind == ALL_IN_ONE else "ovr",
            class_weight=factors or None,
            **common,
        )


def read_parameters(options: list[Option]) -> LinearParameters:
    """Return the parameters that options stand for; of an option given twice the last counts."""
    parameters = LinearParameters()
    for option in options:
        if option.letter in NUMBERS:
            parameters = replace(parameters, **{NUMBERS[option.letter]: option.number})  # type: ignore[arg-type]
            continue
        match option.letter:
            case "s":
                parameters = replace(parameters, machine=option.whole)
            case "v":
                parameters = replace(parameters, folds=option.whole)
            case "w":
                parameters = replace(parameters, weights=(*parameters.weights, (label_of(option), option.number)))
            case "q":
                parameters = replace(parameters, quiet=True)
            case "C":
                parameters = replace(parameters, search=True)
            case _:
                parameters = replace(parameters, free_bias=True)
    return _settle(parameters)


def _settle(parameters: LinearParameters) -> LinearParameters:
    """Return the parameters after the rules about several of them."""
    if parameters.folds is not None and parameters.folds < 2:
        raise UsageError("n-fold cross validation: n must >= 2")
    if not parameters.search:
        return parameters
    if parameters.machine is None:
        parameters = replace(parameters, machine=2)
    if parameters.machine not in (0, 2, 11):
        raise UsageError("Warm-start parameter search only available for -s 0, -s 2 and -s 11")
    return replace(parameters, folds=5 if parameters.folds is None else parameters.folds)
