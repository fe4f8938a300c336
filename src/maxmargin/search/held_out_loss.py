"""A smooth loss on held-out samples as a function of C, γ of each feature and ε, and its derivatives.

A classifier's loss is the log loss of 1 / (1 + exp(−slope · f)) of the decision values of all splits. The slope is
fitted to them, so that it contributes nothing to the derivatives (the loss is a minimum over it). There is no shift,
unlike in Platt's sigmoid, whose targets these are: the prediction is the sign of f, so a wrong offset must count. A
regression's loss is the squared error divided by the variance of the targets. With several classes it is the mean over
the pairs of classes, by their samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize
from sklearn.base import clone, is_classifier

from maxmargin._typing import Floats, Indices
from maxmargin.deadline import check_deadline
from maxmargin.models.calibration import expit
from maxmargin.search.hyperparameter_gradient import HyperparameterGradient, hyperparameter_gradient

#: Fits are at least this accurate, in units of the targets' deviation: the loss must be smooth for the optimisation.
MAX_TOLERANCE = 1e-5

#: Decision values that are useless or reversed have this slope, in units of 1 / max |f|.
MIN_SLOPE = 1e-3

#: Parameters of an estimator that held-out decision values do without.
NOT_NEEDED: dict[str, Any] = {
    "probability": False, "noise": False, "callback": None, "checkpoint": None, "warm_start": False, "verbose": False,
    "multi_class": "ovo", "max_seconds": None, "n_jobs": 1,
}  # fmt: skip


class HeldOutValue(NamedTuple):
    """The loss, and its derivatives if they were asked for."""

    loss: float
    gradient: HyperparameterGradient | None


class _Task(NamedTuple):
    """A problem of two classes, or a regression: pairs of training and held-out rows, and how much it counts."""

    splits: list[tuple[Indices, Indices]]
    share: float


@dataclass
class HeldOutLoss:
    """The loss of an estimator on held-out samples.

    Attributes
    ----------
    estimator : SVC, LSSVC, SVR or LSSVR
    X, y, weights
        Validated samples, labels or targets, and weights.
    splits : sequence of pairs of int arrays
        Training and held-out rows.
    fits : int
        The number of models trained so far.
    unit : float
        The deviation of the targets of a regression, 1 for a classifier.
    map : callable
        ``map(function, items)``, which may run in threads.
    """

    estimator: Any
    X: Any
    y: Any
    weights: Floats
    splits: Sequence[tuple[Indices, Indices]]
    fits: int = 0
    map: Callable[..., Any] = map
    _tasks: list[_Task] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.classifies = is_classifier(self.estimator)
        self.unit = 1.0 if self.classifies else float(np.std(self.y)) or 1.0
        self._tasks = self._pairs_of_classes() if self.classifies else [_Task(list(self.splits), 1.0)]

    def __call__(self, parameters: dict[str, Any], with_gradient: bool) -> HeldOutValue:
        """Return the loss of the parameters C, gamma and, of a regression, epsilon."""
        tolerance = min(float(self.estimator.tol), MAX_TOLERANCE * self.unit)
        known = self.estimator.get_params(deep=False)
        without = {name: value for name, value in NOT_NEEDED.items() if name in known}
        estimator = clone(self.estimator).set_params(**parameters, **without, tol=tolerance)
        loss, gradients = 0.0, []
        for task in self._tasks:
            models = list(self.map(partial(self._fit, estimator), [training for training, _ in task.splits]))
            self.fits += len(models)
            jobs = [(model, *split) for model, split in zip(models, task.splits, strict=True)]
            values = list(self.map(self._predict, jobs))
            value, derivatives = self._loss(task, values)
            loss += task.share * value
            if with_gradient:
                parts = zip(jobs, derivatives, strict=True)
                gradients += self.map(self._differentiate, [(*job, task.share * part) for job, part in parts])
        return HeldOutValue(loss, _sum(gradients) if with_gradient else None)

    def _fit(self, estimator: Any, rows: Indices) -> Any:
        check_deadline()
        model = clone(estimator).fit(self.X[rows], self.y[rows], sample_weight=self.weights[rows])
        check_deadline()  # a fit that the deadline ended means nothing
        return model

    def _predict(self, job: tuple[Any, Indices, Indices]) -> Floats:
        model, _, rows = job
        values = model.decision_function(self.X[rows]) if self.classifies else model.predict(self.X[rows])
        return np.asarray(values, dtype=np.float64)

    def _differentiate(self, job: tuple[Any, Indices, Indices, Floats]) -> HyperparameterGradient:
        model, rows, held_out, derivative = job
        X, weights = self.X, self.weights
        return hyperparameter_gradient(model, X[rows], self.y[rows], X[held_out], derivative, weights[rows])

    def _loss(self, task: _Task, values: Sequence[Floats]) -> tuple[float, list[Floats]]:
        """Return the loss of held-out decision values, and its derivatives by them, for each split."""
        rows = np.concatenate([held_out for _, held_out in task.splits])
        loss_of = self._log_loss if self.classifies else self._squared_error
        loss, derivative = loss_of(np.concatenate(values), rows)
        edges = np.cumsum([len(part) for part in values])[:-1]
        return loss, np.split(derivative, edges)

    def _log_loss(self, values: Floats, rows: Indices) -> tuple[float, Floats]:
        weights, labels = self.weights[rows], self.y[rows]
        positive = labels == np.unique(labels)[1]
        counts = float(weights[positive].sum()), float(weights[~positive].sum())
        targets = np.where(positive, (counts[0] + 1.0) / (counts[0] + 2.0), 1.0 / (counts[1] + 2.0))
        slope = fit_slope(values, targets, weights)
        losses = np.logaddexp(0.0, slope * values) - targets * slope * values
        derivative = slope * (expit(slope * values) - targets)
        return float(weights @ losses / weights.sum()), weights * derivative / weights.sum()

    def _squared_error(self, values: Floats, rows: Indices) -> tuple[float, Floats]:
        weights, targets = self.weights[rows], self.y[rows]
        mean = float(weights @ targets / weights.sum())
        total = float(weights @ (targets - mean) ** 2) or 1.0  # equal targets
        residual = values - targets
        return float(weights @ residual**2) / total, 2.0 * weights * residual / total

    def _pairs_of_classes(self) -> list[_Task]:
        """Return the problem of each pair of classes that occur."""
        classes = np.unique(self.y)
        tasks, sizes = [], []
        for pair in combinations(classes, 2):
            inside = np.isin(self.y, pair)
            splits = [(training[inside[training]], held_out[inside[held_out]]) for training, held_out in self.splits]
            usable = [split for split in splits if len(np.unique(self.y[split[0]])) == 2 and len(split[1])]
            held_out = np.concatenate([np.empty(0, dtype=np.intp), *(split[1] for split in usable)])
            if len(np.unique(self.y[held_out])) == 2:
                tasks.append(usable)
                sizes.append(float(self.weights[held_out].sum()))
        if not tasks:
            raise ValueError("no split has two classes in its training samples and two among all held-out samples")
        return [_Task(splits, size / sum(sizes)) for splits, size in zip(tasks, sizes, strict=True)]


def fit_slope(values: Floats, targets: Floats, weights: Floats) -> float:
    """Return the slope of at least `MIN_SLOPE` / max |f| that minimises the log loss of 1 / (1 + exp(−slope f))."""
    scaled = values / (float(np.abs(values).max()) or 1.0)

    def derivative(slope: float) -> float:
        return float(weights @ ((expit(slope * scaled) - targets) * scaled))

    low, high = MIN_SLOPE, 1.0
    if derivative(low) < 0.0:
        while derivative(high) < 0.0:  # the targets are not 0 and 1, so it ends
            low, high = high, 4.0 * high
        low = optimize.brentq(derivative, low, high, xtol=1e-14, rtol=1e-14)
    return float(low / (float(np.abs(values).max()) or 1.0))


def _sum(gradients: Sequence[HyperparameterGradient]) -> HyperparameterGradient:
    return HyperparameterGradient(
        sum(part.C for part in gradients),
        np.sum([part.gamma for part in gradients], axis=0),
        sum(part.epsilon for part in gradients),
    )
