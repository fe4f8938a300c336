"""Command line options of estimators: which estimator to train, with which parameters.

An option that is not given is None, and the default of the estimator applies. An option that an estimator does not
have is an error that lists the estimators which have it.
"""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.datasets.samples import Samples, are_classes


class EstimatorKind(NamedTuple):
    """Class name and task of an estimator."""

    class_name: str
    task: str


#: The estimators by their names on the command line.
ESTIMATORS: dict[str, EstimatorKind] = {
    "svc": EstimatorKind("SVC", "classification"),
    "nu-svc": EstimatorKind("NuSVC", "classification"),
    "ls-svc": EstimatorKind("LSSVC", "classification"),
    "linear-svc": EstimatorKind("LinearSVC", "classification"),
    "approximate-svc": EstimatorKind("KernelApproximationSVC", "classification"),
    "transductive-svc": EstimatorKind("TransductiveSVC", "classification"),
    "svr": EstimatorKind("SVR", "regression"),
    "nu-svr": EstimatorKind("NuSVR", "regression"),
    "ls-svr": EstimatorKind("LSSVR", "regression"),
    "quantile-svr": EstimatorKind("QuantileSVR", "regression"),
    "linear-svr": EstimatorKind("LinearSVR", "regression"),
    "one-class": EstimatorKind("OneClassSVM", "novelty"),
    "svdd": EstimatorKind("SVDD", "novelty"),
    "linear-one-class": EstimatorKind("LinearOneClassSVM", "novelty"),
    "rank-svc": EstimatorKind("RankSVC", "ranking"),
    "mkl-svc": EstimatorKind("MKLSVC", "classification"),
    "mkl-svr": EstimatorKind("MKLSVR", "regression"),
    "mkl-one-class": EstimatorKind("MKLOneClassSVM", "novelty"),
}

#: Options, and the parameters of estimators that they set.
PARAMETERS = {
    "--kernel": "kernel",
    "--kernels": "kernels",
    "--norm": "norm",
    "-C": "C",
    "--gamma": "gamma",
    "--degree": "degree",
    "--coef0": "coef0",
    "--nu": "nu",
    "--epsilon": "epsilon",
    "--quantile": "quantile",
    "--loss": "loss",
    "--penalty": "penalty",
    "--multi-class": "multi_class",
    "--components": "n_components",
    "--positive-fraction": "positive_fraction",
    "--unlabelled": "unlabeled_label",
    "--unlabelled-cost": "C_unlabeled",
    "--method": "method",
    "--no-intercept": "fit_intercept",
    "--class-weight": "class_weight",
    "--probability": "probability",
    "--tol": "tol",
    "--gap": "gap_tol",
    "--solver": "solver",
    "--max-iter": "max_iter",
    "--max-seconds": "max_seconds",
    "--device": "device",
}

#: Options that are ignored by estimators which do not have the parameter.
RESOURCES = {"--memory": "cache_size", "--threads": "n_jobs", "--seed": "random_state"}


def add_estimator_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of estimators to the parser of a command."""
    group = parser.add_argument_group("estimator")
    group.add_argument(
        "--estimator",
        choices=list(ESTIMATORS),
        metavar="NAME",
        help=f"{', '.join(ESTIMATORS)} [svc or svr, depending on the labels]",
    )
    group.add_argument(
        "--kernel", metavar="NAME", help="rbf, linear, poly, sigmoid, laplacian, chi_squared or precomputed [rbf]"
    )
    group.add_argument(
        "--kernels",
        type=kernel_family,
        nargs="+",
        metavar="KERNEL",
        help="kernels of mkl-svc, mkl-svr and mkl-one-class, whose weights are learned: linear rbf:gamma=0.1,1,10 "
        "rbf:features=each poly:degree=2,3 [linear and rbf with five values of gamma]",
    )
    group.add_argument("--norm", type=float, metavar="P", help="norm of the weights of --kernels [1]")
    group.add_argument("-C", type=float, metavar="X", help="penalty of slack [1]")
    group.add_argument(
        "-g",
        "--gamma",
        type=numbers_or_word,
        metavar="X",
        help="kernel coefficient: a number, scale or auto; or one for each feature, separated by commas or in a text "
        "file [scale]",
    )
    group.add_argument("--degree", type=int, metavar="N", help="degree of the polynomial kernel [3]")
    group.add_argument("--coef0", type=float, metavar="X", help="constant of the polynomial and sigmoid kernels [0]")
    group.add_argument("--nu", type=float, metavar="X", help="bound on the fraction of margin errors or outliers [0.5]")
    group.add_argument(
        "--epsilon", type=float, metavar="X", help="half-width of the insensitive tube [0.1; linear-svr: 0]"
    )
    group.add_argument("--quantile", type=float, metavar="X", help="quantile of quantile-svr [0.5]")
    group.add_argument(
        "--loss", metavar="NAME", help="hinge or squared_hinge; epsilon_insensitive or squared_epsilon_insensitive"
    )
    group.add_argument("--penalty", choices=["l1", "l2"], help="regularisation of linear-svc [l2]")
    group.add_argument(
        "--multi-class", metavar="NAME", help="multi-class strategy: ovo, ovr, crammer_singer or weston_watkins"
    )
    group.add_argument(
        "--class-weight", metavar="WEIGHTS", help="factors on C: balanced, or comma-separated LABEL=NUMBER"
    )
    group.add_argument("--components", type=int, metavar="N", help="number of landmarks of approximate-svc [1000]")
    group.add_argument(
        "--unlabelled", type=number_or_word, metavar="LABEL", help="label of samples without one [-1; 0 among -1, 0, 1]"
    )
    group.add_argument(
        "--positive-fraction",
        type=float,
        metavar="X",
        help="fraction of unlabelled samples of the larger label",
    )
    group.add_argument("--unlabelled-cost", type=float, metavar="X", help="penalty of their slack [that of -C]")
    group.add_argument("--method", metavar="NAME", help="label_switching or concave_convex [label_switching]")
    group.add_argument("--no-intercept", action="store_true", help="decision function without an intercept")
    group.add_argument(
        "--probability", action="store_true", help="calibrate probabilities, or the noise model of a regression"
    )
    group = parser.add_argument_group("stopping and resources")
    group.add_argument(
        "--tol", type=float, metavar="X", help="tolerance on the KKT violation; on the relative gap of linear models"
    )
    group.add_argument(
        "--gap", type=float, metavar="X", help="tolerance on the duality gap, as an alternative to --tol"
    )
    group.add_argument("--solver", metavar="NAME", help="algorithm, see docs/solvers.md [auto]")
    group.add_argument("--max-iter", type=int, metavar="N", help="iteration limit")
    group.add_argument("--max-seconds", type=float, metavar="S", help="time limit of the training")
    group.add_argument("--memory", type=float, metavar="MB", help="size of the kernel cache [a quarter of RAM]")
    group.add_argument("--threads", type=int, metavar="N", help="number of threads [all cores]")
    group.add_argument(
        "--device", metavar="NAME", help="cpu, cuda, cuda:1 or auto, which takes a GPU where it pays [cpu]"
    )
    group.add_argument("--seed", type=int, metavar="N", help="random seed [0]")


def make_estimator(options: argparse.Namespace, samples: Samples, remark: Callable[[str], None]) -> Any:
    """Return an unfitted estimator with the parameters of the command line.

    Without --estimator the labels determine it, and `remark` prints the reason.
    """
    name, y = options.estimator, samples.y
    if options.kernel == "precomputed" and sparse.issparse(samples.X):
        raise ValueError(
            f"{samples.name}: a precomputed kernel is a dense square table, such as a CSV or .npy file; "
            "maxmargin svm-train -t 4 reads LIBSVM's files with serial numbers"
        )
    if name is None:
        name, reason = _default_estimator(y)
        remark(f"{reason}: using {name}; --estimator selects another one")
    parameters = parameters_of(name, options, y)
    if (
        name == "transductive-svc"
        and "unlabeled_label" not in parameters
        and set(np.unique(np.asarray(y)).tolist()) == {-1, 0, 1}
    ):
        remark("the labels are -1, 0 and 1: 0 is taken as unlabelled, as in SVMlight's files; --unlabelled changes it")
        parameters["unlabeled_label"] = 0
    return estimator_class(name)().set_params(**parameters)


def _default_estimator(y: Any) -> tuple[str, str]:
    """Return the name of the default estimator for labels, and the reason."""
    if y is None:
        raise ValueError("there are no labels; --estimator one-class needs none")
    values = len(np.unique(y))
    if not are_classes(y):
        return "svr", f"numeric labels with {values:,} distinct values"
    if values == 1:
        raise ValueError("all labels are equal; --estimator one-class learns from a single class")
    return "svc", f"{values} classes"


def parameters_of(name: str, options: argparse.Namespace, y: Any = None) -> dict[str, Any]:
    """Return the parameters of an estimator that are given on the command line."""
    known = inspect.signature(estimator_class(name)).parameters
    given = {}
    for option, parameter in {**PARAMETERS, **RESOURCES}.items():
        value = getattr(options, option.lstrip("-").replace("-", "_"))
        if value is None or value is False:
            continue
        if option == "--probability" and parameter not in known and "noise" in known:
            parameter = "noise"
        if parameter in known:
            given[parameter] = value
        elif option not in RESOURCES:
            having = [
                other for other in ESTIMATORS if parameter in inspect.signature(estimator_class(other)).parameters
            ]
            raise ValueError(f"{name} has no {option}; estimators that have it: {', '.join(having)}")
    if name == "approximate-svc":
        given.setdefault("random_state", 0)
    if "fit_intercept" in given:
        given["fit_intercept"] = False
    if "class_weight" in given:
        given["class_weight"] = _class_weights(given["class_weight"], y)
    return given


def estimator_class(name: str) -> Any:
    """Return the class of an estimator by its name on the command line."""
    import maxmargin  # the estimators import scikit-learn, which takes a second

    return getattr(maxmargin, ESTIMATORS[name].class_name)


def name_of(model: Any) -> str | None:
    """Return the command line name of an estimator, None if it has none."""
    names = [name for name, kind in ESTIMATORS.items() if kind.class_name == type(model).__name__]
    return names[0] if names else None


def task_of(model: Any) -> str:
    """Return the task of an estimator: classification, regression, novelty or ranking."""
    name = name_of(model)
    if name is None:
        raise ValueError(f"{type(model).__name__} is not available on the command line")
    return ESTIMATORS[name].task


def kernel_family(text: str) -> str | dict[str, Any]:
    """Return an entry of the parameter ``kernels`` from NAME or NAME:PARAMETER=VALUE,VALUE:PARAMETER=VALUE."""
    name, *parts = text.split(":")
    family: dict[str, Any] = {"kernel": name}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise argparse.ArgumentTypeError(f"{text!r} must be NAME:PARAMETER=VALUE,VALUE, such as rbf:gamma=0.1,1")
        values = [number_or_word(one) for one in value.split(",")]
        if key in ("degree", "features"):
            values = [int(one) if isinstance(one, float) and one.is_integer() else one for one in values]
        family[key] = values[0] if len(values) == 1 and isinstance(values[0], str) else values
    return family if parts else name


def numbers_or_word(text: str) -> float | str | list[float]:
    """Return a number if the text is one, numbers if they are separated by commas or the text names a file of them."""
    if text in ("scale", "auto"):
        return text
    if "," not in text and os.path.isfile(text):
        with open(text) as file:
            text = ",".join(file.read().replace(",", " ").split())
    if "," not in text:
        return number_or_word(text)
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:60]!r} are not numbers separated by commas") from None


def number_or_word(text: str) -> float | str:
    """Return a number if the text is one, else the text."""
    try:
        return float(text)
    except ValueError:
        return text


def _class_weights(text: str, y: Any) -> str | dict[Any, float]:
    if text == "balanced":
        return text
    numeric = np.asarray(y).dtype.kind in "fiu"
    weights: dict[Any, float] = {}
    for part in text.split(","):
        label, equals, weight = part.rpartition("=")
        try:
            weights[float(label) if numeric else label.strip()] = float(weight)
        except ValueError:
            equals = ""
        if not equals:
            raise ValueError(f"--class-weight must be balanced or LABEL=NUMBER,LABEL=NUMBER…, not {part!r}")
    unknown = [label for label in weights if label not in y]
    if unknown:
        raise ValueError(f"--class-weight: {unknown[0]} is not a label of the data")
    return weights
