"""Support vector machines with a proof of optimality: a drop-in for ``sklearn.svm``.

>>> from maxmargin import SVC                               # doctest: +SKIP
>>> model = SVC(C=10).fit(X, y)                             # doctest: +SKIP
>>> print(model.certificate_)                               # doctest: +SKIP
"""

from importlib.metadata import version as _version

from maxmargin import feature_maps, interchange, kernels, online, solvers
from maxmargin.comparison import Comparison, compare
from maxmargin.estimators import (
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
from maxmargin.estimators.active_learner import ActiveLearner
from maxmargin.estimators.active_query import query
from maxmargin.estimators.fit_trace import FitTrace, trace
from maxmargin.estimators.importance_weights import importance_weights
from maxmargin.estimators.linear_path import LinearPath, linear_path
from maxmargin.interchange import load, save
from maxmargin.problems import Certificate, DualProblem, Progress, Solution, Status, certify

__version__ = _version("maxmargin")

__all__ = [
    "LSSVC",
    "LSSVR",
    "SVC",
    "SVDD",
    "SVR",
    "ActiveLearner",
    "Certificate",
    "Comparison",
    "DualProblem",
    "FitTrace",
    "KernelApproximationSVC",
    "LinearOneClassSVM",
    "LinearPath",
    "LinearSVC",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "OnlineOneClassSVM",
    "OnlineSVC",
    "Progress",
    "QuantileSVR",
    "RankSVC",
    "Solution",
    "Status",
    "__version__",
    "certify",
    "compare",
    "feature_maps",
    "importance_weights",
    "interchange",
    "kernels",
    "linear_path",
    "load",
    "online",
    "query",
    "save",
    "solvers",
    "trace",
]
