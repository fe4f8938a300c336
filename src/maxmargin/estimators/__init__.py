"""The estimators, in scikit-learn's interface; only they and the feature maps import scikit-learn.

    online         OnlineSVC, OnlineOneClassSVM
    active         active learning, importance weights
    fit_trace      `maxmargin.trace`: the dual vector after every step of a fit
    linear_path    `maxmargin.linear_path`: models along a path of C

The others are in `maxmargin.machines`.

Public are the names in `__all__`, under ``maxmargin``.
"""

from maxmargin.estimators.online.online_one_class_svm import OnlineOneClassSVM
from maxmargin.estimators.online.online_svc import OnlineSVC
from maxmargin.machines.kernel.lssvc import LSSVC
from maxmargin.machines.kernel.lssvr import LSSVR
from maxmargin.machines.kernel.nu_svc import NuSVC
from maxmargin.machines.kernel.nu_svr import NuSVR
from maxmargin.machines.kernel.one_class_svm import OneClassSVM
from maxmargin.machines.kernel.quantile_svr import QuantileSVR
from maxmargin.machines.kernel.rank_svc import RankSVC
from maxmargin.machines.kernel.svc import SVC
from maxmargin.machines.kernel.svdd import SVDD
from maxmargin.machines.kernel.svr import SVR
from maxmargin.machines.linear.kernel_approximation_svc import KernelApproximationSVC
from maxmargin.machines.linear.linear_one_class_svm import LinearOneClassSVM
from maxmargin.machines.linear.linear_svc import LinearSVC
from maxmargin.machines.linear.linear_svr import LinearSVR

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
