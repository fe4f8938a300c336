"""LIBSVM itself, on one thread: several would wait for each other when the machine is busy."""

import numpy as np
from libsvm import svmutil
from threadpoolctl import threadpool_limits


def train(X, y, options):
    with threadpool_limits(1):
        return svmutil.svm_train(svmutil.svm_problem(y, X), svmutil.svm_parameter(f"{options} -q"))


def predict(model, X, options=""):
    """Decision values, or probabilities with "-b 1"."""
    with threadpool_limits(1):
        return np.array(svmutil.svm_predict([], X, model, f"{options} -q")[2])
