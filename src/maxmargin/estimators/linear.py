"""The linear estimators: linear machines in scikit-learn's interface; the docstrings are those of the machines."""

from __future__ import annotations

from maxmargin.estimators.base import Classifier, OutlierDetector, Regressor
from maxmargin.machines.linear import kernel_approximation_svc, linear_one_class_svm, linear_svc, linear_svr


class LinearSVC(Classifier, linear_svc.LinearSVC):  # noqa: D101
    pass


class LinearSVR(Regressor, linear_svr.LinearSVR):  # noqa: D101
    pass


class LinearOneClassSVM(OutlierDetector, linear_one_class_svm.LinearOneClassSVM):  # noqa: D101
    pass


class KernelApproximationSVC(Classifier, kernel_approximation_svc.KernelApproximationSVC):  # noqa: D101
    pass
