"""Training, cross-validation and search for C with the output of LIBLINEAR's train."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin._typing import Floats, Indices
from maxmargin.cli.libsvm.classes import Classes, Log, ProgramModel, check_labels
from maxmargin.cli.libsvm.folds import clip_folds, plain_folds, splits
from maxmargin.cli.libsvm.liblinear_parameters import ONE_CLASS, PRIMAL, LiblinearParameters
from maxmargin.cli.libsvm.program_data import read_rows
from maxmargin.cli.metrics import RunningMetrics
from maxmargin.kernels import Linear
from maxmargin.training import TrainedLinearModel

#: Largest C of the search, by solver type.
MAX_COST = {2: 2.0**10, 11: 2.0**20}

#: The search ends early if the relative change of all weights stays below a tolerance for this many steps.
MAX_UNCHANGED_STEPS, CHANGE_TOLERANCE = 5, 1e-3

#: Number of values of epsilon in the search, the last of which is 0.
EPSILON_STEPS = 20


def read_problem(path: str, parameters: LiblinearParameters) -> tuple[Any, Floats]:
    """Return samples and labels; raise if the parameters are invalid for them."""
    rows, y = read_rows(path, zero_based=False)
    return rows.matrix(), check_targets(y, parameters)


def check_targets(y: Floats, parameters: LiblinearParameters) -> Floats:
    """Return targets, or labels as integers; raise if the parameters are invalid."""
    parameters.check()
    return check_labels(y, parameters.weights) if parameters.classifies else y


def train(X: Any, y: Floats, parameters: LiblinearParameters, log: Log) -> ProgramModel:
    """Train and print the lines of LIBLINEAR."""
    if not parameters.classifies:
        machine = parameters.machine().fit(X, y)
        labels = None
    else:
        classes = Classes.of(y)
        labels = classes.labels
        if len(labels) == 1:
            log("WARNING: training data in only one class.")
            return ProgramModel(None, labels)
        machine = parameters.machine(classes.factors(parameters.weights)).fit(X, classes.numbers)
    for model in machine._models_:
        for line in lines_of(model, parameters):
            log(line)
    return ProgramModel(machine, labels)


def lines_of(model: TrainedLinearModel, parameters: LiblinearParameters) -> Iterator[str]:
    """Yield the lines of LIBLINEAR about a binary model: the objective of its solver type, and its sparsity."""
    kind, certificate = parameters.solver_type, model.certificate
    yield ""
    yield f"optimization finished, #iter = {model.counters.iterations}"
    yield f"Objective value = {certificate.primal if kind in PRIMAL else -certificate.dual:f}"
    if kind == 5:
        yield f"#nonzeros/#features = {np.count_nonzero(model.weights)}/{model.weights.size}"
    else:
        yield f"nSV = {np.count_nonzero(model.dual)}"
    if kind == ONE_CLASS:
        yield f"rho = {-float(model.offset):f}"


def cross_validate(X: Any, y: Floats, parameters: LiblinearParameters, log: Log) -> RunningMetrics:
    """Return the evaluation of predictions by models trained without the fold of a sample."""
    assert parameters.folds is not None
    evaluation = RunningMetrics()
    for train_rows, test_rows in splits(plain_folds(len(y), clip_folds(parameters.folds, len(y)))):
        model = train(X[train_rows], y[train_rows], parameters, log)
        evaluation.add(model.predict(X[test_rows]), y[test_rows])
    return evaluation


@dataclass(frozen=True)
class CostSearchResult:
    """Result of a search: C, epsilon, and the accuracy or mean squared error."""

    cost: float
    epsilon: float
    score: float


def search(X: Any, y: Floats, parameters: LiblinearParameters, log: Log) -> CostSearchResult:
    """Search for C, and in regression for epsilon, by cross-validation."""
    if not parameters.regression:
        return _search_costs(X, y, parameters, log)
    largest = float(np.abs(y).max(initial=0.0))
    first = EPSILON_STEPS - 1
    if parameters.epsilon is not None and largest > 0:
        first = min(int(parameters.epsilon / (largest / EPSILON_STEPS)), first)
    best: CostSearchResult | None = None
    for step in range(first, -1, -1):
        found = _search_costs(X, y, replace(parameters, epsilon=step * largest / EPSILON_STEPS), log)
        if best is None or found.score < best.score:
            best = found
    assert best is not None
    return best


def _search_costs(X: Any, y: Floats, parameters: LiblinearParameters, log: Log) -> CostSearchResult:
    """Double C repeatedly; each fit starts from the previous solution."""
    kind = parameters.solver_type
    epsilon = 0.0 if parameters.epsilon is None else parameters.epsilon
    cost = min(parameters.cost or _first_cost(X, y, parameters), MAX_COST[kind])
    assert parameters.folds is not None
    parts = plain_folds(len(y), clip_folds(parameters.folds, len(y)))
    folds = [_WarmStartedFold(X, y, *rows, parameters) for rows in splits(parts)]
    best = CostSearchResult(cost, epsilon, np.inf if parameters.regression else 0.0)
    unchanged = 0
    while cost <= MAX_COST[kind] and unchanged < MAX_UNCHANGED_STEPS:
        evaluation = RunningMetrics()
        changes = [fold.evaluate(evaluation, cost) for fold in folds]
        unchanged = 0 if max(changes) > CHANGE_TOLERANCE else unchanged + 1
        score = evaluation.mean_squared_error if parameters.regression else evaluation.accuracy
        where = f"log2c={np.log2(cost):7.2f}\t"
        if parameters.regression:
            log(f"{where}p={epsilon:7.2f}\tMean squared error={score:g}")
        else:
            log(f"{where}rate={score:g}")
        if score < best.score if parameters.regression else score > best.score:
            best = CostSearchResult(cost, epsilon, score)
        cost *= 2.0
    if cost > MAX_COST[kind]:
        log("warning: maximum C reached.")
    return best


class _WarmStartedFold:
    """Training and test data of a fold, and the machine with its last solution."""

    def __init__(self, X: Any, y: Floats, train: Indices, test: Indices, parameters: LiblinearParameters) -> None:
        self.X: Any = X[train]
        self.y: Any = y[train]
        self.test_X, self.test_y = X[test], y[test]
        self.weights: Floats = np.zeros((1, X.shape[1]))
        self.labels: Indices | None = None
        if parameters.classifies:
            classes = Classes.of(self.y)
            self.labels, self.y = classes.labels, classes.numbers
            self.machine = parameters.machine(classes.factors(parameters.weights))
        else:
            self.machine = parameters.machine()
        self.machine.set_params(warm_start=True)

    def evaluate(self, evaluation: RunningMetrics, cost: float) -> float:
        """Train with a larger C, evaluate on the test data, and return the relative change of the weights."""
        if self.labels is not None and len(self.labels) == 1:
            evaluation.add(ProgramModel(None, self.labels).predict(self.test_X), self.test_y)
            return 0.0
        before = self.weights
        self.weights = np.atleast_2d(self.machine.set_params(C=cost).fit(self.X, self.y).coef_)
        evaluation.add(ProgramModel(self.machine, self.labels).predict(self.test_X), self.test_y)
        norm = float(np.linalg.norm(self.weights))
        return float(np.linalg.norm(self.weights - before)) / norm if norm else 0.0


def _first_cost(X: Any, y: Floats, parameters: LiblinearParameters) -> float:
    """Return LIBLINEAR's first C, a power of 2 so small that all weights are close to 0."""
    largest_norm = float(np.max(Linear().diagonal(X), initial=0.0)) + max(parameters.bias, 0.0) ** 2
    if not largest_norm:
        return 1.0
    if not parameters.regression:
        return float(2.0 ** np.floor(np.log2(1.0 / (2.0 * len(y) * largest_norm))))
    epsilon = 0.0 if parameters.epsilon is None else parameters.epsilon
    sizes = np.abs(y)
    loss = float(np.sum(np.maximum(sizes - epsilon, 0.0) ** 2))
    if not loss:
        return MAX_COST[parameters.solver_type]
    return float(2.0 ** np.floor(np.log2(0.01 * loss / (8.0 * float(sizes.sum()) ** 2 * largest_norm))))
