"""Read and write LIBLINEAR model files: a header of keywords, then a line of weights for each feature.

    solver_type L2R_L2LOSS_SVC_DUAL    nr_feature 3     w
    nr_class 2                         bias 1           0.61      one column, or one for each class
    label 1 -1                                          -0.57
                                                        0.47
                                                        0.12      weight of the constant feature, if bias ≥ 0

f(x) = Σ_j w_j x_j + bias · w_last − ρ, where only one-class files have ρ. With two classes a positive value predicts
the first class of the file, with more classes the largest value decides (Fan et al. 2008). Files of Crammer & Singer's
method with two classes have two columns, the second of which is minus the first.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.fitted_schema import check_fitted
from maxmargin.interchange.model_text import NUMBER, KeywordHeader, ModelText, format_number, integer_labels
from maxmargin.machines.linear.linear_estimator import LinearEstimator
from maxmargin.machines.linear.linear_one_class_svm import LinearOneClassSVM
from maxmargin.machines.linear.linear_svc import LinearSVC
from maxmargin.machines.linear.linear_svr import LinearSVR
from maxmargin.models import LinearFunctions
from maxmargin.storage.output_files import write_atomically

#: LIBLINEAR solver types with a corresponding estimator, and its parameters.
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "L2R_L2LOSS_SVC_DUAL": {"penalty": "l2", "loss": "squared_hinge", "multi_class": "ovr", "dual": True},
    "L2R_L2LOSS_SVC": {"penalty": "l2", "loss": "squared_hinge", "multi_class": "ovr", "dual": False},
    "L2R_L1LOSS_SVC_DUAL": {"penalty": "l2", "loss": "hinge", "multi_class": "ovr", "dual": True},
    "L1R_L2LOSS_SVC": {"penalty": "l1", "loss": "squared_hinge", "multi_class": "ovr", "dual": False},
    "MCSVM_CS": {"multi_class": "crammer_singer"},
}
REGRESSORS: dict[str, dict[str, Any]] = {
    "L2R_L2LOSS_SVR": {"loss": "squared_epsilon_insensitive", "dual": False},
    "L2R_L2LOSS_SVR_DUAL": {"loss": "squared_epsilon_insensitive", "dual": True},
    "L2R_L1LOSS_SVR_DUAL": {"loss": "epsilon_insensitive", "dual": True},
}
ONE_CLASS = "ONECLASS_SVM"

#: Solver types without a corresponding estimator.
LOGISTIC = ("L2R_LR", "L1R_LR", "L2R_LR_DUAL")

KEYWORDS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")


@dataclass(frozen=True, eq=False)
class LiblinearModel:
    """The content of a LIBLINEAR model file.

    Parameters
    ----------
    solver_type : str
        LIBLINEAR's name of the solver.
    weights : float array of shape (n_functions, n_features)
    bias : float
        Value of the constant feature; negative if there is none.
    constants : float array of shape (n_functions,)
        Weights of the constant feature, 0 if there is none.
    labels : int array, optional
        Classes in the order of the file, for classifiers.
    rho : float
        Offset of a one-class model.
    """

    solver_type: str
    weights: Floats = field(repr=False)
    bias: float
    constants: Floats
    labels: Indices | None = None
    rho: float = 0.0

    @property
    def offsets(self) -> Floats:
        """Intercepts of the decision functions."""
        return max(self.bias, 0.0) * self.constants - self.rho

    def decision_values(self, X: Any) -> Floats:
        """Return the decision values of each sample; features without a weight are ignored."""
        width = min(X.shape[1], self.weights.shape[1])
        samples = X[:, :width] if X.shape[1] > width else X
        if sparse.issparse(samples):
            samples = sparse.csr_matrix(samples)
        weights = np.ascontiguousarray(self.weights[:, :width])
        return LinearFunctions(weights, self.offsets).decision_values(samples, 1)

    def predict(self, X: Any) -> Any:
        """Return the label of each sample, ±1 for a one-class model, or the value of a regression."""
        return self.decide(self.decision_values(X))

    def decide(self, decisions: Floats) -> Any:
        """Return the predictions for decision values."""
        if self.labels is None:
            return np.where(decisions[:, 0] > 0, 1, -1) if self.solver_type == ONE_CLASS else decisions[:, 0]
        if len(self.labels) == 2:
            return self.labels[np.where(decisions[:, 0] > 0, 0, 1)]
        return self.labels[np.argmax(decisions, axis=1)]


def read_liblinear_text(file: str | os.PathLike[str] | BinaryIO) -> LiblinearModel:
    """Read a LIBLINEAR model file; raise `ModelFileError` with the line number if it is malformed."""
    text = ModelText(file)
    header = KeywordHeader(text, KEYWORDS, "w", "LIBLINEAR")
    solver = header.choice("solver_type", (*CLASSIFIERS, *REGRESSORS, ONE_CLASS, *LOGISTIC))
    if solver in LOGISTIC:
        text.fail(
            header.line("solver_type"),
            f"{solver} is logistic regression, which maxmargin does not have; use scikit-learn's LogisticRegression",
        )
    classes = header.integer("nr_class", 1)
    if solver not in CLASSIFIERS and classes != 2:
        text.fail(header.line("nr_class"), f"nr_class of {solver} must be 2, as LIBLINEAR writes it")
    labels = header.labels(classes) if solver in CLASSIFIERS else None
    functions = 1 if classes == 2 and solver != "MCSVM_CS" else classes
    bias = float(header.numbers("bias", 1)[0])
    rho = float(header.numbers("rho", 1)[0]) if solver == ONE_CLASS else 0.0
    features = header.integer("nr_feature", 0)
    table = _read_weights(text, header.end + 1, features + (bias >= 0), functions)
    weights = np.ascontiguousarray(table[:features].T)
    constants = table[features] if bias >= 0 else np.zeros(functions)
    return LiblinearModel(solver, weights, bias, constants, labels, rho)


def _read_weights(text: ModelText, first: int, lines: int, columns: int) -> Floats:
    """Return the numbers of the lines from `first` to the end."""
    found = len(text) - first + 1
    if found < lines:
        text.fail(len(text), f"the file ends after {found} lines of weights, but must have {lines}")
    if found > lines:
        text.fail(first + lines, f"there are lines after the {lines} lines of weights announced in the header")
    pattern = re.compile(rf"\s*{NUMBER}(?:\s+{NUMBER}){{{columns - 1}}}\s*")
    for number, line in enumerate(text.lines[first - 1 :], start=first):
        if pattern.fullmatch(line) is None:
            text.numbers(number, line.split(), "a line of weights", columns)
    table = np.array([float(word) for line in text.lines[first - 1 :] for word in line.split()])
    bad = np.flatnonzero(~np.isfinite(table))
    if len(bad):
        text.fail(first + int(bad[0]) // columns, "a number overflows float64")
    return table.reshape(lines, columns)


def write_liblinear_text(model: LiblinearModel, file: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a LIBLINEAR model file; a path is written atomically."""
    lines = [f"solver_type {model.solver_type}", f"nr_class {2 if model.labels is None else len(model.labels)}"]
    if model.labels is not None:
        lines.append(f"label {' '.join(map(format_number, model.labels))}")
    lines += [f"nr_feature {model.weights.shape[1]}", f"bias {format_number(model.bias)}"]
    if model.solver_type == ONE_CLASS:
        lines.append(f"rho {format_number(model.rho)}")
    table = model.weights.T if model.bias < 0 else np.vstack([model.weights.T, model.constants])
    weights = ("".join(f"{value:.17g} " for value in row) for row in table.tolist())
    write_atomically(file, ["\n".join([*lines, "w", *weights, ""]).encode("ascii")])


def read_liblinear_model(file: str | os.PathLike[str] | BinaryIO, n_features: int | None = None) -> Any:
    """Read a LIBLINEAR model file as an estimator.

    The estimator predicts and can be saved, but has no certificate, because the file contains neither the training data
    nor C. With the data, ``certify(X, y)`` of classifiers and regressors computes the certificate of the weights for
    a given C.

    Parameters
    ----------
    file : path or binary file
    n_features : int, optional
        Number of features of the samples; by default that of the model. Additional features have weight 0.

    Returns
    -------
    LinearSVC, LinearSVR or LinearOneClassSVM

    Raises
    ------
    ModelFileError
        If the file is malformed, or a logistic regression; the message names the line and the problem.

    Examples
    --------
    >>> import io
    >>> from maxmargin import LinearSVC
    >>> from maxmargin.interchange import read_liblinear_model, write_liblinear_model
    >>> file = io.BytesIO()
    >>> write_liblinear_model(LinearSVC().fit([[0.0], [1.0]], [3, 7]), file)
    >>> _ = file.seek(0)
    >>> read_liblinear_model(file).predict([[0.9]])
    array([7])
    """
    from maxmargin.estimators.from_machine import as_estimator  # loads scikit-learn

    return as_estimator(linear_machine_of(read_liblinear_text(file), n_features))


def linear_machine_of(model: LiblinearModel, n_features: int | None = None) -> Any:
    """Return the machine with the predictions of a LIBLINEAR model."""
    weights, offsets = model.weights, model.offsets
    width = max(1, weights.shape[1]) if n_features is None else n_features
    if width < weights.shape[1]:
        raise ValueError(f"the model has {weights.shape[1]} features, but n_features is {n_features}")
    weights = np.hstack([weights, np.zeros((len(weights), width - weights.shape[1]))])
    machine: Any
    if model.solver_type == ONE_CLASS:
        machine = LinearOneClassSVM()
        machine.offset_ = -offsets
    else:
        intercept = {"intercept_scaling": model.bias} if model.bias > 0 else {"fit_intercept": False}
        if model.labels is None:
            machine = LinearSVR(**REGRESSORS[model.solver_type], **intercept)
            machine._outputs_, weights = None, weights[0]
        else:
            machine = LinearSVC(**CLASSIFIERS[model.solver_type], **intercept)
            weights, offsets = _sorted_classes(machine, model.labels, weights, offsets)
    machine.n_features_in_, machine.coef_, machine.intercept_ = width, weights, offsets
    check_fitted(machine)
    return machine


def _sorted_classes(machine: LinearSVC, labels: Indices, weights: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Set the sorted classes and return their weights and offsets; two classes share one function."""
    if len(labels) < 2:
        raise ModelFileError(f"the model has a single class, {labels[0]}; a classifier requires at least two")
    order = np.argsort(labels)
    machine.classes_, machine._sigmoids_ = labels[order], None
    if len(labels) > 2:
        return weights[order], offsets[order]
    if len(weights) == 2:  # Crammer & Singer
        return np.diff(weights[order], axis=0), np.diff(offsets[order])
    sign = 1.0 if order[0] == 1 else -1.0
    return sign * weights, sign * offsets


def write_liblinear_model(model: Any, file: str | os.PathLike[str] | BinaryIO, labels: Any = None) -> None:
    """Write a fitted linear estimator as a LIBLINEAR model file.

    Parameters
    ----------
    model : LinearSVC, LinearSVR or LinearOneClassSVM
        A fitted estimator with integer classes, without probabilities, and with one output.
    file : path or binary file
        A path is written atomically.
    labels : array-like, optional
        Order of the classes in the file; by default ascending, descending for two classes.

    Raises
    ------
    ModelFileError
        If LIBLINEAR cannot represent the model.
    """
    model = getattr(model, "best_estimator_", model)  # of one that has chosen its parameters
    write_liblinear_text(liblinear_model_of(model, labels), file)


def liblinear_model_of(model: Any, labels: Any = None) -> LiblinearModel:
    """Return a fitted linear estimator as a LIBLINEAR model."""
    name = type(model).__name__
    if not isinstance(model, LinearEstimator):
        raise ModelFileError(f"LIBLINEAR cannot represent {name}; use write_libsvm_model or maxmargin.save")
    if not hasattr(model, "coef_"):
        raise ModelFileError(f"this {name} is not fitted yet; fit it before writing")
    weights = np.atleast_2d(model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_)
    offsets = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    if isinstance(model, LinearOneClassSVM):
        return LiblinearModel(ONE_CLASS, weights, -1.0, np.zeros(1), rho=-float(offsets[0]))
    bias = float(model.intercept_scaling or 1.0) if model.fit_intercept else -1.0
    constants = offsets / abs(bias)
    if isinstance(model, LinearSVC):
        return _classifier(model, weights, bias, constants, labels)
    if model._outputs_ is not None:
        raise ModelFileError("LIBLINEAR models have one output; fit and write a model for each output")
    return LiblinearModel(_solver_type(model, REGRESSORS), weights, bias, constants)


def _classifier(model: LinearSVC, weights: Floats, bias: float, constants: Floats, labels: Any) -> LiblinearModel:
    if model._knows_probabilities:
        raise ModelFileError(
            "a LinearSVC with probability=True predicts the most probable class, but LIBLINEAR stores no probabilities "
            "for support vector machines; use set_params(probability=False) to predict by decision values"
        )
    classes = integer_labels(model.classes_, "LIBLINEAR")
    solver = _solver_type(model, CLASSIFIERS)
    binary = len(classes) == 2
    if labels is None:  # an order in which decision values of 0 predict the same class as the estimator
        labels = classes[::-1] if binary else classes
    ordered = np.asarray(labels, dtype=np.int64)
    if sorted(ordered.tolist()) != classes.tolist():
        raise ValueError(f"labels must be a permutation of the classes {classes}, not {ordered}")
    if not binary:
        order = np.searchsorted(classes, ordered)
        return LiblinearModel(solver, weights[order], bias, constants[order], ordered)
    sign = 1.0 if ordered[0] == classes[1] else -1.0
    weights, constants = sign * weights, sign * constants
    if solver == "MCSVM_CS":  # two opposite functions, whose difference is the decision function
        weights, constants = 0.5 * np.vstack([weights, -weights]), 0.5 * np.append(constants, -constants)
    return LiblinearModel(solver, weights, bias, constants, ordered)


def _solver_type(model: Any, choices: dict[str, dict[str, Any]]) -> str:
    """Return the solver type for the parameters of an estimator; `dual` decides between two candidates."""
    names = [
        name
        for name, parameters in choices.items()
        if all(getattr(model, key) == value for key, value in parameters.items() if key != "dual")
    ]
    return next((name for name in names if choices[name].get("dual") == model.dual), names[0])
