"""LIBLINEAR's model files: a keyword a line, then a line of weights for each feature.

    solver_type L2R_L2LOSS_SVC_DUAL    nr_feature 3     w
    nr_class 2                         bias 1           0.61      one column, or one for each class
    label 1 -1                                          -0.57
                                                        0.47
                                                        0.12      the weight of the constant feature, if bias ≥ 0

f(x) = Σ_j w_j x_j + bias · w_last − ρ, with ρ in files of one class alone. Of two classes a value above 0 says the
first in the file; of more, the largest value wins (Fan et al. 2008). Crammer & Singer's machine of two classes has two
columns, of which the second is minus the first.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from maxmargin._typing import Floats, Indices
from maxmargin.estimators import LinearOneClassSVM, LinearSVC, LinearSVR
from maxmargin.estimators.linear.linear_estimator import LinearEstimator
from maxmargin.interchange.errors import ModelFileError
from maxmargin.interchange.fitted_schema import check_fitted
from maxmargin.interchange.keyword_header import KeywordHeader, number_word, read_labels, whole_labels
from maxmargin.interchange.text_lines import NUMBER, TextLines
from maxmargin.interchange.whole_file import write_whole
from maxmargin.models import LinearFunctions

#: What LIBLINEAR calls the machines that are here, and their parameters.
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

#: Those that are not.
LOGISTIC = ("L2R_LR", "L1R_LR", "L2R_LR_DUAL")

KEYWORDS = ("solver_type", "nr_class", "label", "nr_feature", "bias", "rho")


@dataclass(frozen=True, eq=False)
class LiblinearModel:
    """Everything that is in a LIBLINEAR model file.

    Parameters
    ----------
    solver_type : str
        LIBLINEAR's name of the machine.
    weights : float array of shape (functions, features)
    bias : float
        The value of the constant feature; below 0 there is none.
    constants : float array, one for each function
        The weights of the constant feature, 0 without one.
    labels : int array, optional
        Of classifiers: the classes in their order.
    rho : float
        Of one class.
    """

    solver_type: str
    weights: Floats = field(repr=False)
    bias: float
    constants: Floats
    labels: Indices | None = None
    rho: float = 0.0

    @property
    def offsets(self) -> Floats:
        """What is added to the products with the weights."""
        return max(self.bias, 0.0) * self.constants - self.rho

    def decision_values(self, X: Any) -> Floats:
        """Return the value of each function for each sample; features that the model does not know are left out."""
        known = min(X.shape[1], self.weights.shape[1])
        samples = X[:, :known] if X.shape[1] > known else X
        if sparse.issparse(samples):
            samples = sparse.csr_matrix(samples)
        weights = np.ascontiguousarray(self.weights[:, :known])
        return LinearFunctions(weights, self.offsets).decision_values(samples, 1)

    def predict(self, X: Any) -> Any:
        """Return the label of each sample, 1 or −1 for one class, or the value of the function."""
        decisions = self.decision_values(X)
        if self.labels is None:
            return np.where(decisions[:, 0] > 0, 1, -1) if self.solver_type == ONE_CLASS else decisions[:, 0]
        if len(self.labels) == 2:
            return self.labels[np.where(decisions[:, 0] > 0, 0, 1)]
        return self.labels[np.argmax(decisions, axis=1)]


def read_liblinear_text(file: str | os.PathLike[str] | BinaryIO) -> LiblinearModel:
    """Return the model in a file of LIBLINEAR; a `ModelFileError` names file and line of what is wrong."""
    text = TextLines(file)
    header = KeywordHeader(text, KEYWORDS, "w", "LIBLINEAR")
    solver = header.choice("solver_type", (*CLASSIFIERS, *REGRESSORS, ONE_CLASS, *LOGISTIC))
    if solver in LOGISTIC:
        text.refuse(
            header.line("solver_type"),
            f"{solver} is logistic regression, which is no machine of maxmargin; scikit-learn's LogisticRegression is",
        )
    classes = header.whole("nr_class", 1)
    if solver not in CLASSIFIERS and classes != 2:
        text.refuse(header.line("nr_class"), f"nr_class of {solver} must be 2, as LIBLINEAR writes it")
    labels = read_labels(header, classes) if solver in CLASSIFIERS else None
    functions = 1 if classes == 2 and solver != "MCSVM_CS" else classes
    bias = float(header.numbers("bias", 1)[0])
    rho = float(header.numbers("rho", 1)[0]) if solver == ONE_CLASS else 0.0
    features = header.whole("nr_feature", 0)
    table = _read_weights(text, header.end + 1, features + (bias >= 0), functions)
    weights = np.ascontiguousarray(table[:features].T)
    constants = table[features] if bias >= 0 else np.zeros(functions)
    return LiblinearModel(solver, weights, bias, constants, labels, rho)


def _read_weights(text: TextLines, first: int, lines: int, columns: int) -> Floats:
    """Return the numbers on all lines from `first` on."""
    found = len(text) - first + 1
    if found < lines:
        text.refuse(len(text), f"the file ends after {found} lines of weights, but {lines} must be there")
    if found > lines:
        text.refuse(first + lines, f"there is more behind the {lines} lines of weights that must be there")
    line_of = re.compile(rf"\s*{NUMBER}(?:\s+{NUMBER}){{{columns - 1}}}\s*")
    for number, line in enumerate(text.lines[first - 1 :], start=first):
        if line_of.fullmatch(line) is None:
            text.numbers(number, line.split(), "a line of weights", columns)
    table = np.array([float(word) for line in text.lines[first - 1 :] for word in line.split()])
    bad = np.flatnonzero(~np.isfinite(table))
    if len(bad):
        text.refuse(first + int(bad[0]) // columns, "a number is too large")
    return table.reshape(lines, columns)


def write_liblinear_text(model: LiblinearModel, file: str | os.PathLike[str] | BinaryIO) -> None:
    """Write a model as LIBLINEAR does; a path is written beside its place and moved there when it is complete."""
    lines = [f"solver_type {model.solver_type}", f"nr_class {2 if model.labels is None else len(model.labels)}"]
    if model.labels is not None:
        lines.append(f"label {' '.join(map(number_word, model.labels))}")
    lines += [f"nr_feature {model.weights.shape[1]}", f"bias {number_word(model.bias)}"]
    if model.solver_type == ONE_CLASS:
        lines.append(f"rho {number_word(model.rho)}")
    table = model.weights.T if model.bias < 0 else np.vstack([model.weights.T, model.constants])
    weights = ("".join(f"{value:.17g} " for value in row) for row in table.tolist())
    write_whole(file, ["\n".join([*lines, "w", *weights, ""]).encode("ascii")])


def read_liblinear_model(file: str | os.PathLike[str] | BinaryIO, n_features: int | None = None) -> Any:
    """Return the model in a file of LIBLINEAR as an estimator.

    It predicts and can be saved, but has no certificate: a file of LIBLINEAR knows neither the training data nor its
    own C. With the data, ``certify(X, y)`` of classifiers and regressors says how good the weights are for a C.

    Parameters
    ----------
    file : path or binary file
    n_features : int, optional
        How many features samples have, by default as many as the model knows of; more have the weight 0.

    Returns
    -------
    LinearSVC, LinearSVR or LinearOneClassSVM

    Raises
    ------
    ModelFileError
        With file, line and a sentence that says what is wrong. Logistic regression is none of our machines.

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
    return linear_estimator_of(read_liblinear_text(file), n_features)


def linear_estimator_of(model: LiblinearModel, n_features: int | None = None) -> Any:
    """Return the estimator that predicts what a model of LIBLINEAR does."""
    weights, offsets = model.weights, model.offsets
    width = max(1, weights.shape[1]) if n_features is None else n_features
    if width < weights.shape[1]:
        raise ValueError(f"the model knows of {weights.shape[1]} features, but n_features is {n_features}")
    weights = np.hstack([weights, np.zeros((len(weights), width - weights.shape[1]))])
    estimator: Any
    if model.solver_type == ONE_CLASS:
        estimator = LinearOneClassSVM()
        estimator.offset_ = -offsets
    else:
        intercept = {"intercept_scaling": model.bias} if model.bias > 0 else {"fit_intercept": False}
        if model.labels is None:
            estimator = LinearSVR(**REGRESSORS[model.solver_type], **intercept)
            estimator._outputs_, weights = None, weights[0]
        else:
            estimator = LinearSVC(**CLASSIFIERS[model.solver_type], **intercept)
            weights, offsets = _sorted_classes(estimator, model.labels, weights, offsets)
    estimator.n_features_in_, estimator.coef_, estimator.intercept_ = width, weights, offsets
    check_fitted(estimator)
    return estimator


def _sorted_classes(estimator: LinearSVC, labels: Indices, weights: Floats, offsets: Floats) -> tuple[Floats, Floats]:
    """Set the classes, sorted, and return their functions; two share one, positive for the second."""
    if len(labels) < 2:
        raise ModelFileError(f"the model knows a single class, {labels[0]}; no estimator answers that alone")
    order = np.argsort(labels)
    estimator.classes_, estimator._sigmoids_ = labels[order], None
    if len(labels) > 2:
        return weights[order], offsets[order]
    if len(weights) == 2:  # Crammer & Singer's
        return np.diff(weights[order], axis=0), np.diff(offsets[order])
    sign = 1.0 if order[0] == 1 else -1.0
    return sign * weights, sign * offsets


def write_liblinear_model(model: Any, file: str | os.PathLike[str] | BinaryIO, labels: Any = None) -> None:
    """Write a fitted linear estimator as a model file of LIBLINEAR, exactly.

    Parameters
    ----------
    model : LinearSVC, LinearSVR or LinearOneClassSVM
        Fitted. Classes are whole numbers; there are no probabilities, and one output.
    file : path or binary file
        A path is written beside its place and moved there when it is complete.
    labels : array-like, optional
        The classes in the order that they should have in the file; by default sorted, two the other way round.

    Raises
    ------
    ModelFileError
        If LIBLINEAR has no such model.
    """
    write_liblinear_text(liblinear_model_of(model, labels), file)


def liblinear_model_of(model: Any, labels: Any = None) -> LiblinearModel:
    """Return what LIBLINEAR's files have of a fitted linear estimator."""
    name = type(model).__name__
    if not isinstance(model, LinearEstimator):
        raise ModelFileError(f"LIBLINEAR has no model like {name}; write_libsvm_model or maxmargin.save may write it")
    if not hasattr(model, "coef_"):
        raise ModelFileError(f"this {name} is not fitted yet; only fitted models have files")
    weights = np.atleast_2d(model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_)
    offsets = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    if isinstance(model, LinearOneClassSVM):
        return LiblinearModel(ONE_CLASS, weights, -1.0, np.zeros(1), rho=-float(offsets[0]))
    bias = float(model.intercept_scaling or 1.0) if model.fit_intercept else -1.0
    constants = offsets / abs(bias)
    if isinstance(model, LinearSVC):
        return _classifier(model, weights, bias, constants, labels)
    if model._outputs_ is not None:
        raise ModelFileError("LIBLINEAR's models have one output; write a model of each output alone")
    return LiblinearModel(_solver_type(model, REGRESSORS), weights, bias, constants)


def _classifier(model: LinearSVC, weights: Floats, bias: float, constants: Floats, labels: Any) -> LiblinearModel:
    if model._knows_probabilities:
        raise ModelFileError(
            "a LinearSVC with probability=True predicts the most probable class, and LIBLINEAR's files of support "
            "vector machines have no probabilities; set_params(probability=False) makes it predict by decision values"
        )
    classes = whole_labels(model.classes_, "LIBLINEAR")
    solver = _solver_type(model, CLASSIFIERS)
    two = len(classes) == 2
    if labels is None:  # so that values of 0 are decided as here
        labels = classes[::-1] if two else classes
    wanted = np.asarray(labels, dtype=np.int64)
    if sorted(wanted.tolist()) != classes.tolist():
        raise ValueError(f"the classes are {classes}, and {wanted} is no other order of them")
    if not two:
        order = np.searchsorted(classes, wanted)
        return LiblinearModel(solver, weights[order], bias, constants[order], wanted)
    sign = 1.0 if wanted[0] == classes[1] else -1.0
    weights, constants = sign * weights, sign * constants
    if solver == "MCSVM_CS":  # two opposite functions, of which ours is the difference
        weights, constants = 0.5 * np.vstack([weights, -weights]), 0.5 * np.append(constants, -constants)
    return LiblinearModel(solver, weights, bias, constants, wanted)


def _solver_type(model: Any, choices: dict[str, dict[str, Any]]) -> str:
    """Return LIBLINEAR's name of the machine with these parameters; where there are two, `dual` decides."""
    names = [
        name
        for name, parameters in choices.items()
        if all(getattr(model, key) == value for key, value in parameters.items() if key != "dual")
    ]
    return next((name for name in names if choices[name].get("dual") == model.dual), names[0])
