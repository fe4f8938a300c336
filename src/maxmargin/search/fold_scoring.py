"""Stratified folds, and the scores of an estimator on the samples that a split holds out of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import get_scorer
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _num_samples

from maxmargin import _sparse as sparse
from maxmargin._typing import Indices
from maxmargin.datasets.samples import checksum
from maxmargin.deadline import TimeLimitReachedError
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.kernel.kernel_estimator import KernelEstimator
from maxmargin.machines.linear.linear_estimator import LinearEstimator
from maxmargin.machines.validation.device_arrays import copied_from_gpu
from maxmargin.machines.validation.parameters import check_count, check_number
from maxmargin.resources import default_cache_bytes, usable_memory
from maxmargin.search.grid import Point
from maxmargin.search.journal import Trial
from maxmargin.training.fit_context import MAX_FULL_KERNEL_ROWS, PROBLEMS_ON_DEVICE
from maxmargin.training.small_linear_problems import are_small

#: Fraction of the memory that copies of the training and test rows of all folds may occupy.
FOLD_COPIES_MEMORY_FRACTION = 1 / 16

#: Problems of at most this many samples train within milliseconds: they need no callback that can stop them, and
#: trials of data this small run in one thread, because they spend most of their time in the interpreter.
SMALL_PROBLEM_SAMPLES = 500


def assign_folds(y: Any, folds: int, seed: int, stratified: bool) -> Indices:
    """Return the fold of each sample.

    The shuffled members of each class are assigned to the folds in turn, and the next class continues with the next
    fold: the sizes of two folds differ by at most one sample, in total and within every class.
    """
    y = np.asarray(y)
    if stratified and len(np.unique(y)) < 2:
        raise ValueError(f"all {len(y)} samples are of class {y[0]}; there must be at least two classes")
    if not 2 <= folds <= len(y):
        raise ValueError(f"{len(y)} samples can be split into 2 to {len(y)} folds, not {folds}")
    strata = np.unique(y, return_inverse=True)[1] if stratified else np.zeros(len(y), dtype=np.intp)
    shuffled = np.random.default_rng(seed).permutation(len(y))
    shuffled = shuffled[np.argsort(strata[shuffled], kind="stable")]
    fold_of = np.empty(len(y), dtype=np.intp)
    fold_of[shuffled] = np.arange(len(y)) % folds
    for fold in range(folds) if stratified else ():
        if len(np.unique(y[fold_of != fold])) < 2:
            raise ValueError(
                f"without fold {fold + 1} of {folds} only one class is left: all classes but one are too small for "
                "cross-validation"
            )
    return fold_of


def draw_subset(y: Any, count: int, seed: int, stratified: bool) -> Indices:
    """Return `count` random rows in ascending order; stratified: in class proportions, at least two per class."""
    y = np.asarray(y)
    random = np.random.default_rng(seed)
    if count >= len(y):
        return np.arange(len(y))
    if not stratified:
        return np.sort(random.choice(len(y), count, replace=False))
    labels = np.unique(y, return_inverse=True)[1]
    rows = []
    for label in range(labels.max() + 1):
        members = random.permutation(np.flatnonzero(labels == label))
        rows.append(members[: max(2, round(count * len(members) / len(y)))])
    return np.sort(np.concatenate(rows))


def _accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the accuracy; scikit-learn's scorer costs noticeably more where trials take milliseconds."""
    return float(np.average(estimator.predict(X) == y, weights=sample_weight))


SCORERS: dict[str, Callable[..., float]] = {"accuracy": _accuracy}


@dataclass(frozen=True)
class Scoring:
    """What a trial is scored with.

    Attributes
    ----------
    name : str
        What the score that ranks points is called in tables and figures.
    scorer : callable
        ``scorer(estimator, X, y, **arguments)`` returns a number, or a dict of numbers by the name of a metric.
    metric : str
        The metric that ranks points; "score" if there is only one.
    arguments : dict
        Arguments of the scorer with a value for each sample, such as sample_weight.
    train : bool
        Whether the training samples are scored as well.
    """

    name: str
    scorer: Callable[..., Any]
    metric: str = "score"
    arguments: dict[str, Any] = field(default_factory=dict)
    train: bool = False

    def scores(self, estimator: Any, X: Any, y: Any, rows: Indices, prefix: str) -> dict[str, float]:
        """Return the scores of an estimator on samples, which are these rows of all."""
        arguments = {name: _safe_indexing(values, rows) for name, values in self.arguments.items()}
        found = self.scorer(estimator, X, y, **arguments) if y is not None else self.scorer(estimator, X, **arguments)
        named = found if isinstance(found, dict) else {"score": found}
        return {f"{prefix}_{name}": float(score) for name, score in named.items()}


class Split(NamedTuple):
    """The rows that a trial trains on, None for all that are not in `test`, and those that it is scored on."""

    train: Indices | None
    test: Indices

    @classmethod
    def of(cls, train: Any, test: Any, samples: int) -> Split:
        """Return a split whose training rows are not stored if they are all others in ascending order."""
        train, test = (_rows(part, samples) for part in (train, test))
        return cls(None if np.array_equal(train, _others(test, samples)) else train, test)

    def training_rows(self, samples: int) -> Indices:
        """Return the rows to train on."""
        return _others(self.test, samples) if self.train is None else self.train


def _rows(part: Any, samples: int) -> Indices:
    """Return numbers of rows, also for a mask."""
    rows = np.asarray(part)
    return np.flatnonzero(rows) if rows.dtype == bool and len(rows) == samples else rows.astype(np.intp, copy=False)


def _others(rows: Indices, samples: int) -> Indices:
    """Return all other rows in ascending order."""
    kept = np.ones(samples, dtype=bool)
    kept[rows] = False
    return np.flatnonzero(kept)


@dataclass(frozen=True)
class FoldScorer:
    """An estimator, the data, their splits into training and test samples, and the score.

    Attributes
    ----------
    estimator : estimator
        Defines all parameters that are not searched for.
    X, y
        All samples, and their labels or targets; None where the estimator needs none.
    splits : tuple of Split
    scoring : Scoring
    described : dict
        What identifies the splits in a journal.
    fit_arguments : dict
        Arguments of ``fit`` with a value for each sample, such as sample_weight.
    error_score : float or None
        The score of a trial that raises an exception. None: the exception ends the search, and so does a score that is
        not finite.
    """

    estimator: Any
    X: Any
    y: Any
    splits: tuple[Split, ...]
    scoring: Scoring
    described: dict[str, Any]
    fit_arguments: dict[str, Any] = field(default_factory=dict)
    error_score: float | None = None
    _copies: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    #: The most trials at the same time; None for as many as there are threads.
    workers: ClassVar[int | None] = None

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, folds: int, scoring: Any, seed: int) -> FoldScorer:
        """Validate the arguments and assign the folds."""
        if not (is_classifier(estimator) or is_regressor(estimator)):
            raise ValueError(f"{type(estimator).__name__} is neither a classifier nor a regressor: it has no score")
        X, y = copied_from_gpu(X), copied_from_gpu(y)
        X, y = X if hasattr(X, "shape") else np.asarray(X), np.asarray(y)
        if len(X.shape) != 2 or y.shape != X.shape[:1]:
            raise ValueError(f"X must be 2-dimensional with one label per row, but X is {X.shape} and y is {y.shape}")
        fold_of = assign_folds(y, check_count("folds", folds, 2), seed, is_classifier(estimator))
        splits = tuple(Split(None, np.flatnonzero(fold_of == fold)) for fold in range(folds))
        if scoring is None:
            scoring = "accuracy" if is_classifier(estimator) else "r2"
        name = scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", scoring))
        scores = Scoring(name, SCORERS.get(name) or get_scorer(scoring))
        return cls(clone(estimator), X, y, splits, scores, {"folds": folds, "seed": seed})

    @property
    def folds(self) -> int:
        """The number of splits."""
        return len(self.splits)

    @property
    def samples(self) -> int:
        """The number of samples."""
        return int(_num_samples(self.X))

    def identity(self) -> dict[str, Any]:
        """Return what must be equal for the trials of two searches to be interchangeable."""
        parameters = {name: repr(value) for name, value in self.estimator.get_params(deep=False).items()}
        for name in ("C", "n_jobs", "cache_size", "callback", "verbose", "warm_start"):
            parameters.pop(name, None)
        return {
            "samples": list(self.X.shape),
            "data": checksum(self.X, self.y, *self.fit_arguments.values()),
            "estimator": type(self.estimator).__name__,
            "parameters": parameters,
            **self.described,
            "scoring": self.scoring.name,
        }

    def jobs(self, points: Sequence[Point], known: set[tuple[Point, int]]) -> list[list[tuple[Point, int]]]:
        """Return lists of trials: the lists can run in parallel, the trials of a list run one after another."""
        missing = [(point, fold) for point in points for fold in range(self.folds) if (point, fold) not in known]
        if not self.starts_along_cost:
            return [[trial] for trial in missing]
        by_fold = [[trial for trial in missing if trial[1] == fold] for fold in range(self.folds)]
        return [sorted(trials, key=lambda trial: trial[0].path_position) for trials in by_fold if trials]

    def estimator_for_job(self, threads: int, cache_bytes: int, callback: Any, jobs: int = 1) -> Any:
        """Return a copy of the estimator for the trials of one job, beside which others run; `jobs` with this one."""
        overrides = {"n_jobs": threads, "cache_size": cache_bytes / 2**20, "callback": callback}
        overrides["warm_start"] = self.starts_along_cost
        estimator = copy(self.estimator)
        for name in overrides.keys() & vars(estimator).keys():
            setattr(estimator, name, overrides[name])
        if jobs > 1 and isinstance(estimator, KernelEstimator):
            estimator._problems_on_device = max(1, PROBLEMS_ON_DEVICE // jobs)
        return estimator

    def trial(self, estimator: Any, point: Point, fold: int) -> Trial:
        """Train an estimator with the parameters of a point without the test samples of a split, and score it."""
        begin = trained = perf_counter()
        try:
            for name, value in point.parameters.items():
                setattr(estimator, name, value)
            model = self.trained(estimator, fold)
            trained = perf_counter()
            scores = self.scores(model, point, fold)
        except (TimeLimitReachedError, MemoryError):
            raise
        except Exception as error:
            if self.error_score is None:
                raise
            message, now = f"{type(error).__name__}: {error}", perf_counter()
            trained = now if trained == begin else trained
            return Trial(point, fold, {}, trained - begin, now - trained, message)
        return Trial(point, fold, scores, trained - begin, perf_counter() - trained)

    def trained(self, estimator: Any, fold: int) -> Any:
        """Train an estimator on the training samples of a split, and return what is scored on the others."""
        X, y = self.split_data(fold)[0]
        if not self.fit_arguments:
            return estimator.fit(X, y)
        rows = self.splits[fold].training_rows(self.samples)
        arguments = {name: _safe_indexing(values, rows) for name, values in self.fit_arguments.items()}
        return estimator.fit(X, y, **arguments)

    def scores(self, estimator: Any, point: Point, fold: int) -> dict[str, float]:
        """Return the scores of an estimator that was trained on the training samples of a split."""
        (X_train, y_train), (X, y) = self.split_data(fold)
        split, scoring = self.splits[fold], self.scoring
        found = scoring.scores(estimator, X, y, split.test, "test")
        if scoring.train:
            found |= scoring.scores(estimator, X_train, y_train, split.training_rows(self.samples), "train")
        return self._checked(found, point, fold)

    def held_out_scores(self, model: Any, point: Point, fold: int) -> dict[str, float]:
        """Return the scores of a model that knows its values of the test samples, without taking these."""
        test = self.splits[fold].test
        y = None if self.y is None else _safe_indexing(self.y, test)
        return self._checked(self.scoring.scores(model, test[:, None], y, test, "test"), point, fold)

    def _checked(self, found: dict[str, float], point: Point, fold: int) -> dict[str, float]:
        """Return scores, or raise if one is not finite."""
        scoring = self.scoring
        for name, score in found.items() if self.error_score is None else ():
            if not np.isfinite(score):
                shown = scoring.name if name == "test_score" else name
                raise ValueError(f"the score {shown} of fold {fold + 1} at {point} is {score}; use fewer folds")
        return found

    def split_data(self, fold: int) -> tuple[Any, Any]:
        """Return the training and the test samples of a split; kept for later trials if all splits fit into memory."""
        if fold in self._copies:
            return self._copies[fold]
        train, test = self.splits[fold].training_rows(self.samples), self.splits[fold].test
        split = (
            _safe_split(self.estimator, self.X, self.y, train),
            _safe_split(self.estimator, self.X, self.y, test, train),
        )
        # Objects for a user's kernel function are not copied.
        size = self.X.data.nbytes + self.X.indices.nbytes if sparse.issparse(self.X) else getattr(self.X, "nbytes", 0)
        if self.folds * size < FOLD_COPIES_MEMORY_FRACTION * usable_memory():
            self._copies[fold] = split
        return split

    @property
    def starts_along_cost(self) -> bool:
        """Whether the trials of a fold start from one another, in ascending order of C: those of linear estimators.

        Small ones do not: a fit from zero, in one native call, takes a fraction of the time of one from a start
        (`python -m benchmarks.starts_along_cost`).
        """
        estimator = self.estimator
        if not isinstance(estimator, LinearEstimator):
            return False
        native = isinstance(estimator.solver, str) and (estimator.solver, estimator.dual) == ("auto", "auto")
        native = native and estimator.penalty == "l2" and getattr(estimator, "multi_class", "ovr") == "ovr"
        return sparse.issparse(self.X) or not (native and are_small(*self.X.shape))

    @property
    def is_small(self) -> bool:
        """Whether there are at most `SMALL_PROBLEM_SAMPLES` samples."""
        return self.samples <= SMALL_PROBLEM_SAMPLES

    @property
    def has_small_problems(self) -> bool:
        """Whether every binary problem is small: that of all samples, or of two classes in one-vs-one training."""
        one_vs_one = isinstance(self.estimator, KernelClassifier) and self.estimator.multi_class == "ovo"
        if not one_vs_one or self.samples * (self.folds - 1) > MAX_FULL_KERNEL_ROWS * self.folds:
            return self.is_small
        return int(np.sort(np.unique(self.y, return_counts=True)[1])[-2:].sum()) <= SMALL_PROBLEM_SAMPLES

    def cache_bytes(self) -> int:
        """Return the size of the kernel row caches of all concurrent trials together."""
        requested = self.estimator.get_params(deep=False).get("cache_size", "auto")
        if isinstance(requested, str):
            return default_cache_bytes()
        return int(check_number("cache_size", requested, above=0) * 2**20)
