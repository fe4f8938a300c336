"""Linear and landmark machines on a Dask cluster: training where the partitions are, lazy prediction.

- `estimators`: `LinearSVC`, `LinearSVR` and `KernelApproximationSVC`
- `on_cluster`: what they share: fit, predictions, models of a single machine
- `collections`: Dask arrays and data frames as partitions of rows
- `partitions`: tasks on a partition: validation, the first scan, the sample
- `landmark_tasks`: landmarks from the sample, and their features of each partition
- `placement`: the worker of each partition
- `worker_loop`: the loop on each worker, and the tree in which sums are added; `packed_sums`: the sums as they travel
- `worker_watch`: workers that do not answer
- `driver`: Newton's method on the worker at the root of the tree
- `cluster_fit`: the fit as the client sees it: start of the loops, progress, failures
- `trial_tasks`: model selection for data that fit one worker, trials spread over all of them
- `search_estimators`: `SVCCV` and others, which choose their parameters in this way
- `prediction`: predictions of partitions, also by models that were trained elsewhere

The names below are public. ``import maxmargin`` does not import Dask.
"""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError("maxmargin.dask needs Dask: pip install 'maxmargin[dask]'") from error

from maxmargin.dask.estimators import KernelApproximationSVC, LinearSVC, LinearSVR
from maxmargin.dask.prediction import decision_function, predict, predict_proba
from maxmargin.dask.search_estimators import SVCCV, SVRCV, LinearSVCCV, LinearSVRCV, OneClassSVMCV
from maxmargin.dask.trial_tasks import grid_search

__all__ = [
    "SVCCV",
    "SVRCV",
    "KernelApproximationSVC",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LinearSVRCV",
    "OneClassSVMCV",
    "decision_function",
    "grid_search",
    "predict",
    "predict_proba",
]
