"""Training as LIBLINEAR's train does it: its lines about each machine, its cross-validation, its search for C."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.cli.libsvm.classes import Classes, Say, Trained, check_labels
from maxmargin.cli.libsvm.evaluation import Evaluation
from maxmargin.cli.libsvm.folds import deal, limit_folds, splits
from maxmargin.cli.libsvm.linear_parameters import ONE_CLASS, PRIMAL, LinearParameters
from maxmargin.cli.libsvm.problem import read_rows
from maxmargin.training import TrainedLinearModel

#: The search for C ends here, in classification and in regression.
LARGEST_COST = {2: 2.0**10, 11: 2.0**20}

#: It ends before if so many steps in a row have left all weights where they were, to this part of their size.
SETTLED_STEPS, SETTLED = 5, 1e-3

#: The search for the width of a tube takes so many steps, the last of which is 0.
TUBES = 20


def read_problem(path: str, parameters: LinearParameters) -> tuple[Any, Floats]:
    """Return samples and labels for a machine, after it is clear that it can be trained."""
    X, y = read_rows(path, zero_based=False)
    parameters.check()
    return X, check_labels(y, parameters.weights) if parameters.classifies else y


def train(X: Any, y: Floats, parameters: LinearParameters, say: Say) -> Trained:
    """Train, and say what came out."""
    if not parameters.classifies:
        estimator = parameters.estimator().fit(X, y)
        labels = None
    else:
        classes = Classes.of(y)
        labels = classes.labels
        if len(labels) == 1:
            say("WARNING: training data in only one class.")
            return Trained(None, labels)
        estimator = parameters.estimator(classes.factors(parameters.weights)).fit(X, classes.numbers)
    for machine in estimator._models_:
        for line in lines_of(machine, parameters):
            say(line)
    return Trained(estimator, labels)


def lines_of(machine: TrainedLinearModel, parameters: LinearParameters) -> Iterator[str]:
    """Yield what LIBLINEAR says about a machine: the value that its solver type works on, and what is in use."""
    kind, proof = parameters.solver_type, machine.certificate
    yield ""
    yield f"optimization finished, #iter = {machine.counters.iterations}"
    yield f"Objective value = {proof.primal if kind in PRIMAL else -proof.dual:f}"
    if kind == 5:
        yield f"#nonzeros/#features = {np.count_nonzero(machine.weights)}/{machine.weights.size}"
    else:
        yield f"nSV = {np.count_nonzero(machine.dual)}"
    if kind == ONE_CLASS:
        yield f"rho = {-float(machine.offset):f}"


def cross_validate(X: Any, y: Floats, parameters: LinearParameters, say: Say) -> Evaluation:
    """Return how good predictions of samples are by machines that were trained without their fold."""
    assert parameters.folds is not None
    found = Evaluation()
    for chosen, held in splits(deal(len(y), limit_folds(parameters.folds, len(y)))):
        found.add(train(X[chosen], y[chosen], parameters, say).predict(X[held]), y[held])
    return found


@dataclass(frozen=True)
class Choice:
    """What a search has found: the cost, the width of the tube, and the accuracy or mean squared error."""

    cost: float
    tube: float
    score: float


def search(X: Any, y: Floats, parameters: LinearParameters, say: Say) -> Choice:
    """Search for C, and in regression for the width of the tube, by cross-validation."""
    if not parameters.regression:
        return _search_costs(X, y, parameters, say)
    widest = float(np.abs(y).max(initial=0.0))
    first = TUBES - 1
    if parameters.tube is not None and widest > 0:
        first = min(int(parameters.tube / (widest / TUBES)), first)
    best: Choice | None = None
    for step in range(first, -1, -1):
        found = _search_costs(X, y, replace(parameters, tube=step * widest / TUBES), say)
        if best is None or found.score < best.score:
            best = found
    assert best is not None
    return best


def _search_costs(X: Any, y: Floats, parameters: LinearParameters, say: Say) -> Choice:
    """Double C again and again; each machine starts from the one before."""
    kind = parameters.solver_type
    tube = 0.0 if parameters.tube is None else parameters.tube
    cost = min(parameters.cost or _first_cost(X, y, parameters), LARGEST_COST[kind])
    assert parameters.folds is not None
    parts = deal(len(y), limit_folds(parameters.folds, len(y)))
    folds = [_Fold(X, y, chosen, held, parameters) for chosen, held in splits(parts)]
    best = Choice(cost, tube, np.inf if parameters.regression else 0.0)
    settled = 0
    while cost <= LARGEST_COST[kind] and settled < SETTLED_STEPS:
        found = Evaluation()
        moved = [fold.add_to(found, cost) for fold in folds]
        settled = 0 if max(moved) > SETTLED else settled + 1
        score = found.mean_squared_error if parameters.regression else found.accuracy
        where = f"log2c={np.log2(cost):7.2f}\t"
        if parameters.regression:
            say(f"{where}p={tube:7.2f}\tMean squared error={score:g}")
        else:
            say(f"{where}rate={score:g}")
        if score < best.score if parameters.regression else score > best.score:
            best = Choice(cost, tube, score)
        cost *= 2.0
    if cost > LARGEST_COST[kind]:
        say("warning: maximum C reached.")
    return best


class _Fold:
    """Training data without a fold, and the machine that was trained on them last."""

    def __init__(self, X: Any, y: Floats, chosen: Indices, held: Indices, parameters: LinearParameters) -> None:
        self.X: Any = X[chosen]
        self.y: Any = y[chosen]
        self.held_X, self.held_y = X[held], y[held]
        self.weights: Floats = np.zeros((1, X.shape[1]))
        self.labels: Indices | None = None
        if parameters.classifies:
            classes = Classes.of(self.y)
            self.labels, self.y = classes.labels, classes.numbers
            self.estimator = parameters.estimator(classes.factors(parameters.weights))
        else:
            self.estimator = parameters.estimator()
        self.estimator.set_params(warm_start=True)

    def add_to(self, found: Evaluation, cost: float) -> float:
        """Train with a larger cost, predict the samples held out, and return how far the weights have moved."""
        if self.labels is not None and len(self.labels) == 1:
            found.add(Trained(None, self.labels).predict(self.held_X), self.held_y)
            return 0.0
        before = self.weights
        self.weights = np.atleast_2d(self.estimator.set_params(C=cost).fit(self.X, self.y).coef_)
        found.add(Trained(self.estimator, self.labels).predict(self.held_X), self.held_y)
        size = float(np.linalg.norm(self.weights))
        return float(np.linalg.norm(self.weights - before)) / size if size else 0.0


def _first_cost(X: Any, y: Floats, parameters: LinearParameters) -> float:
    """Return LIBLINEAR's first C, a power of 2 so small that the weights are next to nothing."""
    longest = float(X.multiply(X).sum(axis=1).max()) + max(parameters.bias, 0.0) ** 2
    if not longest:
        return 1.0
    if not parameters.regression:
        return float(2.0 ** np.floor(np.log2(1.0 / (2.0 * len(y) * longest))))
    tube = 0.0 if parameters.tube is None else parameters.tube
    sizes = np.abs(y)
    loss = float(np.sum(np.maximum(sizes - tube, 0.0) ** 2))
    if not loss:
        return LARGEST_COST[parameters.solver_type]
    return float(2.0 ** np.floor(np.log2(0.01 * loss / (8.0 * float(sizes.sum()) ** 2 * longest))))
