"""The scikit-learn faces of the machines; only they and the feature maps import scikit-learn."""

from maxmargin.estimators.kernel_approximation_svc import KernelApproximationSVC
from maxmargin.estimators.linear_one_class_svm import LinearOneClassSVM
from maxmargin.estimators.linear_svc import LinearSVC
from maxmargin.estimators.linear_svr import LinearSVR
from maxmargin.estimators.lssvc import LSSVC
from maxmargin.estimators.lssvr import LSSVR
from maxmargin.estimators.nu_svc import NuSVC
from maxmargin.estimators.nu_svr import NuSVR
from maxmargin.estimators.one_class_svm import OneClassSVM
from maxmargin.estimators.online_one_class_svm import OnlineOneClassSVM
from maxmargin.estimators.online_svc import OnlineSVC
from maxmargin.estimators.quantile_svr import QuantileSVR
from maxmargin.estimators.rank_svc import RankSVC
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svdd import SVDD
from maxmargin.estimators.svr import SVR

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
