"""`maxmargin svm-train`: LIBSVM's training program, its options, files and final lines, with our solvers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from maxmargin.cli.libsvm import training
from maxmargin.cli.libsvm.classes import Trained, say_nothing
from maxmargin.cli.libsvm.option_words import ProgramError, UsageError, answer, split_options
from maxmargin.cli.libsvm.parameters import NU_SVC, TAKES, Parameters, read_parameters
from maxmargin.cli.libsvm.problem import KernelRows

USAGE = """\
Usage: svm-train [options] training_set_file [model_file]
options:
-s svm_type : which machine (default 0)
    0 -- C-SVC  (classes)
    1 -- nu-SVC  (classes)
    2 -- one-class SVM
    3 -- epsilon-SVR    (numbers)
    4 -- nu-SVR  (numbers)
-t kernel_type : which kernel of two samples u and v (default 2)
    0 -- linear: u'*v
    1 -- polynomial: (gamma*u'*v + coef0)^degree
    2 -- gaussian: exp(-gamma*|u-v|^2)
    3 -- sigmoid: tanh(gamma*u'*v + coef0)
    4 -- precomputed: the file has kernel values
-d degree : of the polynomial kernel (default 3)
-g gamma : of the kernels that have one (default 1/largest index)
-r coef0 : of the polynomial and sigmoid kernels (default 0)
-c cost : C of C-SVC, epsilon-SVR and nu-SVR (default 1)
-n nu : of nu-SVC, one-class SVM and nu-SVR (default 0.5)
-p epsilon : half the width of the tube of epsilon-SVR (default 0.1)
-m cachesize : megabytes for kernel values (default: as memory allows)
-e epsilon : largest violation of optimality (default 0.001)
-h shrinking : leave settled samples out of the work, 0 or 1 (default 1)
-b probability_estimates : also learn probabilities, 0 or 1 (default 0)
-wi weight : multiply C of class i by weight, for C-SVC (default 1)
-v n : n-fold cross-validation in place of a model
-q : say nothing but results
"""


class Command(NamedTuple):
    """What is to be done."""

    parameters: Parameters
    data: str
    model: str


def main(arguments: Sequence[str]) -> int:
    """Train, or cross-validate."""
    return answer(USAGE, lambda: _run(read_command(arguments)))


def read_command(words: Sequence[str]) -> Command:
    """Return what a command line asks for."""
    options, files = split_options(words, TAKES)
    parameters = read_parameters(options)
    if not files:
        raise UsageError("")
    model = files[1] if len(files) > 1 else f"{Path(files[0]).name}.model"
    return Command(parameters, files[0], model)


def _run(command: Command) -> int:
    parameters = command.parameters
    rows, y = training.read_problem(command.data, parameters)
    say = say_nothing if parameters.quiet else print
    # A line of progress on a terminal, beside what the program says.
    work = training.Work(verbose=not parameters.quiet and sys.stderr.isatty() and len(y) > training.SMALL)
    if parameters.folds is not None:
        found = training.cross_validate(rows, y, parameters, say, work)
        for line in found.lines(parameters.regression, prefix="Cross Validation "):
            print(line)
        return 0
    trained = training.train(rows, y, np.arange(len(y)), parameters, say, work)
    try:
        save(trained, rows, parameters, command.model)
    except OSError as error:
        raise ProgramError(f"can't save model to file {command.model}") from error
    return 0


def save(trained: Trained, rows: training.Rows, parameters: Parameters, path: str) -> None:
    """Write the model file."""
    from maxmargin.interchange.libsvm import LibsvmModel, libsvm_model_of, write_text
    from maxmargin.interchange.libsvm.model import KERNEL_PARAMETERS

    if trained.estimator is None:
        model = LibsvmModel(
            svm_type="nu_svc" if parameters.machine == NU_SVC else "c_svc",
            kernel=tuple(KERNEL_PARAMETERS)[parameters.kernel],
            rho=np.empty(0),
            coefficients=np.empty((1, 0)),
            support_vectors=sparse.csr_matrix((0, 1)),
            degree=parameters.degree,
            gamma=parameters.gamma_for(rows.max_index),
            coef0=parameters.coef0,
            labels=trained.labels,
            counts=np.zeros(1, dtype=np.int64),
        )
    else:
        model = libsvm_model_of(trained.estimator)
        if trained.labels is not None:  # it was trained on their numbers
            model = replace(model, labels=trained.labels)
        if isinstance(rows, KernelRows):
            serials = rows.serials[trained.estimator.support_] + 1.0
            model = replace(model, support_vectors=sparse.csr_matrix(serials[:, None]))
        else:
            model = replace(model, zero_based=rows.zero_based)
    write_text(model, path)
