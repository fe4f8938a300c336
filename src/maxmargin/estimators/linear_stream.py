"""Learning from a stream: a batch at a time, with the stochastic subgradient method, and a proof when it is wanted.

A stream has no end, and an objective that grew with it would have no optimum to go to. So it is that of as many samples
as the first batch has: C is meant for so many. The weights are the average over the steps, each counting more than the
one before. Nothing of the data is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from maxmargin.estimators.weights import check_costs, check_sample_weights, class_factors
from maxmargin.matrices.symmetric_matrix import Floats, Indices, SymmetricMatrix
from maxmargin.problems import Certificate, DualProblem, certify
from maxmargin.problems.certificate import of_samples, response
from maxmargin.problems.offsets import offsets_of_least_loss
from maxmargin.solvers import StochasticSubgradientSolver
from maxmargin.solvers.linear_point import mended, primal_value


def _can_stream(model: Any) -> bool:
    """Whether the machine has a function for each class and no probabilities, or raise: those need all data at once."""
    if model.multi_class != "ovr" or model.probability:
        raise AttributeError("partial_fit needs multi_class='ovr' and probability=False")
    return True


class StreamingClassifier:
    """What a linear classifier needs to learn from batches, and to be judged on any data."""

    @available_if(_can_stream)  # type: ignore[untyped-decorator]  # scikit-learn has no type hints
    def partial_fit(self: Any, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Take a step for each sample of a batch of a stream.

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
        streams = self.__dict__.get("_streams_")
        labels = self._labels_of_stream(classes, streams is not None)
        X, y = validate_data(self, X, y, reset=streams is None, **self._table)
        weights = check_sample_weights(sample_weight, X)
        problems = self._problems_of(X, _numbers(y, labels), weights, labels, cost)
        if streams is None:
            solver = StochasticSubgradientSolver(averaging="growing")
            streams = [solver.begin_stream(problem) for problem in problems]
        for state, problem in zip(streams, problems, strict=True):
            state.update(problem)
        scaling = self._check_intercept()
        averages = [state.average() for state in streams]
        self.coef_ = np.vstack([vector[:-1] for vector, _ in averages])
        self.intercept_ = np.array([float(offset.sum()) + scaling * vector[-1] for vector, offset in averages])
        self.classes_, self._streams_, self._sigmoids_ = labels, streams, None
        self.__dict__.pop("_machines_", None)  # of an earlier fit: its proof is not about these weights
        return self

    def certify(self: Any, X: Any, y: Any, sample_weight: Any = None) -> Certificate | list[Certificate]:
        """Return what is proved about the weights as a machine for these samples: one certificate, or one per class.

        The dual vector is the response of the samples to the weights; for weights far from the optimum the bound is
        loose, and always true.
        """
        cost = self._check_parameters()
        if self.multi_class != "ovr":
            raise ValueError("certify judges machines of one class against the rest: multi_class='ovr'")
        X, y = self._check_samples(X), column_or_1d(y)
        check_consistent_length(X, y)
        weights = check_sample_weights(sample_weight, X)
        problems = self._problems_of(X, _numbers(y, self.classes_), weights, self.classes_, cost)
        scaling = self._check_intercept()
        found = []
        coefficients = self.coef_.toarray() if sparse.issparse(self.coef_) else np.atleast_2d(self.coef_)
        for problem, own, intercept in zip(problems, coefficients, self.intercept_, strict=True):
            vector = np.append(own, intercept / scaling if scaling else 0.0)
            rows = problem.matrix.features()
            assert rows is not None
            slack = problem.linear - rows.decisions(vector)
            offset = offsets_of_least_loss(problem, slack)
            wanted = response(problem, slack - of_samples(problem, offset))
            dual = _highest(problem, mended(problem, wanted), rows.weights)
            proof = certify(problem, dual, vector)
            if problem.groups:  # the model has an intercept of its own, which need not be the best
                offset = np.array([intercept])
                primal = primal_value(problem, vector, offset, slack - offset)
                proof = replace(proof, primal=primal, gap=max(primal - proof.dual, 0.0), offset=offset)
            found.append(proof)
        return found[0] if len(found) == 1 else found

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
        matrix: SymmetricMatrix = self._divide(X, rows, 1)[1]
        problems = []
        for number in range(len(labels)) if several else (0,):
            signs = np.where(numbers == (number if several else 1), 1.0, -1.0)
            costs = check_costs(cost, factors_of(number, numbers, factors, weights[rows]))
            problems.append(formulation.pose(matrix, signs, costs, self._exact_intercept))
        return problems


def factors_of(number: int, numbers: Indices, factors: Floats, weights: Floats) -> Floats:
    """Return the factor on C of each sample in the machine of a class against the rest, or in the only one of two."""
    of_class = np.where(numbers == number, factors[number], 1.0) if len(factors) > 2 else factors[numbers]
    return np.asarray(weights * of_class)


def _numbers(y: Any, labels: Any) -> Indices:
    """Return the number of each label, or raise if there is a new one."""
    known = np.isin(y, labels)
    if not known.all():
        raise ValueError(f"y has the label {np.asarray(y)[~known][0]!r}, which is not in classes")
    return np.asarray(np.searchsorted(labels, y), dtype=np.int64)


def _highest(problem: DualProblem, dual: Floats, weights_of: Any) -> Floats:
    """Return the part of a dual vector with the highest dual value; where all sums are 0 it is feasible too."""
    if problem.total.any() or (problem.lower > 0).any() or (problem.upper < 0).any():
        return dual
    own = weights_of(dual)
    bend = float(own @ own) + float((problem.ridge * dual) @ dual)
    return dual * min(1.0, max(0.0, float(problem.linear @ dual) / bend)) if bend > 0 else dual
