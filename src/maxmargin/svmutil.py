"""LIBSVM's Python interface: `svm_train`, `svm_predict` and the other functions of ``libsvm.svmutil``.

A script that begins with ``from libsvm.svmutil import *`` runs with ``from maxmargin.svmutil import *``: the same
options, arguments, return values and printed lines, trained by our solvers on all cores. Models are objects of Python
with the methods of LIBSVM's; the structures of ctypes (``svm_node``, ``libsvm.svm_train``) have no counterpart.

Public: the names of `__all__`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from enum import IntEnum
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin.cli.libsvm import svm_training
from maxmargin.cli.libsvm.classes import discard
from maxmargin.cli.libsvm.program_data import KernelRows
from maxmargin.cli.libsvm.program_options import ProgramError
from maxmargin.cli.libsvm.svm_parameters import OPTION_VALUES, SvmParameters, read_parameters
from maxmargin.cli.libsvm.svm_predict import match_columns
from maxmargin.cli.libsvm.svm_train import model_of
from maxmargin.commonutil import (
    csr_find_scale_param,
    csr_scale,
    evaluations,
    feature_rows,
    parse_words,
    predict_options,
    print_metrics,
    program_errors,
    svm_read_problem,
    target_array,
)
from maxmargin.interchange.libsvm.model import KERNEL_PARAMETERS, SVM_TYPES, LibsvmModel
from maxmargin.interchange.libsvm.text import read_text, write_text

__all__ = [
    "csr_find_scale_param",
    "csr_scale",
    "evaluations",
    "kernel_names",
    "svm_forms",
    "svm_load_model",
    "svm_model",
    "svm_parameter",
    "svm_predict",
    "svm_problem",
    "svm_read_problem",
    "svm_save_model",
    "svm_train",
]

#: LIBSVM's names of the fields of parameters.
NAMES = {
    "svm_type": "svm_type",
    "kernel": "kernel_type",
    "degree": "degree",
    "gamma": "gamma",
    "coef0": "coef0",
    "cache": "cache_size",
    "tolerance": "eps",
    "cost": "C",
    "nu": "nu",
    "epsilon": "p",
    "shrinking": "shrinking",
    "probability": "probability",
}


class svm_forms(IntEnum):  # noqa: N801  # LIBSVM's names
    """The numbers of ``-s``."""

    C_SVC = 0
    NU_SVC = 1
    ONE_CLASS = 2
    EPSILON_SVR = 3
    NU_SVR = 4


class kernel_names(IntEnum):  # noqa: N801
    """The numbers of ``-t``."""

    LINEAR = 0
    POLY = 1
    RBF = 2
    SIGMOID = 3
    PRECOMPUTED = 4


class svm_problem:  # noqa: N801
    """Training data, which several calls of `svm_train` may share.

    Parameters
    ----------
    y : list, tuple or array of shape (n_samples,)
        Labels or targets.
    x : list or tuple of samples, array or sparse matrix of shape (n_samples, n_features)
        A sample in a list is a list, a tuple, an array, or a dict from indices to values.
    isKernel : bool, default=False
        Whether the first value of each sample, of index 0, is its serial number, and the others are kernel values.

    Attributes
    ----------
    l, n : int
        Number of samples; largest index.
    y : float array

    Examples
    --------
    >>> from maxmargin.svmutil import svm_parameter, svm_problem, svm_train
    >>> problem = svm_problem([1, -1], [{1: 1, 3: 1}, {1: -1, 3: -1}])
    >>> svm_train(problem, svm_parameter("-t 0 -c 4 -q")).get_sv_coef()
    [(0.25,), (-0.25,)]
    """

    def __init__(self, y: Any, x: Any, isKernel: bool = False) -> None:
        self.y = target_array(y)
        self.rows = feature_rows(x, isKernel)
        self.l = len(self.y)
        self.n = self.rows.max_index
        if self.l != self.rows.X.shape[0]:
            raise ValueError("len(y) != len(x)")


class svm_parameter:  # noqa: N801
    """The parameters of `svm_train`; fields may be changed.

    Parameters
    ----------
    options : str or list of str, optional
        Those of svm-train, such as ``"-s 0 -t 2 -c 4"``.

    Attributes
    ----------
    svm_type, kernel_type, degree, shrinking, probability : int
    gamma, coef0, cache_size, eps, C, nu, p : float
        LIBSVM's names; `gamma` 0 is 1 / largest index. `cache_size` None is the default, a quarter of the memory.
    weight_label, weight : list
        The labels and factors of ``-wi``; their number is `nr_weight`.
    cross_validation : bool
    nr_fold : int
        Whether ``-v`` was given, and its number.
    quiet : bool
        Whether ``-q`` was given.

    Examples
    --------
    >>> from maxmargin.svmutil import svm_parameter
    >>> parameter = svm_parameter("-s 3 -c 5")
    >>> parameter.svm_type, parameter.C, parameter.p
    (<svm_forms.EPSILON_SVR: 3>, 5.0, 0.1)
    """

    svm_type: int
    kernel_type: int
    degree: int
    gamma: float
    coef0: float

    def __init__(self, options: str | Sequence[str] | None = None) -> None:
        self.parse_options(options)

    def set_to_default_values(self) -> None:
        """Set the defaults of all fields."""
        self._set(SvmParameters())

    def parse_options(self, options: str | Sequence[str] | None) -> None:
        """Set the fields to those of options, and all others to the defaults."""
        with program_errors():
            self._set(read_parameters(parse_words(options, OPTION_VALUES)))

    def _set(self, parameters: SvmParameters) -> None:
        for name, name_in_libsvm in NAMES.items():
            setattr(self, name_in_libsvm, getattr(parameters, name))
        for name, kind in (("svm_type", svm_forms), ("kernel_type", kernel_names)):
            value = getattr(self, name)
            if value not in list(kind):
                raise ValueError(f"{value} is not a valid {kind.__name__}")
            setattr(self, name, kind(value))
        self.weight_label = [label for label, _ in parameters.weights]
        self.weight = [factor for _, factor in parameters.weights]
        self.cross_validation = parameters.folds is not None
        self.nr_fold = parameters.folds or 0
        self.quiet = parameters.quiet

    @property
    def nr_weight(self) -> int:
        """Number of factors of classes."""
        return len(self.weight)

    def to_program(self) -> SvmParameters:
        """Return the parameters of the program svm-train."""
        return SvmParameters(
            **{name: getattr(self, name_in_libsvm) for name, name_in_libsvm in NAMES.items()},
            weights=tuple(zip(self.weight_label, self.weight, strict=True)),
            folds=self.nr_fold if self.cross_validation else None,
            quiet=self.quiet,
        )

    def __str__(self) -> str:
        names = [*NAMES.values(), "nr_weight", "weight_label", "weight", "cross_validation", "nr_fold", "quiet"]
        return "\n".join(f" {name}: {getattr(self, name)}" for name in names).strip()


class svm_model:  # noqa: N801
    """A model of `svm_train` or `svm_load_model`, with the methods of LIBSVM's.

    Attributes
    ----------
    param : svm_parameter
        Of a model from a file only the type, the kernel and its parameters.
    nr_class, l : int
        Number of classes (2 for regression and one class), and of support vectors.
    machine : maxmargin machine or None
        The fitted machine, with its `certificate_`; None for a model from a file or of a single class.
    content : LibsvmModel
        What a model file has.

    Examples
    --------
    >>> from maxmargin.svmutil import svm_train
    >>> model = svm_train([1, -1], [[1, 0, 1], [-1, 0, -1]], "-t 0 -c 4 -q")
    >>> model.get_nr_sv(), model.get_labels(), model.get_SV()
    (2, [1, -1], [{1: 1.0, 3: 1.0}, {1: -1.0, 3: -1.0}])
    >>> model.machine.certificate_.gap < 1e-12
    True
    """

    def __init__(self, content: LibsvmModel, param: svm_parameter, machine: Any = None) -> None:
        self.content = content
        self.param = param
        self.machine = machine
        self.nr_class = 2 if content.labels is None else len(content.labels)
        self.l = int(content.coefficients.shape[1])

    def get_svm_type(self) -> int:
        """Return the number of ``-s``."""
        return SVM_TYPES.index(self.content.svm_type)

    def get_nr_class(self) -> int:
        """Return the number of classes; 2 for regression and one class."""
        return self.nr_class

    def get_labels(self) -> list[int]:
        """Return the labels in the order of the decision values; for regression and one class, zeros."""
        return [0] * self.nr_class if self.content.labels is None else self.content.labels.tolist()

    def get_nr_sv(self) -> int:
        """Return the number of support vectors."""
        return self.l

    def get_sv_indices(self) -> list[int]:
        """Return the numbers of the support vectors in the training data, from 1; of a model from a file, zeros."""
        if self.machine is None:
            return [0] * self.l
        return (self.machine.support_ + 1).tolist()  # type: ignore[no-any-return]

    def get_sv_coef(self) -> list[tuple[float, ...]]:
        """Return the coefficients of each support vector: one for each class but its own."""
        return [tuple(row) for row in self.content.coefficients.T.tolist()]

    def get_SV(self) -> list[dict[int, float]]:  # noqa: N802
        """Return the support vectors as dicts from indices to values; for a precomputed kernel their numbers."""
        first = 0 if self.content.zero_based or self.content.kernel == "precomputed" else 1
        rows = sparse.csr_matrix(self.content.support_vectors)
        rows.sort_indices()
        return [
            dict(zip((row.indices + first).tolist(), row.data.tolist(), strict=True))
            for row in (rows[number] for number in range(self.l))
        ]

    def get_svr_probability(self) -> float:
        """Return the scale of the Laplace noise of a regression that was trained with ``-b 1``; 0 without it."""
        if self.content.svm_type not in ("epsilon_svr", "nu_svr") or self.content.probA is None:
            return 0.0
        return float(self.content.probA[0])

    def is_probability_model(self) -> bool:
        """Return whether the model was trained with ``-b 1``."""
        return self.content.has_probabilities


def svm_train(arg1: Any, arg2: Any = None, arg3: Any = None) -> svm_model | float:
    """Train a support vector machine, or cross-validate, as LIBSVM's ``svm_train``.

    The calls are ``svm_train(y, x, options)``, ``svm_train(problem, options)`` and ``svm_train(problem, parameter)``.

    Parameters
    ----------
    arg1 : list, tuple or array of labels; or svm_problem
    arg2 : samples, as for `svm_problem`; or options or svm_parameter
    arg3 : str or list of str, optional
        Options of svm-train; those of `maxmargin svm-train`.

    Returns
    -------
    svm_model, or float
        With ``-v``, the accuracy of the cross-validation in per cent, or the mean squared error of a regression.

    Raises
    ------
    ValueError
        If an option, a parameter or the data are invalid.

    Examples
    --------
    >>> from maxmargin.svmutil import svm_predict, svm_train
    >>> y, x = [1, -1, 1, -1], [[2.0], [-2.0], [1.0], [-1.0]]
    >>> model = svm_train(y, x, "-t 0 -c 10 -q")
    >>> svm_predict([1], [[0.5]], model)
    Accuracy = 100% (1/1) (classification)
    ([1.0], (100.0, 0.0, nan), [[0.5]])
    """
    if isinstance(arg1, svm_problem):
        problem, param = arg1, arg2 if isinstance(arg2, svm_parameter) else svm_parameter(arg2)
    elif isinstance(arg1, list | tuple | np.ndarray):
        param = svm_parameter(arg3)
        problem = svm_problem(arg1, arg2, isKernel=param.kernel_type == kernel_names.PRECOMPUTED)
    else:
        raise TypeError("Wrong types for the arguments: svm_train takes (y, x, options) or (problem, options)")
    parameters = param.to_program()
    with program_errors():
        rows = _kernel_rows(problem) if parameters.precomputed else problem.rows
        y = svm_training.check_targets(problem.y, parameters)
        log = discard if parameters.quiet else print
        if parameters.folds is not None:
            evaluation = svm_training.cross_validate(rows, y, parameters, log)
            for line in evaluation.lines(parameters.regression, prefix="Cross Validation "):
                print(line)
            return evaluation.mean_squared_error if parameters.regression else evaluation.accuracy
        trained = svm_training.train(rows, y, np.arange(len(y)), parameters, log)
        kept = copy(param)
        kept.gamma = parameters.gamma_for(problem.n)
        return svm_model(model_of(trained, rows, parameters), kept, trained.machine)


def _kernel_rows(problem: svm_problem) -> KernelRows:
    """Return samples as rows of a precomputed kernel matrix; raise unless they have serial numbers."""
    if not problem.rows.zero_based:
        raise ProgramError("Wrong input format: first column must be 0:sample_serial_number")
    return KernelRows.of(problem.rows.X.toarray() if sparse.issparse(problem.rows.X) else problem.rows.X)


def svm_predict(
    y: Any, x: Any, m: svm_model, options: str = ""
) -> tuple[list[float], tuple[float, float, float], list[list[float]]]:
    """Predict, and print accuracy or error, as LIBSVM's ``svm_predict``.

    Parameters
    ----------
    y : list, tuple or array of shape (n_samples,)
        True labels, for the metrics; ``[]`` if they are unknown.
    x : samples, as for `svm_problem`
    m : svm_model
    options : str
        ``-b 1`` for probabilities of a model with them, ``-q`` to print nothing.

    Returns
    -------
    pred_labels : list of float
    pred_metrics : tuple of float
        Accuracy in per cent, mean squared error, squared correlation coefficient.
    pred_values : list of lists of float
        For each sample the decision value of each pair of classes, in the order of ``m.get_labels()``, or a single
        value; with ``-b 1`` the probability of each class, or of inlier and outlier, or nothing for a regression.
    """
    probability, info = predict_options(options)
    content = m.content
    model, X = match_columns(content, feature_rows(x, content.kernel == "precomputed"))
    regression = content.svm_type in ("epsilon_svr", "nu_svr")
    if probability and not content.has_probabilities:
        raise ValueError("Model does not support probabiliy estimates; train it with -b 1")
    if probability and regression:
        info("Prob. model for test data: target value = predicted value + z,")
        info(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={m.get_svr_probability():g}")
    elif content.has_probabilities and not probability:
        info("Model supports probability estimates, but disabled in predicton.")
    decisions = model.decision_values(X)
    if probability and not regression:
        probabilities = model.probabilities(decisions)
        values = probabilities.tolist()
    else:
        values = [[]] * len(decisions) if probability else decisions.tolist()
    if probability and content.labels is not None:
        predicted = content.labels[np.argmax(probabilities, axis=1)]
    else:
        predicted = model.decide(decisions)
    if not probability and m.nr_class == 1:
        values = [[1.0]] * len(decisions)
    labels = np.asarray(predicted, dtype=np.float64)
    return labels.tolist(), print_metrics(y, labels, regression, info), values


def svm_save_model(model_file_name: str | os.PathLike[str], model: svm_model) -> None:
    """Write a model as a LIBSVM model file."""
    write_text(model.content, model_file_name, digits=17)


def svm_load_model(model_file_name: str | os.PathLike[str]) -> svm_model | None:
    """Read a LIBSVM model file; a file that cannot be read is a printed line and None, as in LIBSVM's package.

    Raises
    ------
    ModelFileError
        If the file is malformed; the message names the line and the problem.
    """
    try:
        content = read_text(model_file_name)
    except OSError:
        print(f"can't open model file {os.fspath(model_file_name)}")
        return None
    param = svm_parameter()
    param.svm_type = svm_forms(SVM_TYPES.index(content.svm_type))
    param.kernel_type = kernel_names(tuple(KERNEL_PARAMETERS).index(content.kernel))
    param.degree, param.gamma, param.coef0 = content.degree, content.gamma, content.coef0
    return svm_model(content, param)
