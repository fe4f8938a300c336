"""The estimators, in scikit-learn's interface; only they and the feature maps import scikit-learn.

    base           fitted models, certificates, convergence warnings of all estimators
    kernel         SVC, NuSVC, SVR, NuSVR, LSSVC, LSSVR, QuantileSVR, OneClassSVM, SVDD, RankSVC
    linear         LinearSVC, LinearSVR, LinearOneClassSVM, KernelApproximationSVC
    online         OnlineSVC, OnlineOneClassSVM
    active         active learning, importance weights
    multiclass     multi-class strategies
    calibration    probabilities and noise estimates by cross-validation
    validation     validation of parameters and data, callbacks

Public are the names in `__all__`, under ``maxmargin``.
"""

from maxmargin.estimators.kernel.lssvc import LSSVC
from maxmargin.estimators.kernel.lssvr import LSSVR
from maxmargin.estimators.kernel.nu_svc import NuSVC
from maxmargin.estimators.kernel.nu_svr import NuSVR
from maxmargin.estimators.kernel.one_class_svm import OneClassSVM
from maxmargin.estimators.kernel.quantile_svr import QuantileSVR
from maxmargin.estimators.kernel.rank_svc import RankSVC
from maxmargin.estimators.kernel.svc import SVC
from maxmargin.estimators.kernel.svdd import SVDD
from maxmargin.estimators.kernel.svr import SVR
from maxmargin.estimators.linear.kernel_approximation_svc import KernelApproximationSVC
from maxmargin.estimators.linear.linear_one_class_svm import LinearOneClassSVM
from maxmargin.estimators.linear.linear_svc import LinearSVC
from maxmargin.estimators.linear.linear_svr import LinearSVR
from maxmargin.estimators.online.online_one_class_svm import OnlineOneClassSVM
from maxmargin.estimators.online.online_svc import OnlineSVC

__all__ = [
    "LSSVC",
    "LSSVR",
    "SVC",
    "SVDD",
    "SVR",
    "KernelApproximationSVC",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineOneClassSVM",
    "OnlineSVC",
    "QuantileSVR",
    "RankSVC",
]
