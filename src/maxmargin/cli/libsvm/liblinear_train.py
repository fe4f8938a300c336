"""`maxmargin liblinear-train`: LIBLINEAR's training program, its options, files and final lines, with our solvers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from maxmargin.cli.libsvm import linear_training
from maxmargin.cli.libsvm.classes import Trained, say_nothing
from maxmargin.cli.libsvm.linear_parameters import ALL_IN_ONE, SOLVER_TYPES, TAKES, LinearParameters, read_parameters
from maxmargin.cli.libsvm.option_words import ProgramError, UsageError, answer, split_options

USAGE = """\
Usage: liblinear-train [options] training_set_file [model_file]
options:
-s type : which machine (default 1)
  for classes
     1, 2 -- squared hinge loss, squares of weights as penalty
     3 -- hinge loss, squares of weights
     4 -- all classes in one machine (Crammer and Singer)
     5 -- squared hinge loss, sizes of weights: most become 0
  for numbers
    11, 12 -- squared loss outside a tube
    13 -- loss outside a tube
  for novelties
    21 -- one-class SVM
  0, 6 and 7 are logistic regression, which is not there
-c cost : C (default 1)
-p epsilon : half the width of the tube (default 0.1)
-n nu : of the one-class SVM (default 0.5)
-e epsilon : tolerance, as a multiple of LIBLINEAR's default for the type
    (-s 2, 5 and 21: 0.01, -s 11: 0.0001, others 0.1; that is a proved gap of 0.01 % of the objective)
-B bias : if bias >= 0, samples get one more feature of that value (default -1)
-R : with -B 1, the weight of that feature costs nothing (-s 2, 5 and 11)
-wi weight : multiply C of class i by weight
-v n : n-fold cross-validation in place of a model
-C : search for C by cross-validation (-s 2), or C and epsilon (-s 11)
-q : say nothing but results
"""


def main(arguments: Sequence[str]) -> int:
    """Train, cross-validate or search."""

    def work() -> int:
        options, files = split_options(arguments, TAKES, "unknown option: -{}")
        parameters = read_parameters(options)
        if not files:
            raise UsageError("")
        if parameters.search and not any(option.letter == "s" for option in options):
            print("Solver not specified. Using -s 2", file=sys.stderr)
        return run(parameters, files[0], files[1] if len(files) > 1 else f"{Path(files[0]).name}.model")

    return answer(USAGE, work)


def run(parameters: LinearParameters, data: str, model: str) -> int:
    """Do what the parameters ask for, and return the exit code."""
    X, y = linear_training.read_problem(data, parameters)
    say = say_nothing if parameters.quiet else print
    if parameters.search:
        print(f"Doing parameter search with {parameters.folds}-fold cross validation.")
        found = linear_training.search(X, y, parameters, say)
        if parameters.regression:
            print(f"Best C = {found.cost:g} Best p = {found.tube:g}  CV MSE = {found.score:g}")
        else:
            print(f"Best C = {found.cost:g}  CV accuracy = {found.score:g}%")
        return 0
    if parameters.folds is not None:
        validated = linear_training.cross_validate(X, y, parameters, say)
        for line in validated.lines(parameters.regression, prefix="Cross Validation "):
            print(line)
        return 0
    trained = linear_training.train(X, y, parameters, say)
    try:
        save(trained, parameters, X.shape[1], model)
    except OSError as error:
        raise ProgramError(f"can't save model to file {model}") from error
    return 0


def save(trained: Trained, parameters: LinearParameters, features: int, path: str) -> None:
    """Write the model file."""
    from maxmargin.interchange.liblinear_model import LiblinearModel, liblinear_model_of, write_liblinear_text

    bias = parameters.bias if parameters.bias >= 0 else -1.0
    if trained.estimator is None:
        model = LiblinearModel("", np.zeros((1, features)), bias, np.zeros(1))
    else:
        numbers = None if trained.labels is None else np.arange(len(trained.labels))
        model = liblinear_model_of(trained.estimator, numbers)
    weights, constants = model.weights, model.constants
    if parameters.solver_type == ALL_IN_ONE:  # what all classes have in common does not count: LIBLINEAR has none of it
        weights, constants = weights - weights.mean(axis=0), constants - constants.mean()
    name = SOLVER_TYPES[parameters.solver_type]
    model = replace(model, solver_type=name, labels=trained.labels, bias=bias)
    write_liblinear_text(replace(model, weights=weights + 0.0, constants=constants + 0.0), path)  # no -0
