"""Which machine a command trains, and with which parameters: from words on the command line to an estimator.

An option that was not given is None, and the estimator's own default holds. An option that a machine does not have is
an error that names the machines which have it.
"""

from __future__ import annotations

import argparse
import inspect
from typing import Any, NamedTuple

import numpy as np

from maxmargin.datasets.samples import are_classes


class Kind(NamedTuple):
    """A machine by the name of its estimator, and what it is for."""

    estimator: str
    purpose: str


#: The machines by the word that --machine knows.
MACHINES: dict[str, Kind] = {
    "svc": Kind("SVC", "classification"),
    "nu-svc": Kind("NuSVC", "classification"),
    "ls-svc": Kind("LSSVC", "classification"),
    "linear-svc": Kind("LinearSVC", "classification"),
    "approximate-svc": Kind("KernelApproximationSVC", "classification"),
    "svr": Kind("SVR", "regression"),
    "nu-svr": Kind("NuSVR", "regression"),
    "ls-svr": Kind("LSSVR", "regression"),
    "quantile-svr": Kind("QuantileSVR", "regression"),
    "linear-svr": Kind("LinearSVR", "regression"),
    "one-class": Kind("OneClassSVM", "novelty"),
    "svdd": Kind("SVDD", "novelty"),
    "linear-one-class": Kind("LinearOneClassSVM", "novelty"),
    "rank-svc": Kind("RankSVC", "ranking"),
}

#: Options of the machine: word, parameter of the estimator.
PARAMETERS = {
    "--kernel": "kernel",
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
    "--no-intercept": "fit_intercept",
    "--class-weight": "class_weight",
    "--probability": "probability",
    "--tol": "tol",
    "--gap": "gap_tol",
    "--solver": "solver",
    "--max-iter": "max_iter",
    "--max-seconds": "max_seconds",
}

#: Options that mean nothing to some machines and do them no harm.
RESOURCES = {"--memory": "cache_size", "--threads": "n_jobs", "--seed": "random_state"}


def add_machine_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is trained, and how."""
    machine = parser.add_argument_group("the machine")
    machine.add_argument(
        "--machine", choices=list(MACHINES), metavar="NAME", help=f"{', '.join(MACHINES)} [by the labels: svc or svr]"
    )
    machine.add_argument(
        "--kernel", metavar="NAME", help="rbf, linear, poly, sigmoid, laplacian, chi_squared or precomputed [rbf]"
    )
    machine.add_argument("-C", type=float, metavar="X", help="cost of slack [1]")
    machine.add_argument(
        "-g", "--gamma", type=_number_or_word, metavar="X", help="of the kernel: a number, scale or auto [scale]"
    )
    machine.add_argument("--degree", type=int, metavar="N", help="of the polynomial kernel [3]")
    machine.add_argument("--coef0", type=float, metavar="X", help="of the polynomial and the sigmoid kernel [0]")
    machine.add_argument(
        "--nu", type=float, metavar="X", help="of the machines that have one: a bound on the share of errors [0.5]"
    )
    machine.add_argument(
        "--epsilon", type=float, metavar="X", help="errors of regression that cost nothing [0.1; linear-svr: 0]"
    )
    machine.add_argument("--quantile", type=float, metavar="X", help="of quantile-svr [0.5]")
    machine.add_argument(
        "--loss", metavar="NAME", help="hinge or squared_hinge; epsilon_insensitive or squared_epsilon_insensitive"
    )
    machine.add_argument("--penalty", choices=["l1", "l2"], help="of linear-svc; l1 makes most weights 0 [l2]")
    machine.add_argument("--multi-class", metavar="HOW", help="ovo, ovr, crammer_singer or weston_watkins")
    machine.add_argument(
        "--class-weight", metavar="WEIGHTS", help="factors on C: balanced, or LABEL=NUMBER with commas between them"
    )
    machine.add_argument("--components", type=int, metavar="N", help="landmarks of approximate-svc [1000]")
    machine.add_argument("--no-intercept", action="store_true", help="a decision function without an offset")
    machine.add_argument(
        "--probability", action="store_true", help="learn probabilities, or the noise of a regression, as well"
    )
    work = parser.add_argument_group("the work")
    work.add_argument(
        "--tol", type=float, metavar="X", help="largest violation; for linear machines the gap relative to the optimum"
    )
    work.add_argument(
        "--gap", type=float, metavar="X", help="duality gap that is accepted even if the violation is larger"
    )
    work.add_argument("--solver", metavar="NAME", help="the algorithm; see docs/solvers.md [auto]")
    work.add_argument("--max-iter", type=int, metavar="N", help="limit on iterations")
    work.add_argument("--max-seconds", type=float, metavar="S", help="limit on the time of training")
    work.add_argument("--memory", type=float, metavar="MB", help="for rows of the kernel matrix [a quarter of all]")
    work.add_argument("--threads", type=int, metavar="N", help="[all cores]")
    work.add_argument("--seed", type=int, metavar="N", help="of whatever is drawn at random [0]")


def choose_machine(options: argparse.Namespace, y: Any) -> tuple[str, str | None]:
    """Return the name of the machine, and why it is this one if nobody chose it."""
    if options.machine is not None:
        return options.machine, None
    if y is None:
        raise ValueError("there are no labels; --machine one-class does without")
    classes = len(np.unique(y))
    if are_classes(y):
        if classes == 1:
            raise ValueError(
                "all labels are the same: there is nothing to tell apart; "
                "--machine one-class learns where such samples lie"
            )
        return "svc", f"{classes} classes: training an svc; --machine names others"
    return "svr", f"the labels are numbers, {classes:,} different ones: training an svr; --machine names others"


def make_machine(name: str, options: argparse.Namespace, y: Any = None) -> Any:
    """Return the estimator, not fitted, with the parameters that were given."""
    model = estimator_class(name)()
    return model.set_params(**parameters_of(name, options, y))


def parameters_of(name: str, options: argparse.Namespace, y: Any = None) -> dict[str, Any]:
    """Return the parameters of a machine that the command line names."""
    known = inspect.signature(estimator_class(name)).parameters
    found = {}
    for word, parameter in {**PARAMETERS, **RESOURCES}.items():
        value = getattr(options, word.lstrip("-").replace("-", "_"))
        if value is None or value is False:
            continue
        if word == "--probability" and parameter not in known and "noise" in known:
            parameter = "noise"
        if parameter in known:
            found[parameter] = value
        elif word not in RESOURCES:
            having = [other for other in MACHINES if parameter in inspect.signature(estimator_class(other)).parameters]
            raise ValueError(f"{name} has no {word}; machines that have it: {', '.join(having)}")
    if name == "approximate-svc":
        found.setdefault("random_state", 0)
    if "fit_intercept" in found:
        found["fit_intercept"] = False
    if "class_weight" in found:
        found["class_weight"] = _class_weights(found["class_weight"], y)
    return found


def estimator_class(name: str) -> Any:
    """Return the class of a machine."""
    import maxmargin  # the estimators bring scikit-learn with them, which takes a second

    return getattr(maxmargin, MACHINES[name].estimator)


def name_of(model: Any) -> str | None:
    """Return the word for the machine of an estimator, None if there is none."""
    names = [name for name, kind in MACHINES.items() if kind.estimator == type(model).__name__]
    return names[0] if names else None


def purpose_of(model: Any) -> str:
    """Return what the machine of an estimator is for."""
    name = name_of(model)
    if name is None:
        raise ValueError(f"the command line has no word for {type(model).__name__}")
    return MACHINES[name].purpose


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
        raise ValueError(f"--class-weight names {unknown[0]}, which is no label of the data")
    return weights


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
