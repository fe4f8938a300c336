"""Read SVMlight model files (Joachims 1999): eleven header lines with comments, then the support vectors.

    SVM-light Version V6.02
    2 # kernel type                                  0 linear, 1 polynomial, 2 rbf, 3 sigmoid
    3 # kernel parameter -d                          of the polynomial kernel (s x·z + c)^d
    0.5 # kernel parameter -g                        of exp(−g ‖x − z‖²)
    1 # kernel parameter -s                          of the polynomial and the sigmoid kernel, tanh(s x·z + c)
    1 # kernel parameter -r                          their c
    empty# kernel parameter -u
    4 # highest feature index
    100 # number of training documents
    3 # number of support vectors plus 1
    0.25 # threshold b, each following line is a SV (starting with alpha*y)
    0.7 1:0.5 4:1 #
    -0.7 2:1 #

f(x) = Σ_s α_s y_s k(x_s, x) − b. The file does not say whether it is a classifier or a regression. With the linear
kernel there is often a single line, the sum of all support vectors.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np

from maxmargin.interchange.libsvm.estimators import machine_of
from maxmargin.interchange.libsvm.model import LibsvmModel
from maxmargin.interchange.model_text import SHOWN_CHARACTERS, ModelText
from maxmargin.interchange.support_vector_lines import read_vectors

#: First words of a file.
FIRST_WORDS = "SVM-light Version"

#: Kernels by number; 4 is a user-defined kernel.
KERNELS = ("linear", "polynomial", "rbf", "sigmoid")

#: Line number of the first support vector.
FIRST_VECTOR = 12

#: LIBSVM's type of model for each task.
SVM_TYPES = {"classification": "c_svc", "regression": "epsilon_svr"}


def read_svmlight_model(
    file: str | os.PathLike[str] | BinaryIO, task: str = "classification", n_features: int | None = None
) -> Any:
    """Read an SVMlight model file as an estimator.

    The estimator predicts and can be saved, but has no certificate, because the file contains no training data.

    Parameters
    ----------
    file : path or binary file
    task : {"classification", "regression"}, default="classification"
        The task of the model, which the file does not contain. Classes are −1 and 1. Read a ranking as a regression,
        whose values are the scores.
    n_features : int, optional
        Number of features of the samples; by default the highest index in the file.

    Returns
    -------
    SVC or SVR

    Raises
    ------
    ModelFileError
        If the file is malformed; the message names the line and the problem.
    """
    from maxmargin.estimators.from_machine import as_estimator  # loads scikit-learn

    return as_estimator(read_svmlight_machine(file, task, n_features))


def read_svmlight_machine(
    file: str | os.PathLike[str] | BinaryIO, task: str = "classification", n_features: int | None = None
) -> Any:
    """Read an SVMlight model file as a machine, which does not need scikit-learn."""
    if task not in SVM_TYPES:
        raise ValueError(f"task must be 'classification' or 'regression', not {task!r}")
    text = ModelText(file)
    model, highest = _read(text, SVM_TYPES[task])
    return machine_of(model, max(highest, model.n_features) if n_features is None else n_features)


def _read(text: ModelText, svm_type: str) -> tuple[LibsvmModel, int]:
    """Return the model as a LibsvmModel, and the highest feature index."""
    if not text.lines or not text.lines[0].startswith(FIRST_WORDS):
        text.fail(1, f"not an SVMlight model file, which starts with {FIRST_WORDS}")
    if len(text) < FIRST_VECTOR - 1:
        text.fail(len(text), f"the header is incomplete; it has {FIRST_VECTOR - 1} lines")
    code = text.integer(2, _value(text, 2), "the kernel type", 0, 4)
    if code == 4:
        text.fail(2, "user-defined kernels (type 4) are not stored in the file; only kernel types 0 to 3 can be read")
    degree = text.integer(3, _value(text, 3), "the degree -d", 0)
    width, slope, constant = (
        text.number(line, _value(text, line), f"the kernel parameter {name}")
        for line, name in ((4, "-g"), (5, "-s"), (6, "-r"))
    )
    gamma = width if code == 2 else slope
    if code and gamma < 0:
        text.fail(4 if code == 2 else 5, "the kernel parameter must be at least 0")
    highest = text.integer(8, _value(text, 8), "the highest feature index", 0)
    count = text.integer(10, _value(text, 10), "the number of support vectors plus 1", 1) - 1
    threshold = text.number(11, _value(text, 11), "the threshold b")
    for line in range(FIRST_VECTOR - 1, len(text)):
        text.lines[line] = text.lines[line].split("#", 1)[0]
    vectors = read_vectors(text, FIRST_VECTOR, count, 1)
    if not vectors.indices.min(initial=1):
        line = FIRST_VECTOR + int((vectors.starts[1:] <= vectors.indices.argmin()).sum())
        text.fail(line, "feature indices start at 1")
    signs = np.sign(vectors.coefficients[:, 0])
    order = np.argsort(-signs, kind="stable")  # class 1 first
    classifier = svm_type == "c_svc"
    model = LibsvmModel(
        svm_type=svm_type,
        kernel=KERNELS[code],
        rho=np.array([threshold]),
        coefficients=np.ascontiguousarray(vectors.coefficients[order].T),
        support_vectors=vectors.matrix(1, int(vectors.indices.max(initial=0)))[order],
        degree=degree if code == 1 else 3,
        gamma=gamma if code else 0.0,
        coef0=constant if code in (1, 3) else 0.0,
        labels=np.array([1, -1]) if classifier else None,
        counts=np.array([(signs > 0).sum(), (signs <= 0).sum()]) if classifier else None,
    )
    return model, highest


def _value(text: ModelText, line: int) -> str:
    """Return the value before the comment of a header line."""
    words = text.lines[line - 1].split("#", 1)[0].split()
    if len(words) != 1:
        text.fail(line, f"expected one value before the comment, not {' '.join(words)[:SHOWN_CHARACTERS]!r}")
    return words[0]
