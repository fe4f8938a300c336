"""Trials that are trained together, by `maxmargin.selection`: those of a fold at all values of C.

The scores are those of independent fits. What the engine does not train, it leaves to independent fits: certain
estimators and scores altogether, and single models that it did not solve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.grid import Point
from maxmargin.search.journal import Trial
from maxmargin.search.novelty_score import BackgroundScore
from maxmargin.search.scored_values import asks_for_values
from maxmargin.selection.fold_paths import Fold, FoldPaths, why_independent
from maxmargin.selection.held_out_models import HeldOutModel

#: A fold and points that differ in C only, in ascending order.
TrialPath = list[tuple[Point, int]]


class PathTrials:
    """The trials of a search as paths.

    Parameters
    ----------
    scorer : FoldScorer
    trials : sequence of pairs of a point and a fold
    threads : int
    """

    def __init__(self, scorer: FoldScorer, trials: Sequence[tuple[Point, int]], threads: int) -> None:
        self.scorer = scorer
        self.paths = _paths(trials)
        rows = [Fold(split.training_rows(scorer.samples), split.test) for split in scorer.splits]
        weights = scorer.fit_arguments.get("sample_weight")
        estimator = scorer.estimator_for_job(threads, scorer.cache_bytes(), None)
        several = len({point.gamma for point, _ in trials}) > 1 or isinstance(estimator.gamma, str)
        budget = scorer.cache_bytes()
        self._engine = FoldPaths(
            estimator, scorer.X, scorer.y, rows, weights, budget, threads, several, _others(scorer.scoring.scorer)
        )

    @classmethod
    def of(cls, scorer: FoldScorer, trials: Sequence[tuple[Point, int]], threads: int) -> PathTrials | None:
        """Return the trials as paths, None if they are independent fits."""
        if not trials or type(scorer) is not FoldScorer or not scorer.fit_arguments.keys() <= {"sample_weight"}:
            return None
        if scorer.scoring.train or not asks_for_values(scorer.scoring.scorer):
            return None
        others = _others(scorer.scoring.scorer)
        count = 0 if others is None else others.shape[0]
        if why_independent(scorer.estimator, scorer.X, scorer.y, scorer.cache_bytes(), threads, count) is not None:
            return None
        try:
            return cls(scorer, trials, threads)
        except (TypeError, ValueError):  # of data or parameters: an independent fit says which trial fails
            return None

    def cancel(self) -> None:
        """End the paths that are running."""
        self._engine.cancel()

    def run(self, path: TrialPath, estimator: Any) -> Iterator[Trial]:
        """Yield the trials of a path; those that are not solved are fits of the estimator."""
        models = self._engine.models(path[0][1], [point.parameters for point, _ in path])
        for point, fold in path:
            begin = perf_counter()
            try:
                model = next(models, None)
            except (TypeError, ValueError):  # of one of the points: an independent fit says of which
                model = None
            if self._engine.cancelled:
                return
            trial = None if model is None else self._scored(point, fold, model, perf_counter() - begin)
            yield self.scorer.trial(estimator, point, fold) if trial is None else trial

    def _scored(self, point: Point, fold: int, model: HeldOutModel, seconds: float) -> Trial | None:
        """Return a trial, None if its score fails: then the independent fit reports it."""
        begin = perf_counter()
        try:
            scores = self.scorer.held_out_scores(model, point, fold)
        except Exception:
            return None
        return Trial(point, fold, scores, seconds, perf_counter() - begin)


def _paths(trials: Sequence[tuple[Point, int]]) -> list[TrialPath]:
    """Return the trials that differ in C only, those of one kernel next to each other, kernels as they come."""
    paths: dict[Any, TrialPath] = {}
    kernels: dict[Any, int] = {}
    for point, fold in trials:
        kernel = kernels.setdefault(point.gamma, len(kernels))
        paths.setdefault((kernel, point[2:], fold), []).append((point, fold))
    ordered = sorted(paths.items(), key=lambda item: (item[0][0], repr(item[0][1]), item[0][2]))
    return [sorted(path, key=lambda trial: trial[0].C or 0.0) for _, path in ordered]


def _others(scorer: Any) -> Any:
    """Return the samples that a scorer asks a model about beside the held-out ones, None for none."""
    return scorer.background if isinstance(scorer, BackgroundScore) else None
