"""`maxmargin svm-train`: replacement of LIBSVM's svm-train."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from maxmargin.cli.libsvm import svm_training
from maxmargin.cli.libsvm.classes import ProgramModel, discard
from maxmargin.cli.libsvm.program_data import KernelRows
from maxmargin.cli.libsvm.program_options import ProgramError, UsageError, run_program, split_options
from maxmargin.cli.libsvm.svm_parameters import NU_SVC, OPTION_VALUES, SvmParameters, read_parameters

if TYPE_CHECKING:
    from maxmargin.interchange.libsvm import LibsvmModel

USAGE = """\
Usage: svm-train [options] training_set_file [model_file]
options:
-s svm_type : type of SVM (default 0)
    0 -- C-SVC  (classification)
    1 -- nu-SVC  (classification)
    2 -- one-class SVM
    3 -- epsilon-SVR  (regression)
    4 -- nu-SVR  (regression)
-t kernel_type : kernel of two samples u and v (default 2)
    0 -- linear: u'*v
    1 -- polynomial: (gamma*u'*v + coef0)^degree
    2 -- radial basis function: exp(-gamma*|u-v|^2)
    3 -- sigmoid: tanh(gamma*u'*v + coef0)
    4 -- precomputed kernel (kernel values in training_set_file)
-d degree : degree in the kernel function (default 3)
-g gamma : gamma in the kernel function (default 1/num_features)
-r coef0 : coef0 in the kernel function (default 0)
-c cost : C of C-SVC, epsilon-SVR and nu-SVR (default 1)
-n nu : nu of nu-SVC, one-class SVM and nu-SVR (default 0.5)
-p epsilon : half-width of the tube of epsilon-SVR (default 0.1)
-m cachesize : kernel cache in MB (default a quarter of the memory)
-e epsilon : tolerance on the KKT violation (default 0.001)
-h shrinking : whether to use shrinking, 0 or 1 (default 1)
-b probability_estimates : whether to calibrate probabilities, 0 or 1 (default 0)
-wi weight : C of class i is weight*C, for C-SVC (default 1)
-v n : n-fold cross-validation mode
-q : quiet mode (no output but results)
"""


class TrainArguments(NamedTuple):
    """Parameters and files of a command line."""

    parameters: SvmParameters
    data: str
    model: str


def main(arguments: Sequence[str]) -> int:
    """Train, or cross-validate."""
    return run_program(USAGE, lambda: _run(read_arguments(arguments)))


def read_arguments(arguments: Sequence[str]) -> TrainArguments:
    """Return the parameters and files of a command line."""
    options, files = split_options(arguments, OPTION_VALUES)
    parameters = read_parameters(options)
    if not files:
        raise UsageError("")
    model = files[1] if len(files) > 1 else f"{Path(files[0]).name}.model"
    return TrainArguments(parameters, files[0], model)


def _run(arguments: TrainArguments) -> int:
    parameters = arguments.parameters
    rows, y = svm_training.read_problem(arguments.data, parameters)
    log = discard if parameters.quiet else print
    # Beyond LIBSVM's output, a line of progress on a terminal.
    observed = sys.stderr.isatty() and len(y) > svm_training.MAX_UNOBSERVED_SAMPLES
    fit_options = svm_training.FitOptions(verbose=not parameters.quiet and observed)
    if parameters.folds is not None:
        evaluation = svm_training.cross_validate(rows, y, parameters, log, fit_options)
        for line in evaluation.lines(parameters.regression, prefix="Cross Validation "):
            print(line)
        return 0
    trained = svm_training.train(rows, y, np.arange(len(y)), parameters, log, fit_options)
    try:
        save(trained, rows, parameters, arguments.model)
    except OSError as error:
        raise ProgramError(f"can't save model to file {arguments.model}") from error
    return 0


def save(trained: ProgramModel, rows: svm_training.Rows, parameters: SvmParameters, path: str) -> None:
    """Write the model file."""
    from maxmargin.interchange.libsvm import write_text

    write_text(model_of(trained, rows, parameters), path)


def model_of(trained: ProgramModel, rows: svm_training.Rows, parameters: SvmParameters) -> LibsvmModel:
    """Return the content of the model file."""
    from maxmargin.interchange.libsvm import LibsvmModel, libsvm_model_of
    from maxmargin.interchange.libsvm.model import KERNEL_PARAMETERS

    if trained.machine is None:
        return LibsvmModel(
            svm_type="nu_svc" if parameters.svm_type == NU_SVC else "c_svc",
            kernel=tuple(KERNEL_PARAMETERS)[parameters.kernel],
            rho=np.empty(0),
            coefficients=np.empty((1, 0)),
            support_vectors=np.empty((0, 1)),
            degree=parameters.degree,
            gamma=parameters.gamma_for(rows.max_index),
            coef0=parameters.coef0,
            labels=trained.labels,
            counts=np.zeros(1, dtype=np.int64),
        )
    model = libsvm_model_of(trained.machine)
    if trained.labels is not None:  # it was trained on class indices
        model = replace(model, labels=trained.labels)
    if isinstance(rows, KernelRows):
        serials = rows.serials[trained.machine.support_] + 1.0
        return replace(model, support_vectors=serials[:, None])
    return replace(model, zero_based=rows.zero_based)
