"""LIBLINEAR's Python interface: `train`, `predict` and the other functions of ``liblinear.liblinearutil``.

A script that begins with ``from liblinear.liblinearutil import *`` runs with ``from maxmargin.liblinearutil import *``:
the same options, arguments, return values and printed lines. Logistic regression (``-s 0``, ``6`` and ``7``) is an
error; the structures of ctypes (``feature_node``, ``liblinear.train``) have no counterpart.

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
from maxmargin.cli.libsvm import liblinear_training
from maxmargin.cli.libsvm.classes import discard
from maxmargin.cli.libsvm.liblinear_parameters import (
    AVAILABLE,
    OPTION_VALUES,
    SOLVER_TYPES,
    TOLERANCES,
    LiblinearParameters,
    read_parameters,
)
from maxmargin.cli.libsvm.liblinear_train import line_of_search, model_of
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
from maxmargin.interchange.liblinear_model import (
    ONE_CLASS,
    REGRESSORS,
    LiblinearModel,
    read_liblinear_text,
    write_liblinear_text,
)

__all__ = [
    "csr_find_scale_param",
    "csr_scale",
    "evaluations",
    "load_model",
    "model",
    "parameter",
    "predict",
    "problem",
    "save_model",
    "solver_names",
    "svm_read_problem",
    "train",
]


class solver_names(IntEnum):  # noqa: N801  # LIBLINEAR's name
    """The numbers of ``-s``; those of logistic regression are known, but not available."""

    L2R_LR = 0
    L2R_L2LOSS_SVC_DUAL = 1
    L2R_L2LOSS_SVC = 2
    L2R_L1LOSS_SVC_DUAL = 3
    MCSVM_CS = 4
    L1R_L2LOSS_SVC = 5
    L1R_LR = 6
    L2R_LR_DUAL = 7
    L2R_L2LOSS_SVR = 11
    L2R_L2LOSS_SVR_DUAL = 12
    L2R_L1LOSS_SVR_DUAL = 13
    ONECLASS_SVM = 21


class problem:  # noqa: N801
    """Training data, which several calls of `train` may share.

    Parameters
    ----------
    y : list, tuple or array of shape (n_samples,)
        Labels or targets.
    x : list or tuple of samples, array or sparse matrix of shape (n_samples, n_features)
        A sample in a list is a list, a tuple, an array, or a dict from indices (from 1 on) to values.
    bias : float, default=-1
        Value of a constant feature; negative for none. `train` sets that of its options.

    Attributes
    ----------
    l, n : int
        Number of samples; largest index, with the constant feature.
    y : float array

    Examples
    --------
    >>> from maxmargin.liblinearutil import parameter, problem, train
    >>> data = problem([1, -1], [{1: 1, 3: 1}, {1: -1, 3: -1}])
    >>> weights, intercept = train(data, parameter("-c 4 -q")).get_decfun()
    >>> [round(weight, 4) for weight in weights], intercept
    ([0.4848, 0.0, 0.4848], 0.0)
    """

    def __init__(self, y: Any, x: Any, bias: float = -1) -> None:
        self.y = target_array(y)
        rows = feature_rows(x)
        if rows.zero_based:
            raise ValueError("the indices of LIBLINEAR's features start at 1, but a sample has index 0")
        self.X = rows.X if sparse.issparse(rows.X) else rows.X[:, : max(1, rows.max_index)]
        self.l = len(self.y)
        if self.l != self.X.shape[0]:
            raise ValueError("len(y) != len(x)")
        self.set_bias(bias)

    @property
    def n(self) -> int:
        """Largest index, with the constant feature."""
        return self.X.shape[1] + (self.bias >= 0)  # type: ignore[no-any-return]

    def set_bias(self, bias: float) -> None:
        """Set the value of the constant feature; negative for none."""
        self.bias = float(bias)

    def copy(self) -> problem:
        """Return a problem that shares the samples; its `y` and bias can be replaced."""
        return copy(self)


class parameter:  # noqa: N801
    """The parameters of `train`; fields may be changed.

    Parameters
    ----------
    options : str or list of str, optional
        Those of LIBLINEAR's train, such as ``"-s 2 -c 4 -B 1"``.

    Attributes
    ----------
    solver_type : int
    C, p, nu, eps, bias : float
        LIBLINEAR's names; `eps` is the tolerance relative to LIBLINEAR's default of the type.
    regularize_bias : int
        0 with ``-R``.
    weight_label, weight : list
        The labels and factors of ``-wi``; their number is `nr_weight`.
    flag_cross_validation, flag_find_parameters : bool
        Whether ``-v`` and ``-C`` were given.
    flag_C_specified, flag_p_specified : bool
        Whether a search starts at `C` and `p`.
    nr_fold : int
        Number of folds.
    quiet : bool
        Whether ``-q`` was given.

    Examples
    --------
    >>> from maxmargin.liblinearutil import parameter
    >>> parameter("-s 13 -p 0.2").p
    0.2
    """

    def __init__(self, options: str | Sequence[str] | None = None) -> None:
        self.parse_options(options)

    def set_to_default_values(self) -> None:
        """Set the defaults of all fields."""
        self._set(LiblinearParameters())

    def parse_options(self, options: str | Sequence[str] | None) -> None:
        """Set the fields to those of options, and all others to the defaults."""
        with program_errors():
            self._set(read_parameters(parse_words(options, OPTION_VALUES)))

    def _set(self, parameters: LiblinearParameters) -> None:
        kind = parameters.solver_type
        if kind not in list(solver_names):
            raise ValueError(f"{kind} is not a valid solver_names: {AVAILABLE}")
        self.solver_type = solver_names(kind)
        self.C = 1.0 if parameters.cost is None else parameters.cost
        self.p = 0.1 if parameters.epsilon is None else parameters.epsilon
        self.nu, self.bias = parameters.nu, parameters.bias
        self.eps = TOLERANCES.get(kind, 0.01) if parameters.tolerance is None else parameters.tolerance
        self.regularize_bias = int(not parameters.free_bias)
        self.weight_label = [label for label, _ in parameters.weights]
        self.weight = [factor for _, factor in parameters.weights]
        self.flag_find_parameters = parameters.search
        self.flag_cross_validation = parameters.folds is not None and not parameters.search
        self.flag_C_specified, self.flag_p_specified = parameters.cost is not None, parameters.epsilon is not None
        self.nr_fold = parameters.folds or 0
        self.quiet = parameters.quiet

    @property
    def nr_weight(self) -> int:
        """Number of factors of classes."""
        return len(self.weight)

    def to_program(self) -> LiblinearParameters:
        """Return the parameters of the program train."""
        searches = self.flag_find_parameters
        return LiblinearParameters(
            requested_type=int(self.solver_type),
            cost=None if searches and not self.flag_C_specified else self.C,
            epsilon=None if searches and not self.flag_p_specified else self.p,
            nu=self.nu,
            tolerance=self.eps,
            bias=self.bias,
            free_bias=not self.regularize_bias,
            weights=tuple(zip(self.weight_label, self.weight, strict=True)),
            folds=self.nr_fold if searches or self.flag_cross_validation else None,
            search=searches,
            quiet=self.quiet,
        )

    def __str__(self) -> str:
        names = ["solver_type", "eps", "C", "nr_weight", *vars(self)]
        return "\n".join(f" {name}: {getattr(self, name)}" for name in dict.fromkeys(names)).strip()


class model:  # noqa: N801
    """A model of `train` or `load_model`, with the methods of LIBLINEAR's.

    Attributes
    ----------
    param : parameter
        Of a model from a file only the type.
    nr_class, nr_feature : int
    bias : float
        Value of the constant feature; negative for none.
    machine : maxmargin machine or None
        The fitted machine, with its `certificate_`; None for a model from a file or of a single class.
    content : LiblinearModel
        What a model file has.
    """

    def __init__(self, content: LiblinearModel, param: parameter, machine: Any = None) -> None:
        self.content = content
        self.param = param
        self.machine = machine
        self.nr_class = 2 if content.labels is None else len(content.labels)
        self.nr_feature = int(content.weights.shape[1])
        self.bias = content.bias

    def get_nr_feature(self) -> int:
        """Return the number of features, without the constant one."""
        return self.nr_feature

    def get_nr_class(self) -> int:
        """Return the number of classes; 2 for regression and one class."""
        return self.nr_class

    def get_labels(self) -> list[int]:
        """Return the labels in the order of the decision values; for regression and one class, zeros."""
        return [0] * self.nr_class if self.content.labels is None else self.content.labels.tolist()

    def get_decfun_coef(self, feat_idx: int, label_idx: int = 0) -> float:
        """Return the weight of a feature, from 1, for a class, from 0; 0 for those that do not exist."""
        function = self._function(label_idx)
        if function is None or not 1 <= feat_idx <= self.nr_feature:
            return 0.0
        number, sign = function
        return sign * float(self.content.weights[number, feat_idx - 1])

    def get_decfun_bias(self, label_idx: int = 0) -> float:
        """Return the intercept for a class, from 0; 0 for one that does not exist, and for a one-class model."""
        function = self._function(label_idx)
        if function is None or self.is_oneclass_model() or self.bias <= 0:
            return 0.0
        number, sign = function
        return sign * self.bias * float(self.content.constants[number])

    def get_decfun_rho(self) -> float:
        """Return ρ of a one-class model, f(x) = w·x − ρ; 0 for others."""
        return float(self.content.rho) if self.is_oneclass_model() else 0.0

    def get_decfun(self, label_idx: int = 0) -> tuple[list[float], float]:
        """Return weights and intercept for a class, from 0."""
        weights = [self.get_decfun_coef(number, label_idx) for number in range(1, self.nr_feature + 1)]
        return weights, -self.get_decfun_rho() if self.is_oneclass_model() else self.get_decfun_bias(label_idx)

    def is_probability_model(self) -> bool:
        """Return False: only logistic regression has probabilities."""
        return False

    def is_regression_model(self) -> bool:
        """Return whether the model predicts values."""
        return self.content.solver_type in REGRESSORS

    def is_oneclass_model(self) -> bool:
        """Return whether the model tells inliers from outliers."""
        return self.content.solver_type == ONE_CLASS

    def _function(self, label_idx: int) -> tuple[int, float] | None:
        """Return the number of the decision function of a class and its sign; two classes share one."""
        if self.content.labels is None:
            return 0, 1.0
        if not 0 <= label_idx < self.nr_class:
            return None
        if len(self.content.weights) == 1:
            return 0, 1.0 if label_idx == 0 else -1.0
        return label_idx, 1.0


def train(arg1: Any, arg2: Any = None, arg3: Any = None) -> model | float | tuple[float, float, float]:
    """Train a linear machine, cross-validate, or search for C, as LIBLINEAR's ``train``.

    The calls are ``train(y, x, options)``, ``train(problem, options)`` and ``train(problem, parameter)``.

    Parameters
    ----------
    arg1 : list, tuple or array of labels; or problem
    arg2 : samples, as for `problem`; or options or parameter
    arg3 : str or list of str, optional
        Options of LIBLINEAR's train; those of `maxmargin liblinear-train`.

    Returns
    -------
    model, float or tuple
        With ``-v``, the accuracy of the cross-validation in per cent, or the mean squared error of a regression. With
        ``-C``, the best C, the best ε of a regression (−1 for classes), and the accuracy as a fraction or the error.

    Raises
    ------
    ValueError
        If an option, a parameter or the data are invalid.

    Examples
    --------
    >>> from maxmargin.liblinearutil import predict, train
    >>> found = train([1, -1, 1, -1], [[2.0], [-2.0], [1.0], [-1.0]], "-s 3 -c 10 -q")
    >>> labels, metrics, values = predict([1], [[0.5]], found)
    Accuracy = 100% (1/1) (classification)
    >>> labels, metrics
    ([1.0], (100.0, 0.0, nan))
    """
    if isinstance(arg1, problem):
        data, param = arg1, arg2 if isinstance(arg2, parameter) else parameter(arg2)
    elif isinstance(arg1, list | tuple | np.ndarray):
        data, param = problem(arg1, arg2), parameter(arg3)
    else:
        raise TypeError("Wrong types for the arguments: train takes (y, x, options) or (problem, options)")
    data.set_bias(param.bias)
    parameters = param.to_program()
    log = discard if parameters.quiet else print
    with program_errors():
        y = liblinear_training.check_targets(data.y, parameters)
        if parameters.search:
            result = liblinear_training.search(data.X, y, parameters, log)
            print(f"{line_of_search(result, parameters)}\n")
            if parameters.regression:
                return result.cost, result.epsilon, result.score
            return result.cost, -1.0, result.score / 100.0
        if parameters.folds is not None:
            evaluation = liblinear_training.cross_validate(data.X, y, parameters, log)
            for line in evaluation.lines(parameters.regression, prefix="Cross Validation "):
                print(line)
            return evaluation.mean_squared_error if parameters.regression else evaluation.accuracy
        trained = liblinear_training.train(data.X, y, parameters, log)
        return model(model_of(trained, parameters, data.X.shape[1]), copy(param), trained.machine)


def predict(
    y: Any, x: Any, m: model, options: str = ""
) -> tuple[list[float], tuple[float, float, float], list[list[float]]]:
    """Predict, and print accuracy or error, as LIBLINEAR's ``predict``.

    Parameters
    ----------
    y : list, tuple or array of shape (n_samples,)
        True labels, for the metrics; ``[]`` if they are unknown.
    x : samples, as for `problem`
        Features without a weight are ignored.
    m : model
    options : str
        ``-q`` to print nothing; ``-b 1`` is for logistic regression, which is not available.

    Returns
    -------
    pred_labels : list of float
    pred_metrics : tuple of float
        Accuracy in per cent, mean squared error, squared correlation coefficient.
    pred_values : list of lists of float
        The decision values of each sample: one for each class, or a single one for two classes, regression and one
        class.
    """
    probability, info = predict_options(options)
    if probability:
        raise TypeError("probability output is only supported for logistic regression")
    rows = feature_rows(x)
    X = rows.X[:, 1:] if rows.zero_based else rows.X
    decisions = m.content.decision_values(X)
    labels = np.asarray(m.content.decide(decisions), dtype=np.float64)
    columns = 1 if m.nr_class <= 2 else m.nr_class
    metrics = print_metrics(y, labels, m.is_regression_model(), info)
    return labels.tolist(), metrics, decisions[:, :columns].tolist()


def save_model(model_file_name: str | os.PathLike[str], model: model) -> None:
    """Write a model as a LIBLINEAR model file."""
    write_liblinear_text(model.content, model_file_name)


def load_model(model_file_name: str | os.PathLike[str]) -> model | None:
    """Read a LIBLINEAR model file; a file that cannot be read is a printed line and None, as in LIBLINEAR's package.

    Raises
    ------
    ModelFileError
        If the file is malformed; the message names the line and the problem.
    """
    try:
        content = read_liblinear_text(model_file_name)
    except OSError:
        print(f"can't open model file {os.fspath(model_file_name)}")
        return None
    param = parameter()
    numbers = {name: number for number, name in SOLVER_TYPES.items()}
    param.solver_type, param.bias = solver_names(numbers[content.solver_type]), content.bias
    return model(content, param)
