"""`LinearSVC` and `LinearSVR` that train on Dask arrays and data frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.dask.cluster_fit import ClusterFit, find_client
from maxmargin.dask.collections import Partitions, is_collection, partitions_of
from maxmargin.dask.driver import Outcome, Plan
from maxmargin.dask.prediction import predict_lazily
from maxmargin.estimators import linear
from maxmargin.machines.linear.block_fitting import check_options
from maxmargin.machines.linear.block_posing import ClassPose, RegressionPose
from maxmargin.machines.linear.linear_estimator import LINEAR_SOLVERS
from maxmargin.machines.linear.linear_svr import min_gap, shifted
from maxmargin.machines.validation.callbacks import reporting
from maxmargin.machines.validation.training_data import Labels, class_factors
from maxmargin.solvers import StoppingRule


class _OnCluster:
    """What both estimators share: training on partitions, and models of a single machine.

    Parameters and attributes are those of the estimator of the same name in ``maxmargin``. ``n_passes_`` is the number
    of passes over the data, the first scan included.
    """

    n_passes_: int

    def _train_partitions(self: Any, cluster: ClusterFit, pose: Any, rule: StoppingRule, gap: Any = None) -> Outcome:
        """Train all problems of a fit."""
        found = cluster.summary
        plan = Plan(
            pose,
            pose.count,
            rule,
            gap,
            self._check_intercept(),
            self.n_jobs,
            found.rows,
            found.total_weight,
            found.largest_norm,
        )
        with reporting(self) as callback:
            return cluster.train(plan, callback)

    def _set_table(self: Any, cluster: ClusterFit, given: Partitions) -> None:
        """Set the attributes that describe the table."""
        self.n_passes_, self.n_features_in_ = cluster.passes, given.layout.n_features
        names = given.layout.columns
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _local(self: Any, kind: Any) -> Any:
        """Return the fitted model as another class, which does not need Dask."""
        self._check_fitted()
        model = kind.__new__(kind)
        vars(model).update(vars(self))
        return model

    def _predicting(self: Any) -> Any:
        """Return the model without what predictions do not need, for the tasks."""
        model = self.to_local()
        model.callback = None
        for name in ("_models_", "_streams_"):
            vars(model).pop(name, None)
        return model


class LinearSVC(_OnCluster, linear.LinearSVC):
    """`maxmargin.LinearSVC` for Dask arrays and data frames.

    The parameters, the fitted attributes and the certificate are those of ``maxmargin.LinearSVC``; ``n_passes_`` is the
    number of passes over the data. Fits on Dask collections need ``penalty="l2"``, ``multi_class="ovr"``,
    ``solver="auto"``, ``probability=False`` and ``checkpoint=None``. Arrays in memory are taken as usual.

    Examples
    --------
    >>> from distributed import Client                      # doctest: +SKIP
    >>> from maxmargin.dask import LinearSVC                # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")             # doctest: +SKIP
    >>> model = LinearSVC(C=10).fit(X, y, client=client)    # doctest: +SKIP
    >>> model.certificate_.relative_gap                     # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, client: Any = None) -> LinearSVC:
        """Train on samples `X` with labels `y`.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Numbers; blocks of an array are arrays or sparse matrices. Or samples in memory, without a cluster.
        y : Dask array or series of shape (n_samples,)
            Labels.
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
            return super().fit(X, y, sample_weight)  # type: ignore[return-value]  # self
        cost = self._check_parameters()
        check_options(self, penalty="l2", multi_class="ovr", solver="auto", probability=False, checkpoint=None)
        rule = self._make_solver(self._solvers).stopping
        given = partitions_of(X, y, sample_weight)
        cluster = ClusterFit(find_client(client), given, labels=True)
        counts = cluster.summary.classes
        classes = counts.classes
        self._validate_labels(classes)
        weights = np.array([counts.weights[label] for label in classes.tolist()])
        factors = class_factors(self.class_weight, classes, np.arange(len(classes)), weights)
        pose = ClassPose(self._formulation, cost, self._exact_intercept, classes, factors)
        outcome = self._train_partitions(cluster, pose, rule)
        nothing = np.empty(0, dtype=np.int64)
        self._set_classes(outcome.models, Labels(classes, nothing, nothing), factors)
        self._set_table(cluster, given)
        self._warn_if_unconverged(rule, "classes", stacklevel=2)
        return self

    def predict(self, X: Any) -> Any:
        """Return the class of each sample; of a Dask collection a collection that is not computed yet."""
        if not is_collection(X):
            return super().predict(X)
        return predict_lazily(self._predicting(), "predict", X, self.classes_.dtype, None)

    def decision_function(self, X: Any) -> Any:
        """Return a value for each sample, of more than two classes a column each; lazily for a Dask collection."""
        if not is_collection(X):
            return super().decision_function(X)
        columns = len(self.classes_) if len(self.classes_) > 2 else None
        return predict_lazily(self._predicting(), "decision_function", X, np.float64, columns)

    def to_local(self) -> linear.LinearSVC:
        """Return the fitted model as ``maxmargin.LinearSVC``, for processes without Dask."""
        model: linear.LinearSVC = self._local(linear.LinearSVC)
        return model


class LinearSVR(_OnCluster, linear.LinearSVR):
    """`maxmargin.LinearSVR` for Dask arrays and data frames.

    The parameters, the fitted attributes and the certificate are those of ``maxmargin.LinearSVR``; ``n_passes_`` is the
    number of passes over the data. Fits on Dask collections have one target, and need ``solver="auto"``,
    ``noise=False`` and ``checkpoint=None``. Arrays in memory are taken as usual.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, client: Any = None) -> LinearSVR:
        """Train on samples `X` with targets `y`.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            Numbers; blocks of an array are arrays or sparse matrices. Or samples in memory, without a cluster.
        y : Dask array or series of shape (n_samples,)
            Targets.
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
            return super().fit(X, y, sample_weight)  # type: ignore[return-value]  # self
        cost, epsilon = self._check_parameters()
        check_options(self, solver="auto", noise=False, checkpoint=None)
        rule = self._make_solver(LINEAR_SOLVERS).stopping
        given = partitions_of(X, y, sample_weight)
        cluster = ClusterFit(find_client(client), given, labels=False)
        found = cluster.summary
        centre = found.target_sum / found.total_weight if self._exact_intercept else 0.0
        pose = RegressionPose(self._formulation, cost, self._exact_intercept, epsilon, centre)
        outcome = self._train_partitions(cluster, pose, rule, min_gap)
        self._set_fitted([shifted(outcome.models[0], centre)])
        self.coef_, self._outputs_ = self.coef_.ravel(), None
        for name in ("_streams_", "noise_scale_"):
            self.__dict__.pop(name, None)
        self._set_table(cluster, given)
        self._warn_if_unconverged(rule, "outputs", stacklevel=2)
        return self

    def predict(self, X: Any) -> Any:
        """Return the value of the function for each sample; lazily for a Dask collection."""
        if not is_collection(X):
            return super().predict(X)
        return predict_lazily(self._predicting(), "predict", X, np.float64, None)

    def to_local(self) -> linear.LinearSVR:
        """Return the fitted model as ``maxmargin.LinearSVR``, for processes without Dask."""
        model: linear.LinearSVR = self._local(linear.LinearSVR)
        return model
