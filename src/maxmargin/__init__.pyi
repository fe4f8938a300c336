from . import blocks, datasets, feature_maps, interchange, kernels, online, search, solvers
from .comparison import Comparison, compare
from .estimators import (
    LSSVC,
    LSSVR,
    MKLSVC,
    MKLSVR,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    MKLOneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineOneClassSVM,
    OnlineSVC,
    QuantileSVR,
    RankSVC,
    TransductiveSVC,
)
from .estimators.active.active_learner import ActiveLearner
from .estimators.active.active_query import query
from .estimators.active.importance_weights import importance_weights
from .estimators.fit_trace import FitTrace, MulticlassTrace, trace
from .estimators.kernel_rfe import KernelRFE
from .estimators.l1_min_c import l1_min_c
from .estimators.linear_path import LinearPath, linear_path
from .estimators.regularization_path import RegularizationPath, regularization_path
from .estimators.structured import StructuredSVC
from .interchange import load, save
from .problems import Certificate, DualProblem, Progress, Solution, Status, certify
from .search import GradientSearchResult, GridSearchResult, gradient_search, grid_search, hyperparameter_gradient
from .search.estimators import SVCCV, SVRCV, LinearSVCCV, LinearSVRCV, OneClassSVMCV
from .selection.error_estimates import ErrorEstimates, error_estimates
from .selection.leave_one_out import LeaveOneOut, leave_one_out
from .show_versions import show_versions

__version__: str

__all__ = [
    "LSSVC",
    "LSSVR",
    "MKLSVC",
    "MKLSVR",
    "SVC",
    "SVCCV",
    "SVDD",
    "SVR",
    "SVRCV",
    "ActiveLearner",
    "Certificate",
    "Comparison",
    "DualProblem",
    "ErrorEstimates",
    "FitTrace",
    "GradientSearchResult",
    "GridSearchResult",
    "KernelApproximationSVC",
    "KernelRFE",
    "LeaveOneOut",
    "LinearOneClassSVM",
    "LinearPath",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "MKLOneClassSVM",
    "MulticlassTrace",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OneClassSVMCV",
    "OnlineOneClassSVM",
    "OnlineSVC",
    "Progress",
    "QuantileSVR",
    "RankSVC",
    "RegularizationPath",
    "Solution",
    "Status",
    "StructuredSVC",
    "TransductiveSVC",
    "__version__",
    "blocks",
    "certify",
    "compare",
    "datasets",
    "error_estimates",
    "feature_maps",
    "gradient_search",
    "grid_search",
    "hyperparameter_gradient",
    "importance_weights",
    "interchange",
    "kernels",
    "l1_min_c",
    "leave_one_out",
    "linear_path",
    "load",
    "online",
    "query",
    "regularization_path",
    "save",
    "search",
    "show_versions",
    "solvers",
    "trace",
]
