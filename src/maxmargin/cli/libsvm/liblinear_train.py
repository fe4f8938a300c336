"""`maxmargin liblinear-train`: replacement of LIBLINEAR's train."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from maxmargin.cli.libsvm import liblinear_training
from maxmargin.cli.libsvm.classes import ProgramModel, discard
from maxmargin.cli.libsvm.liblinear_parameters import (
    CRAMMER_SINGER,
    OPTION_VALUES,
    SOLVER_TYPES,
    LiblinearParameters,
    read_parameters,
)
from maxmargin.cli.libsvm.program_options import ProgramError, UsageError, run_program, split_options

if TYPE_CHECKING:
    from maxmargin.interchange.liblinear_model import LiblinearModel

USAGE = """\
Usage: liblinear-train [options] training_set_file [model_file]
options:
-s type : type of solver (default 1)
  for multi-class classification
     1, 2 -- L2-regularized L2-loss support vector classification
     3 -- L2-regularized L1-loss support vector classification
     4 -- support vector classification by Crammer and Singer
     5 -- L1-regularized L2-loss support vector classification
  for regression
    11, 12 -- L2-regularized L2-loss support vector regression
    13 -- L2-regularized L1-loss support vector regression
  for outlier detection
    21 -- one-class support vector machine
  0, 6 and 7 are logistic regression, which is not available
-c cost : the parameter C (default 1)
-p epsilon : half-width of the tube of support vector regression (default 0.1)
-n nu : nu of the one-class SVM (default 0.5)
-e epsilon : tolerance, relative to LIBLINEAR's default of the type
    (-s 2, 5 and 21: 0.01, -s 11: 0.0001, others 0.1); the default is a relative gap of 0.0001
-B bias : if bias >= 0, instance x becomes [x; bias] (default -1)
-R : not regularize the bias; must be used with -B 1 (-s 2, 5 and 11)
-wi weight : C of class i is weight*C
-v n : n-fold cross-validation mode
-C : find C (-s 2), or C and p (-s 11), by cross-validation
-q : quiet mode (no output but results)
"""


def main(arguments: Sequence[str]) -> int:
    """Train, cross-validate or search."""

    def work() -> int:
        options, files = split_options(arguments, OPTION_VALUES, "unknown option: -{}")
        parameters = read_parameters(options)
        if not files:
            raise UsageError("")
        if parameters.search and not any(option.letter == "s" for option in options):
            print("Solver not specified. Using -s 2", file=sys.stderr)
        return run(parameters, files[0], files[1] if len(files) > 1 else f"{Path(files[0]).name}.model")

    return run_program(USAGE, work)


def run(parameters: LiblinearParameters, data: str, model: str) -> int:
    """Train, cross-validate or search as the parameters request; return the exit code."""
    X, y = liblinear_training.read_problem(data, parameters)
    log = discard if parameters.quiet else print
    if parameters.search:
        print(f"Doing parameter search with {parameters.folds}-fold cross validation.")
        print(line_of_search(liblinear_training.search(X, y, parameters, log), parameters))
        return 0
    if parameters.folds is not None:
        evaluation = liblinear_training.cross_validate(X, y, parameters, log)
        for line in evaluation.lines(parameters.regression, prefix="Cross Validation "):
            print(line)
        return 0
    trained = liblinear_training.train(X, y, parameters, log)
    try:
        save(trained, parameters, X.shape[1], model)
    except OSError as error:
        raise ProgramError(f"can't save model to file {model}") from error
    return 0


def line_of_search(result: liblinear_training.CostSearchResult, parameters: LiblinearParameters) -> str:
    """Return the line about the result of a search."""
    if parameters.regression:
        return f"Best C = {result.cost:g} Best p = {result.epsilon:g}  CV MSE = {result.score:g}"
    return f"Best C = {result.cost:g}  CV accuracy = {result.score:g}%"


def save(trained: ProgramModel, parameters: LiblinearParameters, features: int, path: str) -> None:
    """Write the model file."""
    from maxmargin.interchange.liblinear_model import write_liblinear_text

    write_liblinear_text(model_of(trained, parameters, features), path)


def model_of(trained: ProgramModel, parameters: LiblinearParameters, features: int) -> LiblinearModel:
    """Return the content of the model file."""
    from maxmargin.interchange.liblinear_model import LiblinearModel, liblinear_model_of

    bias = parameters.bias if parameters.bias >= 0 else -1.0
    if trained.machine is None:
        model = LiblinearModel("", np.zeros((1, features)), bias, np.zeros(1))
    else:
        numbers = None if trained.labels is None else np.arange(len(trained.labels))
        model = liblinear_model_of(trained.machine, numbers)
    weights, constants = model.weights, model.constants
    if parameters.solver_type == CRAMMER_SINGER:  # as LIBLINEAR: the mean over classes is 0
        weights, constants = weights - weights.mean(axis=0), constants - constants.mean()
    name = SOLVER_TYPES[parameters.solver_type]
    model = replace(model, solver_type=name, labels=trained.labels, bias=bias)
    return replace(model, weights=weights + 0.0, constants=constants + 0.0)  # no -0
