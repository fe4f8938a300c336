"""SVMlight's model files (Joachims 1999): eleven lines of values with a remark each, then the support vectors.

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

f(x) = Σ_s α_s y_s k(x_s, x) − b. A file does not say whether that is a class or a value. With the linear kernel there
is often one line alone, the sum of all support vectors.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np

from maxmargin.interchange.libsvm.estimators import estimator_of
from maxmargin.interchange.libsvm.record import LibsvmModel
from maxmargin.interchange.text_lines import SHOWN, TextLines
from maxmargin.interchange.vector_lines import read_vectors

#: How a file starts.
FIRST_WORDS = "SVM-light Version"

#: The kernels by their numbers; 4 is one of the user's.
KERNELS = ("linear", "polynomial", "rbf", "sigmoid")

#: The first line with a support vector.
FIRST_VECTOR = 12

#: What a function may be, and LIBSVM's name of a machine with such a function.
MACHINES = {"classification": "c_svc", "regression": "epsilon_svr"}


def read_svmlight_model(
    file: str | os.PathLike[str] | BinaryIO, machine: str = "classification", n_features: int | None = None
) -> Any:
    """Return the model in a file of SVMlight as an estimator.

    It predicts and can be saved, but has no certificate: the file knows nothing of the training data.

    Parameters
    ----------
    file : path or binary file
    machine : {"classification", "regression"}, default="classification"
        What was trained, which the file does not say: classes are −1 and 1. A ranking is read as a regression, whose
        values are the scores.
    n_features : int, optional
        How many features samples have, by default the highest index that the file mentions.

    Returns
    -------
    SVC or SVR

    Raises
    ------
    ModelFileError
        With file, line and a sentence that says what is wrong.
    """
    if machine not in MACHINES:
        raise ValueError(f"machine must be 'classification' or 'regression', not {machine!r}")
    text = TextLines(file)
    model, highest = _read(text, MACHINES[machine])
    return estimator_of(model, max(highest, model.n_features) if n_features is None else n_features)


def _read(text: TextLines, svm_type: str) -> tuple[LibsvmModel, int]:
    """Return the model in LIBSVM's terms, and the highest index of a feature."""
    if not text.lines or not text.lines[0].startswith(FIRST_WORDS):
        text.refuse(1, f"this is no model file of SVMlight, which starts with {FIRST_WORDS}")
    if len(text) < FIRST_VECTOR - 1:
        text.refuse(len(text), f"the file ends before its header does, on line {FIRST_VECTOR - 1}")
    code = text.whole(2, _value(text, 2), "the kernel type", 0, 4)
    if code == 4:
        text.refuse(2, "a kernel of the user's own is not in the file; kernel types 0 to 3 are read")
    degree = text.whole(3, _value(text, 3), "the degree -d", 0)
    width, slope, constant = (
        text.number(line, _value(text, line), f"the kernel parameter {name}")
        for line, name in ((4, "-g"), (5, "-s"), (6, "-r"))
    )
    gamma = width if code == 2 else slope
    if code and gamma < 0:
        text.refuse(4 if code == 2 else 5, "a negative factor makes no kernel here; it must be at least 0")
    highest = text.whole(8, _value(text, 8), "the highest feature index", 0)
    count = text.whole(10, _value(text, 10), "the number of support vectors plus 1", 1) - 1
    threshold = text.number(11, _value(text, 11), "the threshold b")
    for line in range(FIRST_VECTOR - 1, len(text)):
        text.lines[line] = text.lines[line].split("#", 1)[0]
    vectors = read_vectors(text, FIRST_VECTOR, count, 1)
    if not vectors.indices.min(initial=1):
        text.refuse(FIRST_VECTOR + int((vectors.starts[1:] <= vectors.indices.argmin()).sum()), "features count from 1")
    signs = np.sign(vectors.coefficients[:, 0])
    order = np.argsort(-signs, kind="stable")  # those of the class 1 come first
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


def _value(text: TextLines, line: int) -> str:
    """Return what stands before the remark on a line of the header."""
    words = text.lines[line - 1].split("#", 1)[0].split()
    if len(words) != 1:
        text.refuse(line, f"there must be one value before a remark, not {' '.join(words)[:SHOWN]!r}")
    return words[0]
