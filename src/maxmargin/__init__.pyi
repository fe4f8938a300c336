from . import blocks, datasets, feature_maps, interchange, kernels, online, search, solvers
from .comparison import Comparison, compare
from .estimators import (
    LSSVC,
    LSSVR,
    SVC,
    SVDD,
    SVR,
    KernelApproximationSVC,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineOneClassSVM,
    OnlineSVC,
    QuantileSVR,
    RankSVC,
)
from .estimators.active.active_learner import ActiveLearner
from .estimators.active.active_query import query
from .estimators.active.importance_weights import importance_weights
from .estimators.fit_trace import FitTrace, trace
from .estimators.linear_path import LinearPath, linear_path
from .interchange import load, save
from .problems import Certificate, DualProblem, Progress, Solution, Status, certify
from .search import GridSearchResult, grid_search
from .show_versions import show_versions
from .search import GradientSearchResult, GridSearchResult, gradient_search, grid_search, hyperparameter_gradient
from .search.estimators import SVCCV, SVRCV, LinearSVCCV, LinearSVRCV, OneClassSVMCV

__version__: str

__all__ = [
    "LSSVC",
    "LSSVR",
    "SVC",
    "SVCCV",
    "SVDD",
    "SVR",
    "SVRCV",
    "ActiveLearner",
    "Certificate",
    "Comparison",
    "DualProblem",
    "FitTrace",
    "GradientSearchResult",
    "GridSearchResult",
    "KernelApproximationSVC",
    "LinearOneClassSVM",
    "LinearPath",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OneClassSVMCV",
    "OnlineOneClassSVM",
    "OnlineSVC",
    "Progress",
    "QuantileSVR",
    "RankSVC",
    "Solution",
    "Status",
    "__version__",
    "blocks",
    "certify",
    "compare",
    "datasets",
    "feature_maps",
    "gradient_search",
    "grid_search",
    "hyperparameter_gradient",
    "importance_weights",
    "interchange",
    "kernels",
    "linear_path",
    "load",
    "online",
    "query",
    "save",
    "search",
    "show_versions",
    "solvers",
    "trace",
]
