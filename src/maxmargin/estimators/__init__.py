"""The estimators: machines in scikit-learn's interface; only these and the feature maps import scikit-learn.

    base                 what scikit-learn's interface adds to a machine
    sklearn_callbacks    scikit-learn's callbacks
    kernel               SVC, NuSVC, SVR, NuSVR, LSSVC, LSSVR, QuantileSVR, OneClassSVM, SVDD, MKLSVC, MKLSVR,
                         MKLOneClassSVM, RankSVC, TransductiveSVC
    linear               LinearSVC, LinearSVR, LinearOneClassSVM, KernelApproximationSVC
    structured           StructuredSVC, whose samples are no table
    online               OnlineSVC, OnlineOneClassSVM
    active               active learning, importance weights
    fit_trace            `maxmargin.trace`: the dual vector after every step of a fit
    from_machine         the estimator of a machine
    kernel_rfe           `maxmargin.KernelRFE`: recursive feature elimination from the dual variables
    linear_path          `maxmargin.linear_path`: models along a path of C
    left_out_attributes  leave-one-out as attributes of fitted machines
    regularization_path  `maxmargin.regularization_path`: kernel machines for all C

Public are the names in `__all__` and `StructuredSVC`, under ``maxmargin``.
"""

from maxmargin.estimators.kernel import (
    LSSVC,
    LSSVR,
    MKLSVC,
    MKLSVR,
    SVC,
    SVDD,
    SVR,
    MKLOneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
    RankSVC,
    TransductiveSVC,
)
from maxmargin.estimators.linear import KernelApproximationSVC, LinearOneClassSVM, LinearSVC, LinearSVR
from maxmargin.estimators.online.online_one_class_svm import OnlineOneClassSVM
from maxmargin.estimators.online.online_svc import OnlineSVC

__all__ = [
    "LSSVC",
    "LSSVR",
    "MKLSVC",
    "MKLSVR",
    "SVC",
    "SVDD",
    "SVR",
    "KernelApproximationSVC",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVR",
    "MKLOneClassSVM",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineOneClassSVM",
    "OnlineSVC",
    "QuantileSVR",
    "RankSVC",
    "TransductiveSVC",
]
