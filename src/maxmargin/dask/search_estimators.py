"""Estimators that choose their parameters, with trials on the workers of a cluster.

The data must fit into the memory of a worker; each gets a copy. The final model is trained in the client.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import distributed

from maxmargin.dask.cluster_fit import find_client
from maxmargin.dask.trial_tasks import TrialTasks
from maxmargin.search import estimators


class TrialsOnCluster:
    """Mixin of estimators whose trials are tasks of a cluster; the class after it searches in threads."""

    def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None, client: Any = None, **params: Any) -> Any:
        """Search for the best parameters on a cluster, and train with them on all samples in this process.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            In memory; each worker gets a copy. Dask collections must be computed first.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Factors on the cost by sample.
        client : distributed.Client, optional
            By default the current one.
        **params
            ``groups`` for the splitter `cv`.

        Returns
        -------
        self
            The fitted estimator.
        """
        for name, given in (("X", X), ("y", y), ("sample_weight", sample_weight)):
            if distributed.futures_of(given) or hasattr(given, "__dask_graph__"):
                raise ValueError(f"{name} must be in memory, not a Dask collection: call its method compute() first")
        return self._fit(X, y, sample_weight, params, partial(TrialTasks, find_client(client)))


class SVCCV(TrialsOnCluster, estimators.SVCCV):
    """`maxmargin.SVCCV` with trials on the workers of a cluster."""


class SVRCV(TrialsOnCluster, estimators.SVRCV):
    """`maxmargin.SVRCV` with trials on the workers of a cluster."""


class OneClassSVMCV(TrialsOnCluster, estimators.OneClassSVMCV):
    """`maxmargin.OneClassSVMCV` with trials on the workers of a cluster."""


class LinearSVCCV(TrialsOnCluster, estimators.LinearSVCCV):
    """`maxmargin.LinearSVCCV` with trials on the workers of a cluster."""


class LinearSVRCV(TrialsOnCluster, estimators.LinearSVRCV):
    """`maxmargin.LinearSVRCV` with trials on the workers of a cluster."""
