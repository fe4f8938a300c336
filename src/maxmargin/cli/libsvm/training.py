"""Training as svm-train does it: its lines about each machine, its cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.cli.libsvm.classes import Classes, Say, Trained, check_labels
from maxmargin.cli.libsvm.evaluation import Evaluation
from maxmargin.cli.libsvm.folds import deal, deal_by_class, limit_folds, splits
from maxmargin.cli.libsvm.option_words import ProgramError
from maxmargin.cli.libsvm.parameters import C_SVC, NU_SVC, NU_SVR, ONE_CLASS, Parameters
from maxmargin.cli.libsvm.problem import FeatureRows, KernelRows, read_features, read_kernel_values
from maxmargin.solvers import Callback
from maxmargin.training import TrainedModel

Rows = FeatureRows | KernelRows

#: Up to so many samples a fit is over before anybody wants to hear of it, and quicker if nobody does.
SMALL = 2048


def read_problem(path: str, parameters: Parameters) -> tuple[Rows, Floats]:
    """Return samples and labels for a machine, after it is clear that it can be trained."""
    read = read_kernel_values if parameters.precomputed else read_features
    rows, y = read(path)
    parameters.check()
    if not parameters.classifies:
        return rows, y
    y = check_labels(y, parameters.weights)
    counts = [len(members) for members in Classes.of(y).members]
    for first, second in combinations(counts, 2):
        if parameters.machine == NU_SVC and parameters.nu * (first + second) / 2 > min(first, second):
            raise ProgramError("ERROR: specified nu is infeasible")
    return rows, y


class Work(NamedTuple):
    """On how many threads a machine is trained, by default on all cores, and who hears of it."""

    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: bool = False


ALL_CORES = Work()


def train(rows: Rows, y: Floats, chosen: Indices, parameters: Parameters, say: Say, work: Work = ALL_CORES) -> Trained:
    """Train on some samples, and say what came out."""
    if not parameters.classifies:
        estimator = parameters.estimator(rows.max_index).set_params(**work._asdict())
        estimator.fit(rows.among(chosen), y[chosen])
        if parameters.regression and parameters.probability:
            say("Prob. model for test data: target value = predicted value + z,")
            say(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma= {estimator.noise_scale_:g}")
        for line in lines_of(estimator._models_[0], parameters, _bound(parameters)):
            say(line)
        return Trained(estimator, None)
    classes = Classes.of(y[chosen])
    if len(classes.labels) == 1:
        say("WARNING: training data in only one class. See README for details.")
        say("Total nSV = 0")
        return Trained(None, classes.labels)
    factors = classes.factors(parameters.weights) if parameters.machine == C_SVC else {}
    estimator = parameters.estimator(rows.max_index, factors).set_params(**work._asdict())
    estimator.fit(rows.among(chosen), classes.numbers)
    bounds = _bound(parameters) * np.array([factors.get(number, 1.0) for number in range(len(classes.labels))])
    sign = -1.0 if len(classes.labels) == 2 else 1.0  # the only pair has its second class positive
    for machine in estimator._models_:
        for line in lines_of(machine, parameters, bounds[classes.numbers[machine.samples]], sign):
            say(line)
    say(f"Total nSV = {len(estimator.support_)}")
    return Trained(estimator, classes.labels)


def _bound(parameters: Parameters) -> float:
    """Return the largest dual variable of a class without a factor."""
    return parameters.cost if parameters.machine == C_SVC or parameters.regression else 1.0


def lines_of(machine: TrainedModel, parameters: Parameters, bound: float | Floats, sign: float = 1.0) -> Iterator[str]:
    """Yield what LIBSVM says about a machine with these bounds on dual variables; `sign` is that of its offset."""
    coefficients, offset = machine.expansion
    used = np.abs(machine.dual if parameters.classifies else coefficients)
    bounds = np.resize(bound, len(used))
    # A ν-classifier is scaled so that the edges of its margin are at ±1.
    margin = float(used.sum() / np.abs(coefficients).sum()) if parameters.machine == NU_SVC else 1.0
    yield ""
    yield f"optimization finished, #iter = {machine.counters.iterations}"
    if parameters.machine == NU_SVC:
        yield f"C = {1.0 / margin:f}"
    elif parameters.machine == NU_SVR:
        yield f"epsilon = {machine.geometry.epsilon:f}"
    elif parameters.machine != ONE_CLASS and np.ptp(bounds) == 0:
        yield f"nu = {used.sum() / bounds.sum():f}"
    yield f"obj = {-machine.dual_value / margin**2:f}, rho = {-sign * float(offset):f}"
    yield f"nSV = {np.count_nonzero(used)}, nBSV = {np.sum((used > 0) & (used >= bounds))}"


def cross_validate(rows: Rows, y: Floats, parameters: Parameters, say: Say, work: Work = ALL_CORES) -> Evaluation:
    """Return how good predictions of samples are by machines that were trained without their fold."""
    assert parameters.folds is not None
    folds = limit_folds(parameters.folds, len(y))
    stratified = parameters.classifies and folds < len(y)
    found = Evaluation()
    parts = deal_by_class(Classes.of(y).members, folds) if stratified else deal(len(y), folds)
    for chosen, held in splits(parts):
        trained = train(rows, y, chosen, parameters, say, work)
        found.add(trained.predict(rows.between(held, chosen)), y[held])
    return found
