"""Grid search for C, γ, ε and ν by cross-validation, on all cores.

A trial is the score on a fold of the estimator with the parameters of one grid point, trained without that fold. The
trials of kernel estimators that differ in C only are trained together, from small to large C, on kernel values that all
folds share (`path_trials`, `maxmargin.selection`). Others are fits of their own: linear estimators visit the values of
C of a fold in ascending order, each with a warm start, as `maxmargin.linear_path` does, except for small problems.

Native loops release the interpreter lock, so trials run in threads: one thread per trial or path as long as there are
enough, several otherwise. The memory for kernel values is shared among them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from maxmargin.deadline import Deadline
from maxmargin.estimators import SVC
from maxmargin.machines.validation.parameters import check_count, check_number
from maxmargin.search import grid
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.grid import Axes, Point
from maxmargin.search.grid_search_result import COMPLETE, INTERRUPTED, STOPPED, TIME_LIMIT, GridSearchResult
from maxmargin.search.journal import Journal, Trial
from maxmargin.search.pruning import Pruning, central_first
from maxmargin.search.trial_threads import StartJobs, TrialThreads

#: Called with the result so far after every trial; returning True stops the search.
SearchCallback = Callable[[GridSearchResult], object]


def grid_search(
    X: Any,
    y: Any,
    estimator: Any = None,
    *,
    Cs: Iterable[float] | None = None,
    gammas: Iterable[float] | None = None,
    epsilons: Iterable[float] | None = None,
    nus: Iterable[float] | None = None,
    folds: int = 5,
    scoring: Any = None,
    refine: int = 0,
    prune: bool = False,
    seed: int = 0,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: SearchCallback | None = None,
) -> GridSearchResult:
    """Search for the values of C and γ, and of ε or ν, with the best cross-validation score.

    Ctrl-C ends the search; the result so far is returned, and is in the journal.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Scaled: see `maxmargin.datasets`. With ``kernel="precomputed"`` the square kernel matrix.
    y : array-like of shape (n_samples,)
    estimator : estimator with a parameter C or nu, optional
        Defines all other parameters; ``SVC()`` by default. It is not modified.
    Cs : iterable of float, optional
        LIBSVM's range by default: 2⁻⁵, 2⁻³, …, 2¹⁵.
    gammas : iterable of float, optional
        2⁻¹⁵, 2⁻¹³, …, 2³ by default, if the kernel has a γ; an empty list keeps that of the estimator.
    epsilons, nus : iterable of float, optional
        Values of ε of a regression, and of ν of a machine that has it; by default that of the estimator.
    folds : int, default=5
        Number of folds; stratified for classifiers.
    scoring : str or callable, optional
        Name of a scikit-learn scorer, or ``f(model, X, y)``; greater is better. Accuracy by default, R² for regression.
    refine : int, default=0
        Number of refinements. Each adds the eight neighbours of the best point at half the distance (in logarithms).
    prune : bool, default=False
        Whether to skip the other folds of points whose mean score cannot be the best any more, even if these folds have
        the largest possible score. The best point is the same; those that were dropped are ``pruned``, and have no
        score. It needs a score whose maximum is known, such as accuracy or R².
    seed : int, default=0
        Seed of the shuffle that assigns the folds.
    max_seconds : float, optional
        Time limit. Trials that are unfinished by then are discarded.
    n_jobs : int, optional
        Number of threads; None and −1 mean all cores.
    journal : path, optional
        File to which every trial is appended as soon as it is finished.
    resume : bool, default=False
        Whether to reuse the trials that are in the journal.
    callback : callable, optional
        Called with the result so far after every trial; returning True stops the search.

    Returns
    -------
    GridSearchResult
        ``best``, ``best_estimator``, ``scores``, ``table()``.

    Examples
    --------
    >>> from maxmargin import SVC, grid_search
    >>> from maxmargin.datasets import chessboard
    >>> result = grid_search(*chessboard(400, noise=0.0), SVC(), Cs=[1, 100], gammas=[0.01, 1, 100])
    >>> print(result.best.point)
    C = 100, gamma = 1
    >>> result.best_estimator
    SVC(C=100.0, gamma=1.0)
    """
    return search_grid(
        TrialThreads.starter(n_jobs), X, y, estimator, Cs=Cs, gammas=gammas, epsilons=epsilons, nus=nus, folds=folds,
        scoring=scoring, refine=refine, prune=prune, seed=seed, max_seconds=max_seconds, journal=journal, resume=resume,
        callback=callback,
    )  # fmt: skip


def search_grid(
    start: StartJobs,
    X: Any,
    y: Any,
    estimator: Any = None,
    *,
    Cs: Iterable[float] | None = None,
    gammas: Iterable[float] | None = None,
    epsilons: Iterable[float] | None = None,
    nus: Iterable[float] | None = None,
    folds: int = 5,
    scoring: Any = None,
    refine: int = 0,
    prune: bool = False,
    keep: int = 1,
    seed: int = 0,
    max_seconds: float | None = None,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: SearchCallback | None = None,
) -> GridSearchResult:
    """Return the result of `grid_search`, with trials that run where `start` starts them.

    With `prune`, as many of the best points as `keep` says are the same as without.
    """
    started = perf_counter()
    estimator = SVC() if estimator is None else estimator
    axes = _axes(estimator, {"C": Cs, "gamma": gammas, "epsilon": epsilons, "nu": nus})
    scorer = FoldScorer.of(estimator, X, y, folds, scoring, seed)
    check_count("refine", refine, 0)
    pruning = Pruning.of(scorer, prune, keep)
    with TrialRunner(start, scorer, max_seconds, started, journal, resume, callback, pruning) as runner:
        return runner.search(axes, refine)


def score_points(
    X: Any,
    y: Any,
    estimator: Any,
    points: Sequence[Point],
    *,
    folds: int = 5,
    scoring: Any = None,
    seed: int = 0,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: SearchCallback | None = None,
) -> GridSearchResult:
    """Return the cross-validation scores of the given points; the other parameters are those of `grid_search`."""
    started = perf_counter()
    scorer = FoldScorer.of(estimator, X, y, folds, scoring, seed)
    start = TrialThreads.starter(n_jobs)
    with TrialRunner(start, scorer, max_seconds, started, journal, resume, callback) as runner:
        return runner.run(runner.initial_result(), tuple(points))


def _axes(estimator: Any, given: Mapping[str, Any]) -> Axes:
    """Return the values of the parameters that are searched for, in ascending order."""
    parameters, name = estimator.get_params(deep=False), type(estimator).__name__
    if "C" not in parameters and given["nu"] is None:
        also = ": give nus" if "nu" in parameters else "; use scikit-learn's GridSearchCV"
        raise ValueError(f"{name} has no parameter C to search{also}")
    axes: dict[str, tuple[float, ...]] = {}
    if "C" in parameters:
        axes["C"] = grid.check_values("Cs", grid.powers(*grid.C_RANGE) if given["C"] is None else given["C"])
    elif given["C"] is not None:
        raise ValueError(f"{name} has no parameter C, so Cs must be None")
    widths = None if given["gamma"] is None else list(given["gamma"])
    if grid.has_gamma(estimator) and widths != []:
        axes["gamma"] = grid.check_values("gammas", grid.powers(*grid.GAMMA_RANGE) if widths is None else widths)
    elif widths:
        raise ValueError("gammas are for kernels that have a gamma: rbf, poly, sigmoid, laplacian, chi_squared")
    for parameter, most in (("epsilon", math.inf), ("nu", 1.0)):
        if given[parameter] is None:
            continue
        if parameter not in parameters:
            raise ValueError(f"{name} has no parameter {parameter}, so {parameter}s must be None")
        axes[parameter] = grid.check_values(f"{parameter}s", given[parameter], most=most)
    return {parameter: tuple(sorted(values)) for parameter, values in axes.items()}


class TrialRunner:
    """Runs rounds of trials until all are finished, the time limit is reached or the search is stopped."""

    def __init__(
        self,
        start: StartJobs,
        scorer: FoldScorer,
        max_seconds: float | None,
        started: float,
        journal: str | os.PathLike[str] | None = None,
        resume: bool = False,
        callback: SearchCallback | None = None,
        pruning: Pruning | None = None,
    ) -> None:
        self.pruning = pruning
        self.start, self.scorer, self.callback, self.started = start, scorer, callback, started
        limit = None if max_seconds is None else check_number("max_seconds", max_seconds, least=0)
        self.deadline = Deadline.after(limit, started)
        self.journal = None if journal is None else Journal(journal, scorer.identity(), resume)

    def __enter__(self) -> TrialRunner:
        return self

    def __exit__(self, *_: object) -> None:
        if self.journal is not None:
            self.journal.close()

    def initial_result(self) -> GridSearchResult:
        """Return a result without rounds that contains the trials of the journal."""
        known = () if self.journal is None else tuple(self.journal.known)
        data = self.scorer
        error_score = math.nan if data.error_score is None else data.error_score
        name, metric = data.scoring.name, data.scoring.metric
        return GridSearchResult(data.estimator, name, data.folds, (), known, metric=metric, error_score=error_score)

    def search(self, axes: Axes, refine: int) -> GridSearchResult:
        """Return the result of a grid and of its refinements around the best point."""
        result = self.run(self.initial_result(), grid.grid_points(axes))
        ratios = {name: grid.typical_ratio(values) for name, values in axes.items()}
        for _ in range(refine):
            if result.status != COMPLETE or not np.isfinite(result.best.mean):
                break
            ratios = {name: ratio**0.5 for name, ratio in ratios.items()}
            result = self.run(result, grid.neighbours(result.best.point, ratios, result.points))
        return result

    def run(self, result: GridSearchResult, points: tuple[Point, ...]) -> GridSearchResult:
        """Return the result extended by a round of points."""
        result = replace(result, rounds=(*result.rounds, points))
        ordered = points
        if self.pruning is not None:
            ordered = central_first(points)
            for trial in (trial for trials in result.by_point.values() for trial in trials.values()):
                self.pruning.add(trial)
            result = self._with_pruned(result)
        jobs = self.scorer.jobs(ordered, {(trial.point, trial.fold) for trial in result.trials})
        unfinished, status = len(jobs), COMPLETE
        try:
            with self.start(self.scorer, jobs, self.deadline, self.pruning) as running:
                while unfinished and status == COMPLETE:
                    if self.deadline.reached:
                        status = TIME_LIMIT
                        break
                    trials, finished = running.collect()
                    unfinished -= finished
                    if trials:
                        self._record(trials)
                        seconds = perf_counter() - self.started
                        result = replace(result, trials=(*result.trials, *trials), seconds=seconds)
                        if self.callback is not None and self.callback(self._with_pruned(result)) is True:
                            status = STOPPED
        except KeyboardInterrupt:  # also while the jobs end
            status = INTERRUPTED
        return replace(self._with_pruned(result), status=status, seconds=perf_counter() - self.started)

    def _with_pruned(self, result: GridSearchResult) -> GridSearchResult:
        """Return the result with the points that can no longer be the best, if they are dropped."""
        if self.pruning is None:
            return result
        return replace(result, pruned=tuple(filter(self.pruning.loses, result.points)))

    def _record(self, trials: list[Trial]) -> None:
        for trial in trials if self.journal is not None else ():
            self.journal.add(trial)  # type: ignore[union-attr]  # there is one
