"""Incremental learning (`partial_fit`) by the stochastic subgradient method, and certificates on any data.

The objective is that of as many samples as the first batch has, so that it does not change with the length of the
stream. The weights are a weighted average over the steps, with growing weights. No data are stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.machines.linear.block_data import as_blocks
from maxmargin.machines.validation.availability import available_if
from maxmargin.machines.validation.device_arrays import following_samples
from maxmargin.machines.validation.samples import check_vector
from maxmargin.machines.validation.training_data import check_costs, check_sample_weights, class_factors
from maxmargin.matrices.symmetric_matrix import SymmetricMatrix
from maxmargin.models.calibration import PlattSigmoid
from maxmargin.problems import Certificate, DualProblem, certify, certify_l1
from maxmargin.problems.losses import response
from maxmargin.problems.offsets import best_offsets
from maxmargin.problems.split_problem import SplitProblem
from maxmargin.solvers import StochasticSubgradientSolver
from maxmargin.solvers.linear.linear_point import repair_sums


def _supports_partial_fit(model: Any) -> bool:
    """Return True, or raise if the parameters need all data at once."""
    needs = {"penalty": "l2", "multi_class": "ovr", "probability": False, "noise": False}
    there = {name: value for name, value in needs.items() if name in model.get_params(deep=False)}
    if any(getattr(model, name) != value for name, value in there.items()):
        wanted = ", ".join(f"{name}={value!r}" for name, value in there.items())
        raise AttributeError(f"partial_fit needs {wanted}")
    return True


class Streaming:
    """Mixin of the linear estimators with `partial_fit` and `certify`."""

    def _update(self: Any, problems: list[DualProblem], each: int = 1) -> None:
        """Take the steps of a batch, one problem for each function, and set weights and intercepts to the averages.

        A problem has `each` variables for each sample, all first ones, then all second ones; steps go by samples.
        """
        streams = self.__dict__.get("_streams_")
        if streams is None:
            solver = StochasticSubgradientSolver(averaging="growing")
            streams = [solver.begin_stream(problem) for problem in problems]
        for state, problem in zip(streams, problems, strict=True):
            state.update(problem, np.arange(problem.size).reshape(each, -1).T.ravel())
        scaling = self._check_intercept()
        averages = [state.average() for state in streams]
        self.coef_ = np.vstack([vector[:-1] for vector, _ in averages])
        self.intercept_ = np.array([float(offset.sum()) + scaling * vector[-1] for vector, offset in averages])
        self._streams_ = streams
        self.__dict__.pop("n_passes_", None)
        self.__dict__.pop("_models_", None)  # of an earlier fit, with other weights

    def _certify(self: Any, problems: list[DualProblem]) -> Certificate | list[Certificate]:
        """Return the certificate of the weights of each function as a solution of its problem."""
        scaling = self._check_intercept()
        coefficients = self.coef_.toarray() if sparse.issparse(self.coef_) else np.atleast_2d(self.coef_)
        found = []
        for problem, own, intercept in zip(problems, coefficients, self.intercept_, strict=True):
            vector = np.append(own, intercept / scaling if scaling else 0.0)
            rows = problem.matrix.features()
            assert rows is not None
            slack = problem.linear - rows.decisions(vector)
            wanted = response(problem, slack - problem.expand_groups(best_offsets(problem, slack)))
            offset = np.array([intercept]) if problem.groups else None  # which need not be the best
            if self.penalty == "l1":
                found.append(certify_l1(problem, wanted, vector, offset))
            else:
                feasible = _rescaled(problem, repair_sums(problem, wanted, rows.threads_for_samples), rows.weights)
                found.append(certify(problem, feasible, vector, offset=offset))
        return found[0] if len(found) == 1 else found


class StreamingClassifier(Streaming):
    """Mixin of linear classifiers with `partial_fit` and `certify`."""

    _sigmoids_: list[PlattSigmoid] | None  # of the classifier

    @available_if(_supports_partial_fit)
    @following_samples
    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Update the weights with one step for each sample of a batch.

        The objective is that of as many samples as the first batch has, ½‖w‖² + C Σ loss: for small batches choose a
        larger C than `fit` would need for all samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All labels that will occur. Needed in the first call unless ``fit`` has seen them; later it must be the same
            or left out.
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample; 0 or less leaves a row out.

        Returns
        -------
        self
            The estimator, with the average of the weights so far. ``certify(X, y)`` says how good they are.
        """
        cost = self._check_parameters()
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all labels at once; give partial_fit a dict of weights")
        begun = "_streams_" in self.__dict__
        labels = self._labels_of_stream(classes, begun)
        X, y = self._validate_pairs(X, y, reset=not begun)
        weights = check_sample_weights(sample_weight, X)
        self._update(self._problems_of(X, _numbers(y, labels), weights, labels, cost))
        self.classes_, self._sigmoids_ = labels, None
        return self

    @following_samples
    def certify(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate | list[Certificate]:
        """Return the certificate of the weights as a solution on these samples: one, or one per class.

        The dual vector is computed from the slacks at the weights; for weights far from the optimum the bound is
        loose, but valid.
        """
        cost = self._check_parameters()
        if self.multi_class != "ovr":
            raise ValueError("certify needs multi_class='ovr'")
        if (blocks := as_blocks(X, y, sample_weight)) is not None:
            found: list[Certificate] = self._certify_blocks(blocks)
            return found[0] if len(found) == 1 else found
        X = self._check_samples(X)
        y = check_vector(y, X.shape[0])
        weights = check_sample_weights(sample_weight, X)
        proofs: Certificate | list[Certificate] = self._certify(
            self._problems_of(X, _numbers(y, self.classes_), weights, self.classes_, cost)
        )
        return proofs

    def _labels_of_stream(self: Any, classes: Any, begun: bool) -> Any:
        if begun:
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(f"classes must stay {self.classes_.tolist()}, as in the first call of partial_fit")
            return self.classes_
        if classes is None and hasattr(self, "classes_"):
            return self.classes_
        if classes is None:
            raise ValueError("the first call of partial_fit needs classes, all labels that will occur")
        labels = np.unique(classes)
        if len(labels) < 2:
            raise ValueError("classes must have at least two labels")
        return labels

    def _problems_of(
        self: Any, X: Any, numbers: Indices, weights: Floats, labels: Any, cost: float
    ) -> list[DualProblem]:
        """Return the problem of each class against the rest, or the only one of two."""
        rows, several = np.flatnonzero(weights > 0), len(labels) > 2
        numbers, formulation = numbers[rows], self._formulation
        factors = class_factors(self.class_weight, labels, numbers, weights[rows])
        matrix: SymmetricMatrix = self._make_matrix(X, rows, 1)[1]
        problems = []
        for number in range(len(labels)) if several else (0,):
            signs = np.where(numbers == (number if several else 1), 1.0, -1.0)
            costs = check_costs(cost, factors_of(number, numbers, factors, weights[rows]))
            problems.append(formulation.pose(matrix, signs, costs, self._exact_intercept))
        return problems


class StreamingRegressor(Streaming):
    """Mixin of linear regressors with `partial_fit` and `certify`."""

    @available_if(_supports_partial_fit)
    @following_samples
    def partial_fit(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Update the weights with one step for each sample of a batch.

        The objective is that of as many samples as the first batch has, ½‖w‖² + C Σ loss: for small batches choose a
        larger C than `fit` would need for all samples. An exact intercept counts from the mean of its targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            Factors on C by sample; 0 or less leaves a row out.

        Returns
        -------
        self
            The estimator, with the average of the weights so far. ``certify(X, y)`` says how good they are.
        """
        self._check_parameters()
        begun = "_streams_" in self.__dict__
        X, targets = self._check_targets(X, y, reset=not begun)
        outputs = None if targets.ndim == 1 else targets.shape[1]
        if begun and outputs != self._outputs_:
            raise ValueError("y must have as many columns as in the first call of partial_fit")
        weights = check_sample_weights(sample_weight, X)
        columns = targets.reshape(len(targets), -1)
        centre = self._stream_centre_ if begun else np.average(columns, axis=0, weights=np.maximum(weights, 0.0))
        problems = self._problems_of(X, columns - centre * self._exact_intercept, weights)
        self._update(problems, each=2 if self.epsilon > 0 else 1)
        self.intercept_ = self.intercept_ + centre * self._exact_intercept
        self._outputs_, self._stream_centre_ = outputs, centre
        self.coef_ = self.coef_.ravel() if outputs is None else self.coef_
        self.__dict__.pop("noise_scale_", None)
        return self

    @following_samples
    def certify(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Certificate | list[Certificate]:
        """Return the certificate of the weights as a solution on these samples: one, or one per output.

        The dual vector is computed from the slacks at the weights; for weights far from the optimum the bound is
        loose, but valid.
        """
        self._check_parameters()
        self._check_fitted()
        if (blocks := as_blocks(X, y, sample_weight)) is not None:
            found: list[Certificate] = self._certify_blocks(blocks)
            return found[0]
        X, targets = self._check_targets(X, y, reset=False)
        if (None if targets.ndim == 1 else targets.shape[1]) != self._outputs_:
            raise ValueError("y must have as many columns as there are outputs")
        weights = check_sample_weights(sample_weight, X)
        proofs: Certificate | list[Certificate] = self._certify(
            self._problems_of(X, targets.reshape(len(targets), -1), weights)
        )
        return proofs

    def _problems_of(self: Any, X: Any, targets: Floats, weights: Floats) -> list[DualProblem]:
        """Return the problem of each output, in split form: linear solvers take no kinks."""
        rows = np.flatnonzero(weights > 0)
        costs = check_costs(float(self.C), weights)[rows]
        matrix: SymmetricMatrix = self._make_matrix(X, rows, 1)[1]
        pose = self._formulation.pose
        posed = [
            pose(matrix, np.ascontiguousarray(column), costs, float(self.epsilon), self._exact_intercept)
            for column in targets[rows].T
        ]
        return [SplitProblem.of(problem).problem for problem in posed]


def factors_of(number: int, numbers: Indices, factors: Floats, weights: Floats) -> Floats:
    """Return the factor on C of each sample in the problem of a class against the rest, or the only one of two."""
    of_class = np.where(numbers == number, factors[number], 1.0) if len(factors) > 2 else factors[numbers]
    return np.asarray(weights * of_class)


def _numbers(y: Any, labels: Any) -> Indices:
    """Return the number of each label, or raise if there is a new one."""
    known = np.isin(y, labels)
    if not known.all():
        raise ValueError(f"y has the label {np.asarray(y)[~known][0]!r}, which is not in classes")
    return np.asarray(np.searchsorted(labels, y), dtype=np.int64)


def _rescaled(problem: DualProblem, dual: Floats, weights_of: Any) -> Floats:
    """Return the multiple t·dual, 0 ≤ t ≤ 1, with the highest dual value, if 0 is feasible."""
    if problem.total.any() or (problem.lower > 0).any() or (problem.upper < 0).any():
        return dual
    own = weights_of(dual)
    curvature = float(own @ own) + float((problem.ridge * dual) @ dual)
    return dual * min(1.0, max(0.0, float(problem.linear @ dual) / curvature)) if curvature > 0 else dual
