"""Stratified folds, and the score of an estimator on a held-out fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import get_scorer
from sklearn.utils.metaestimators import _safe_split

from maxmargin import _sparse as sparse
from maxmargin._typing import Indices
from maxmargin.datasets.samples import checksum
from maxmargin.machines.kernel.kernel_classifier import KernelClassifier
from maxmargin.machines.linear.linear_estimator import LinearEstimator
from maxmargin.machines.validation.parameters import check_count, check_number
from maxmargin.resources import default_cache_bytes, usable_memory
from maxmargin.search.grid import Point
from maxmargin.training.fit_context import MAX_FULL_KERNEL_ROWS

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


def _accuracy(estimator: Any, X: Any, y: Any) -> float:
    """Return the accuracy; scikit-learn's scorer costs noticeably more where trials take milliseconds."""
    return float(np.mean(estimator.predict(X) == y))


SCORERS: dict[str, Callable[[Any, Any, Any], float]] = {"accuracy": _accuracy}


@dataclass(frozen=True)
class FoldScorer:
    """An estimator, the data, their folds and the score."""

    estimator: Any
    X: Any
    y: Any
    fold_of: Indices
    folds: int
    scoring: str
    scorer: Callable[[Any, Any, Any], float]
    seed: int
    _splits: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, folds: int, scoring: Any, seed: int) -> FoldScorer:
        """Validate the arguments and assign the folds."""
        if not (is_classifier(estimator) or is_regressor(estimator)):
            raise ValueError(f"{type(estimator).__name__} is neither a classifier nor a regressor: it has no score")
        X, y = X if hasattr(X, "shape") else np.asarray(X), np.asarray(y)
        if len(X.shape) != 2 or y.shape != X.shape[:1]:
            raise ValueError(f"X must be 2-dimensional with one label per row, but X is {X.shape} and y is {y.shape}")
        fold_of = assign_folds(y, check_count("folds", folds, 2), seed, is_classifier(estimator))
        if scoring is None:
            scoring = "accuracy" if is_classifier(estimator) else "r2"
        name = scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", scoring))
        return cls(clone(estimator), X, y, fold_of, folds, name, SCORERS.get(name) or get_scorer(scoring), seed)

    def identity(self) -> dict[str, Any]:
        """Return what must be equal for the trials of two searches to be interchangeable."""
        parameters = {name: repr(value) for name, value in self.estimator.get_params(deep=False).items()}
        for name in ("C", "n_jobs", "cache_size", "callback", "verbose", "warm_start"):
            parameters.pop(name, None)
        return {
            "samples": list(self.X.shape),
            "data": checksum(self.X, self.y),
            "estimator": type(self.estimator).__name__,
            "parameters": parameters,
            "folds": self.folds,
            "seed": self.seed,
            "scoring": self.scoring,
        }

    def jobs(self, points: Sequence[Point], known: set[tuple[Point, int]]) -> list[list[tuple[Point, int]]]:
        """Return lists of trials: the lists can run in parallel, the trials of a list run one after another."""
        missing = [(point, fold) for point in points for fold in range(self.folds) if (point, fold) not in known]
        if not isinstance(self.estimator, LinearEstimator):
            return [[trial] for trial in missing]
        by_fold = [[trial for trial in missing if trial[1] == fold] for fold in range(self.folds)]
        return [sorted(trials, key=lambda trial: trial[0].C) for trials in by_fold if trials]

    def estimator_for_job(self, threads: int, cache_bytes: int, callback: Any) -> Any:
        """Return a copy of the estimator for the trials of one job."""
        linear = isinstance(self.estimator, LinearEstimator)
        overrides = {"n_jobs": threads, "cache_size": cache_bytes / 2**20, "callback": callback, "warm_start": linear}
        estimator = copy(self.estimator)
        for name in overrides.keys() & vars(estimator).keys():
            setattr(estimator, name, overrides[name])
        return estimator

    def score(self, estimator: Any, point: Point, fold: int) -> float:
        """Train an estimator with the parameters of a point without one fold, and return its score on that fold."""
        estimator.C = point.C
        if point.gamma is not None:
            estimator.gamma = point.gamma
        train, test = self._split(fold)
        estimator.fit(*train)
        score = float(self.scorer(estimator, *test))
        if not np.isfinite(score):
            raise ValueError(f"the score {self.scoring} of fold {fold + 1} at {point} is {score}; use fewer folds")
        return score

    def _split(self, fold: int) -> tuple[Any, Any]:
        """Return the training and the test samples of a fold; kept for later trials if all folds fit into memory."""
        if fold in self._splits:
            return self._splits[fold]
        train, test = np.flatnonzero(self.fold_of != fold), np.flatnonzero(self.fold_of == fold)
        split = (
            _safe_split(self.estimator, self.X, self.y, train),
            _safe_split(self.estimator, self.X, self.y, test, train),
        )
        size = self.X.data.nbytes + self.X.indices.nbytes if sparse.issparse(self.X) else self.X.nbytes
        if self.folds * size < FOLD_COPIES_MEMORY_FRACTION * usable_memory():
            self._splits[fold] = split
        return split

    @property
    def is_small(self) -> bool:
        """Whether there are at most `SMALL_PROBLEM_SAMPLES` samples."""
        return len(self.y) <= SMALL_PROBLEM_SAMPLES

    @property
    def has_small_problems(self) -> bool:
        """Whether every binary problem is small: that of all samples, or of two classes in one-vs-one training."""
        one_vs_one = isinstance(self.estimator, KernelClassifier) and self.estimator.multi_class == "ovo"
        if not one_vs_one or len(self.y) * (self.folds - 1) > MAX_FULL_KERNEL_ROWS * self.folds:
            return self.is_small
        return int(np.sort(np.unique(self.y, return_counts=True)[1])[-2:].sum()) <= SMALL_PROBLEM_SAMPLES

    def cache_bytes(self) -> int:
        """Return the size of the kernel row caches of all concurrent trials together."""
        requested = self.estimator.get_params(deep=False).get("cache_size", "auto")
        if isinstance(requested, str):
            return default_cache_bytes()
        return int(check_number("cache_size", requested, above=0) * 2**20)
