"""The parameters of LIBLINEAR's train: options, defaults, checks, and the corresponding machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from maxmargin.cli.libsvm.classes import Weights
from maxmargin.cli.libsvm.program_options import Option, ProgramError, UsageError
from maxmargin.cli.libsvm.svm_parameters import label_of

#: Number of values of each option.
OPTION_VALUES = {**dict.fromkeys("scpneBwv", 1), "q": 0, "C": 0, "R": 0}

#: Fields of options with a number.
NUMBER_FIELDS = {"c": "cost", "p": "epsilon", "n": "nu", "e": "tolerance", "B": "bias"}

#: Solver types of logistic regression, which maxmargin does not have.
LOGISTIC = (0, 6, 7)

#: Names of the other solver types in model files.
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

#: Solver types: Crammer-Singer multi-class, regression, one-class.
CRAMMER_SINGER, REGRESSION, ONE_CLASS = 4, (11, 12, 13), 21

#: What error messages say about the solver types.
AVAILABLE = (
    "the types that work are 1, 2 (squared hinge), 3 (hinge), 4 (Crammer-Singer), 5 (squared hinge, l1 penalty), "
    "11, 12 (squared epsilon-insensitive), 13 (epsilon-insensitive) and 21 (one class)"
)

#: LIBLINEAR's default tolerance of each solver type.
TOLERANCES = {1: 0.1, 2: 0.01, 3: 0.1, 4: 0.1, 5: 0.01, 11: 1e-4, 12: 0.1, 13: 0.1, 21: 0.01}

#: Default tolerance on the relative gap; it is scaled with -e relative to LIBLINEAR's default.
RELATIVE_GAP = 1e-4

#: Solver types that report the primal objective, and those that allow an unregularised bias (-R).
PRIMAL, FREE_BIAS = (2, 5, 11), (2, 5, 11)


@dataclass(frozen=True)
class LiblinearParameters:
    """The parameters of train with their defaults.

    Attributes
    ----------
    requested_type : int, optional
        LIBLINEAR's number of the solver type.
    tolerance, cost, epsilon : float, optional
    bias : float
        Value of the additional feature; negative for none.
    free_bias : bool
        Whether the bias is not regularised (-R).
    search : bool
        Whether to search for C (-C).
    """

    requested_type: int | None = None
    cost: float | None = None
    epsilon: float | None = None
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
        """The requested solver type, or the default."""
        return 1 if self.requested_type is None else self.requested_type

    @property
    def regression(self) -> bool:
        """Whether labels are targets of a regression."""
        return self.solver_type in REGRESSION

    @property
    def classifies(self) -> bool:
        """Whether labels are classes."""
        return not self.regression and self.solver_type != ONE_CLASS

    def check(self) -> None:
        """Raise the error of LIBLINEAR for invalid parameters."""
        kind = self.solver_type
        if kind in LOGISTIC:
            raise ProgramError(f"ERROR: -s {kind} is logistic regression, which maxmargin does not have; {AVAILABLE}")
        for wrong, text in (
            (self.tolerance is not None and self.tolerance <= 0, "eps <= 0"),
            (self.cost is not None and self.cost <= 0, "C <= 0"),
            (self.regression and self.epsilon is not None and self.epsilon < 0, "p < 0"),
            (self.bias >= 0 and kind == ONE_CLASS, "prob->bias >=0, but this is ignored in ONECLASS_SVM"),
            (self.free_bias and self.bias != 1, "To not regularize bias, must specify -B 1 along with -R"),
            (
                self.free_bias and kind not in FREE_BIAS,
                "-R option supported only for solver L2R_LR, L2R_L2LOSS_SVC, L1R_L2LOSS_SVC, L1R_LR, and "
                "L2R_L2LOSS_SVR",
            ),
            (kind not in TOLERANCES, f"unknown solver type {kind}; {AVAILABLE}"),
            (kind == ONE_CLASS and not 0 < self.nu <= 1, "nu <= 0 or nu > 1"),
            (any(factor <= 0 for _, factor in self.weights), "weight of a class <= 0"),
        ):
            if wrong:
                raise ProgramError(f"ERROR: {text}")

    def machine(self, factors: dict[int, float] | None = None) -> Any:
        """Return the machine; `factors` are class weights by class index."""
        from maxmargin.machines.linear import linear_one_class_svm, linear_svc, linear_svr

        kind = self.solver_type
        tolerance = RELATIVE_GAP * (1.0 if self.tolerance is None else self.tolerance / TOLERANCES[kind])
        if kind == ONE_CLASS:
            return linear_one_class_svm.LinearOneClassSVM(nu=self.nu, tol=tolerance)
        common: dict[str, Any] = {
            "C": 1.0 if self.cost is None else self.cost,
            "tol": tolerance,
            "fit_intercept": self.bias > 0,
            "intercept_scaling": None if self.free_bias or self.bias <= 0 else self.bias,
        }
        if self.regression:
            loss = "epsilon_insensitive" if kind == 13 else "squared_epsilon_insensitive"
            return linear_svr.LinearSVR(epsilon=0.1 if self.epsilon is None else self.epsilon, loss=loss, **common)
        return linear_svc.LinearSVC(
            penalty="l1" if kind == 5 else "l2",
            loss="hinge" if kind == 3 else "squared_hinge",
            multi_class="crammer_singer" if kind == CRAMMER_SINGER else "ovr",
            class_weight=factors or None,
            **common,
        )


def read_parameters(options: list[Option]) -> LiblinearParameters:
    """Return the parameters of options; the last one counts if an option is repeated."""
    parameters = LiblinearParameters()
    for option in options:
        if option.letter in NUMBER_FIELDS:
            parameters = replace(parameters, **{NUMBER_FIELDS[option.letter]: option.number})  # type: ignore[arg-type]
            continue
        match option.letter:
            case "s":
                parameters = replace(parameters, requested_type=option.integer)
            case "v":
                parameters = replace(parameters, folds=option.integer)
            case "w":
                parameters = replace(parameters, weights=(*parameters.weights, (label_of(option), option.number)))
            case "q":
                parameters = replace(parameters, quiet=True)
            case "C":
                parameters = replace(parameters, search=True)
            case _:
                parameters = replace(parameters, free_bias=True)
    return _check_combinations(parameters)


def _check_combinations(parameters: LiblinearParameters) -> LiblinearParameters:
    """Check combinations of options, and set the defaults of a search."""
    if parameters.folds is not None and parameters.folds < 2:
        raise UsageError("n-fold cross validation: n must >= 2")
    if not parameters.search:
        return parameters
    if parameters.requested_type is None:
        parameters = replace(parameters, requested_type=2)
    if parameters.requested_type not in (*LOGISTIC, 2, 11):
        raise UsageError("Warm-start parameter search only available for -s 2 and -s 11")
    return replace(parameters, folds=5 if parameters.folds is None else parameters.folds)
