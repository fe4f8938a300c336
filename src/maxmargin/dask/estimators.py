"""`LinearSVC`, `LinearSVR` and `KernelApproximationSVC` that train on Dask arrays and data frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.blocks.dask_collections import is_collection, partitions_of
from maxmargin.dask.cluster_fit import ClusterFit, beside_the_queue, find_client
from maxmargin.dask.exact_tasks import bound_exactly
from maxmargin.dask.on_cluster import ClassifierOnCluster, OnCluster
from maxmargin.dask.placement import place
from maxmargin.estimators import linear
from maxmargin.machines.linear.block_fitting import check_options
from maxmargin.machines.linear.block_posing import ClassPose, RegressionPose
from maxmargin.machines.linear.exact_bounds import check_certify
from maxmargin.machines.linear.linear_estimator import LINEAR_SOLVERS
from maxmargin.machines.linear.linear_svr import min_gap, shifted
from maxmargin.machines.validation.training_data import Labels, class_factors
from maxmargin.problems import Status
from maxmargin.solvers import StoppingRule


class LinearSVC(ClassifierOnCluster, linear.LinearSVC):
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

    _single = linear.LinearSVC

    def _check_for_cluster(self) -> StoppingRule:
        self._check_parameters()
        check_options(self, penalty="l2", multi_class="ovr", solver="auto", probability=False, checkpoint=None)
        return self._make_solver(self._solvers).stopping

    def _fit_on(self, cluster: ClusterFit, rule: StoppingRule) -> None:
        counts = cluster.summary.classes
        classes = counts.classes
        self._validate_labels(classes)
        weights = np.array([counts.weights[label] for label in classes.tolist()])
        factors = class_factors(self.class_weight, classes, np.arange(len(classes)), weights)
        pose = ClassPose(self._formulation, self._check_cost(), self._exact_intercept, classes, factors)
        outcome = self._train_partitions(cluster, pose, rule)
        nothing = np.empty(0, dtype=np.int64)
        self._set_classes(outcome.models, Labels(classes, nothing, nothing), factors)


class LinearSVR(OnCluster, linear.LinearSVR):
    """`maxmargin.LinearSVR` for Dask arrays and data frames.

    The parameters, the fitted attributes and the certificate are those of ``maxmargin.LinearSVR``; ``n_passes_`` is the
    number of passes over the data. Fits on Dask collections have one target, and need ``solver="auto"``,
    ``noise=False`` and ``checkpoint=None``. Arrays in memory are taken as usual.
    """

    _single, _labelled, _each = linear.LinearSVR, False, "outputs"

    def _check_for_cluster(self) -> StoppingRule:
        self._check_parameters()
        check_options(self, solver="auto", noise=False, checkpoint=None)
        return self._make_solver(LINEAR_SOLVERS).stopping

    def _fit_on(self, cluster: ClusterFit, rule: StoppingRule) -> None:
        cost, epsilon = self._check_parameters()
        found = cluster.summary
        centre = found.target_sum / found.total_weight if self._exact_intercept else 0.0
        pose = RegressionPose(self._formulation, cost, self._exact_intercept, epsilon, centre)
        outcome = self._train_partitions(cluster, pose, rule, min_gap)
        self._set_fitted([shifted(outcome.models[0], centre)])
        self.coef_, self._outputs_ = self.coef_.ravel(), None
        for name in ("_streams_", "noise_scale_"):
            self.__dict__.pop(name, None)


class KernelApproximationSVC(ClassifierOnCluster, linear.KernelApproximationSVC):
    """`maxmargin.KernelApproximationSVC` for Dask arrays and data frames.

    Landmarks are chosen from random rows of all partitions (about 17 million values, all rows if there are fewer), and
    are repeatable with `random_state`; ``gamma="scale"`` is that of these rows. Each worker computes the features of
    its partitions, 4 bytes · rows · landmarks, and keeps them during the fit, which is that of `LinearSVC`.

    The parameters, the fitted attributes and the certificate are those of ``maxmargin.KernelApproximationSVC``, without
    ``exact_primal_``; ``n_passes_`` is the number of passes over the data. Fits on Dask collections need
    ``probability=False``, ``polish=False``, ``checkpoint=None`` and ``device="cpu"``, and `max_seconds` limits the
    passes of the linear fit, not the computation of the features, nor that of the bounds of ``certify="exact"``. Arrays
    in memory are taken as usual.
    """

    _single = linear.KernelApproximationSVC

    def _check_for_cluster(self) -> StoppingRule:
        check_options(self, probability=False, polish=False, checkpoint=None, device="cpu")
        check_certify(self.certify)
        return self._linear_on_cluster()._check_for_cluster()

    def _linear_on_cluster(self) -> LinearSVC:
        """Return the machine that is trained on the features."""
        return LinearSVC(
            loss=self.loss,
            tol=self.tol,
            C=self.C,
            class_weight=self.class_weight,
            callback=self.callback,
            verbose=self.verbose,
            n_jobs=self.n_jobs,
            max_seconds=self._seconds(),
        )

    def _fit_on(self, cluster: ClusterFit, rule: StoppingRule) -> None:
        machine = self._linear_on_cluster()
        parameters = self._single(**self.get_params(deep=False)).set_params(callback=None, verbose=0)
        features, self.approximation_error_ = cluster.compute_landmark_features(parameters)
        machine._fit_on(cluster, rule)
        self._set_fitted(features, machine)
        if self.certify is not None and all(model.status is not Status.INTERRUPTED for model in self._models_):
            self.exact_certificate_ = self._per_model(cluster.bound_exactly(self._for_bounds()))

    def certify_exact(self, X: Any, y: Any = None, sample_weight: Any = None, client: Any = None) -> Any:
        """Return bounds on the optimum of the exact kernel problem, that of `SVC`, on the training data.

        Parameters
        ----------
        X : Dask array or data frame of shape (n_samples, n_features)
            The training samples. Or samples in memory, without a cluster.
        y : Dask array or series of shape (n_samples,)
            Their labels.
        sample_weight : Dask array or series of shape (n_samples,), optional
            Their weights.
        client : distributed.Client, optional
            By default the current one.

        Returns
        -------
        certificate : ExactCertificate, or a list with one per class
            As in ``exact_certificate_``. There is no limit on the time.
        """
        if not is_collection(X):
            return self._single.certify_exact(self, X, y, sample_weight)
        self._check_fitted()
        given = partitions_of(X, y, sample_weight)
        if given.layout.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {given.layout.n_features} features, but the model was fitted with {self.n_features_in_}"
            )
        with beside_the_queue():
            client = find_client(client)
            found = bound_exactly(client, place(client, given), self._for_bounds(), given.layout.name)
        return self._per_model(found)

    def _for_bounds(self) -> Any:
        """Return the model for tasks of one thread."""
        return self._predicting().set_params(n_jobs=1)
