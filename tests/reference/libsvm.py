"""LIBSVM itself, on one thread: several would wait for each other when the machine is busy."""

from ctypes import c_double

import numpy as np
from libsvm import svmutil
from libsvm.svm import gen_svm_nodearray
from libsvm.svm import libsvm as library
from threadpoolctl import threadpool_limits


def train(X, y, options):
    with threadpool_limits(1):
        return svmutil.svm_train(svmutil.svm_problem(y, X), svmutil.svm_parameter(f"{options} -q"))


def predict(model, X, options=""):
    """Decision values, or probabilities with "-b 1"."""
    with threadpool_limits(1):
        return np.array(svmutil.svm_predict([], X, model, f"{options} -q")[2])


def load(path):
    """The model in a file, by LIBSVM's own reader."""
    return svmutil.svm_load_model(str(path))


def decide(model, X, kernel_values=False):
    """Predictions and decision values; the package's `svm_predict` writes beyond its buffer for ν-classification."""
    count = model.get_nr_class() if model.get_svm_type() < 2 else 2
    answers, values = [], []
    for row in np.asarray(X, dtype=float):
        nodes, _ = gen_svm_nodearray([0.0, *row] if kernel_values else row.tolist(), isKernel=kernel_values)
        buffer = (c_double * (count * (count - 1) // 2))()
        answers.append(library.svm_predict_values(model, nodes, buffer))
        values.append(list(buffer))
    return np.array(answers), np.array(values)


def probabilities(model, X, kernel_values=False):
    """Probabilities of the classes in the order of the model, or to be inside and outside."""
    rows = []
    for row in np.asarray(X, dtype=float):
        nodes, _ = gen_svm_nodearray([0.0, *row] if kernel_values else row.tolist(), isKernel=kernel_values)
        buffer = (c_double * max(2, model.get_nr_class()))()
        library.svm_predict_probability(model, nodes, buffer)
        rows.append(list(buffer))
    return np.array(rows)
