"""What the estimators of this package share: fits on partitions, lazy predictions, models of a single machine."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from maxmargin.blocks.dask_collections import Partitions, is_collection, partitions_of
from maxmargin.dask.cluster_fit import ClusterFit, beside_the_queue, find_client
from maxmargin.dask.driver import Outcome, Plan
from maxmargin.dask.prediction import predict_lazily
from maxmargin.machines.base import Machine
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.solvers import StoppingRule


class OnCluster(Machine):
    """Mixin of estimators that train on Dask collections; the class after it is that of a single machine.

    ``n_passes_`` is the number of passes over the data, the first scan included.
    """

    n_passes_: int
    n_features_in_: int
    feature_names_in_: Any

    #: The class of the model without Dask.
    _single: ClassVar[Any]
    #: Whether targets are labels, and what a fit trains several of.
    _labelled: ClassVar[bool] = True
    _each: ClassVar[str] = "classes"

    def fit(self: Any, X: Any, y: Any = None, sample_weight: Any = None, client: Any = None) -> Any:
        """Train on samples `X` with labels or targets `y`.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Numbers; blocks of an array are arrays or sparse matrices. Or samples in memory, without a cluster.
        y : Dask array or series of shape (n_samples,)
            Labels, or the targets of a regression.
        sample_weight : Dask array or series of shape (n_samples,), optional
            Factors on C by sample; 0 leaves a row out.
        client : distributed.Client, optional
            By default the current one.

        Returns
        -------
        self
            The fitted estimator.
        """
        if not is_collection(X):
            return self._single.fit(self, X, y, sample_weight)
        rule = self._check_for_cluster()
        given = partitions_of(X, y, sample_weight)
        with beside_the_queue():
            cluster = ClusterFit(find_client(client), given, self._labelled)
            self._fit_on(cluster, rule)
        self._set_table(cluster, given)
        self._warn_if_unconverged(rule, self._each, stacklevel=2)
        return self

    def predict(self: Any, X: Any) -> Any:
        """Return the class or the value of each sample; of a Dask collection a collection that is not computed yet."""
        if not is_collection(X):
            return self._single.predict(self, X)
        self._check_fitted()
        dtype = self.classes_.dtype if self._labelled else np.float64
        return predict_lazily(self._predicting(), "predict", X, dtype, None)

    def to_local(self: Any) -> Any:
        """Return the fitted model as the estimator of the same name in ``maxmargin``, for processes without Dask."""
        self._check_fitted()
        model = self._single.__new__(self._single)
        vars(model).update(vars(self))
        return model

    def _check_for_cluster(self) -> StoppingRule:
        """Return the stopping rule, or raise if a parameter is not valid for a fit on a cluster."""
        raise NotImplementedError

    def _fit_on(self, cluster: ClusterFit, rule: StoppingRule) -> None:
        """Train on the partitions of a cluster and set the fitted attributes."""
        raise NotImplementedError

    def _train_partitions(self: Any, cluster: ClusterFit, pose: Any, rule: StoppingRule, gap: Any = None) -> Outcome:
        """Train all problems of a fit."""
        found = cluster.summary
        constant = self._check_intercept()
        plan = Plan(
            pose, pose.count, rule, gap, constant, self.n_jobs, found.rows, found.total_weight, found.largest_norm
        )
        with reporting(self) as callback:
            return cluster.train(plan, callback)

    def _set_table(self, cluster: ClusterFit, given: Partitions) -> None:
        """Set the attributes that describe the table."""
        self.n_passes_, self.n_features_in_ = cluster.passes, given.layout.n_features
        names = given.layout.columns
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _predicting(self) -> Any:
        """Return the model without what predictions do not need, for the tasks."""
        model = self.to_local()
        model.callback = None
        for name in ("_models_", "_streams_"):
            vars(model).pop(name, None)
        return model


class ClassifierOnCluster(OnCluster):
    """Mixin of classifiers that train on Dask collections."""

    def decision_function(self: Any, X: Any) -> Any:
        """Return a value for each sample, of more than two classes a column each; lazily for a Dask collection."""
        if not is_collection(X):
            return self._single.decision_function(self, X)
        self._check_fitted()
        columns = len(self.classes_) if len(self.classes_) > 2 else None
        return predict_lazily(self._predicting(), "decision_function", X, np.float64, columns)
