"""Training and cross-validation with the output of svm-train."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.cli.libsvm.classes import Classes, Log, ProgramModel, check_labels
from maxmargin.cli.libsvm.folds import clip_folds, plain_folds, splits, stratified_folds
from maxmargin.cli.libsvm.program_data import FeatureRows, KernelRows, read_features, read_kernel_values
from maxmargin.cli.libsvm.program_options import ProgramError
from maxmargin.cli.libsvm.svm_parameters import C_SVC, NU_SVC, NU_SVR, ONE_CLASS, SvmParameters
from maxmargin.cli.metrics import RunningMetrics
from maxmargin.solvers import Callback
from maxmargin.training import TrainedModel

Rows = FeatureRows | KernelRows

#: Fits of at most this many samples are so short that they need neither progress nor cancellation.
MAX_UNOBSERVED_SAMPLES = 2048


def read_problem(path: str, parameters: SvmParameters) -> tuple[Rows, Floats]:
    """Return samples and labels; raise if the parameters are invalid for them."""
    read = read_kernel_values if parameters.precomputed else read_features
    rows, y = read(path)
    return rows, check_targets(y, parameters)


def check_targets(y: Floats, parameters: SvmParameters) -> Floats:
    """Return targets, or labels as integers; raise if the parameters are invalid for them."""
    parameters.check()
    if not parameters.classifies:
        return y
    y = check_labels(y, parameters.weights)
    counts = [len(members) for members in Classes.of(y).members]
    for first, second in combinations(counts, 2):
        if parameters.svm_type == NU_SVC and parameters.nu * (first + second) / 2 > min(first, second):
            raise ProgramError("ERROR: specified nu is infeasible")
    return y


class FitOptions(NamedTuple):
    """Parameters of machines that do not change the model: threads (default: all cores) and progress."""

    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: bool = False


DEFAULT_FIT_OPTIONS = FitOptions()


def train(
    rows: Rows,
    y: Floats,
    train_rows: Indices,
    parameters: SvmParameters,
    log: Log,
    fit_options: FitOptions = DEFAULT_FIT_OPTIONS,
) -> ProgramModel:
    """Train on the given samples and print the lines of svm-train."""
    if not parameters.classifies:
        machine = parameters.machine(rows.max_index).set_params(**fit_options._asdict())
        machine.fit(rows.training_input(train_rows), y[train_rows])
        if parameters.regression and parameters.probability:
            log("Prob. model for test data: target value = predicted value + z,")
            log(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma= {machine.noise_scale_:g}")
        for line in lines_of(machine._models_[0], parameters, _bound(parameters)):
            log(line)
        return ProgramModel(machine, None)
    classes = Classes.of(y[train_rows])
    if len(classes.labels) == 1:
        log("WARNING: training data in only one class. See README for details.")
        log("Total nSV = 0")
        return ProgramModel(None, classes.labels)
    factors = classes.factors(parameters.weights) if parameters.svm_type == C_SVC else {}
    machine = parameters.machine(rows.max_index, factors).set_params(**fit_options._asdict())
    machine.fit(rows.training_input(train_rows), classes.numbers)
    bounds = _bound(parameters) * np.array([factors.get(number, 1.0) for number in range(len(classes.labels))])
    sign = -1.0 if len(classes.labels) == 2 else 1.0  # the second class of the only pair is positive
    for model in machine._models_:
        for line in lines_of(model, parameters, bounds[classes.numbers[model.samples]], sign):
            log(line)
    log(f"Total nSV = {len(machine.support_)}")
    return ProgramModel(machine, classes.labels)


def _bound(parameters: SvmParameters) -> float:
    """Return the upper bound of dual variables of classes without a factor."""
    return parameters.cost if parameters.svm_type == C_SVC or parameters.regression else 1.0


def lines_of(model: TrainedModel, parameters: SvmParameters, bound: float | Floats, sign: float = 1.0) -> Iterator[str]:
    """Yield LIBSVM's lines about a binary model; `bound` is that of its dual variables, `sign` that of its offset."""
    coefficients, offset = model.expansion
    used = np.abs(model.dual if parameters.classifies else coefficients)
    bounds = np.resize(bound, len(used))
    # LIBSVM scales a ν-classifier so that its margins are at ±1.
    margin = float(used.sum() / np.abs(coefficients).sum()) if parameters.svm_type == NU_SVC else 1.0
    yield ""
    yield f"optimization finished, #iter = {model.counters.iterations}"
    if parameters.svm_type == NU_SVC:
        yield f"C = {1.0 / margin:f}"
    elif parameters.svm_type == NU_SVR:
        yield f"epsilon = {model.geometry.epsilon:f}"
    elif parameters.svm_type != ONE_CLASS and np.ptp(bounds) == 0:
        yield f"nu = {used.sum() / bounds.sum():f}"
    yield f"obj = {-model.dual_value / margin**2:f}, rho = {-sign * float(offset):f}"
    yield f"nSV = {np.count_nonzero(used)}, nBSV = {np.sum((used > 0) & (used >= bounds))}"


def cross_validate(
    rows: Rows, y: Floats, parameters: SvmParameters, log: Log, fit_options: FitOptions = DEFAULT_FIT_OPTIONS
) -> RunningMetrics:
    """Return the evaluation of predictions by models trained without the fold of a sample."""
    assert parameters.folds is not None
    folds = clip_folds(parameters.folds, len(y))
    stratified = parameters.classifies and folds < len(y)
    evaluation = RunningMetrics()
    parts = stratified_folds(Classes.of(y).members, folds) if stratified else plain_folds(len(y), folds)
    for train_rows, test_rows in splits(parts):
        trained = train(rows, y, train_rows, parameters, log, fit_options)
        evaluation.add(trained.predict(rows.test_input(test_rows, train_rows)), y[test_rows])
    return evaluation
