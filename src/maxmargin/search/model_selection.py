"""Selection of an estimator and its parameters for a data set, within a time limit.

`selection_plan` decides what is tried; here it is tried.

C and γ are searched on a subset of large data, on a coarse grid with two refinements. The best points are then scored
on a larger subset, also with a smaller C: the sum of the slacks grows with the number of samples, so the best C tends
to decrease.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from sklearn.base import clone

from maxmargin.estimators import LSSVR, SVC, KernelApproximationSVC, NuSVR
from maxmargin.resources import thread_count
from maxmargin.search.class_weighting import FITS_PER_FOLD, choose_threshold
from maxmargin.search.cross_validated_search import score_points, search_grid
from maxmargin.search.data_summary import DataSummary, summarize, typical_gamma
from maxmargin.search.fold_scoring import draw_subset
from maxmargin.search.grid_search_result import INTERRUPTED, STOPPED, GridSearchResult, PointScore
from maxmargin.search.score_colormap import format_score
from maxmargin.search.selection_plan import Candidate, SelectionPlan, plan_selection
from maxmargin.search.trial_threads import TrialThreads

#: Refinements of the grids.
REFINEMENTS = 2

#: Number of the best points that are scored again on more samples.
CONFIRMED_POINTS = 3

#: Fractions of the time limit by which the searches of a linear model, of a kernel and of losses must end.
LINEAR_DEADLINE, KERNEL_DEADLINE, LOSSES_DEADLINE = 0.2, 0.7, 0.8

#: The names of the searches.
SEARCHES = ("linear", "kernel", "nu", "least squares", "confirmation")

#: Values of ν that are tried, and of C for the squared loss as multiples of the best one of the ε-insensitive loss.
NUS, SQUARED_LOSS_COSTS = (0.2, 0.4, 0.6, 0.8), (2.0**-6, 2.0**-4, 0.25, 1.0, 4.0)

#: The gain in score of another loss, in standard deviations of a fold, up to which the usual one is kept: it has
#: prediction intervals, and fewer support vectors than the squared loss.
MIN_LOSS_GAIN = 0.25

#: The models of the searches in words.
MODELS = {
    "linear": "linear model",
    "kernel": "model with a Gaussian kernel",
    "nu": "model with a Gaussian kernel and a tube chosen by nu",
    "least squares": "model with a Gaussian kernel and squared loss",
}

#: Called with the name of a search and its result so far.
SelectionCallback = Callable[[str, GridSearchResult], object]


@dataclass(frozen=True)
class ModelChoice:
    """An estimator with its parameters, and how they were chosen.

    Attributes
    ----------
    estimator : estimator
        With all parameters, not fitted.
    summary : DataSummary
        Properties of the data on which the choice is based.
    score : PointScore or None
        The cross-validation score; None if a limit or Ctrl-C ended the search before the first one.
    reasons : tuple of str
        Why this estimator and these parameters, in sentences.
    searches : dict of str to GridSearchResult
        "linear", "kernel", "nu", "least squares" and "confirmation", as far as they took place.
    interrupted : bool
        Whether Ctrl-C ended the search; the choice is the best one until then.
    threshold : float or None
        Decision value from which on the second of two classes is predicted; None for 0.
    """

    estimator: Any
    summary: DataSummary
    score: PointScore | None
    reasons: tuple[str, ...]
    searches: dict[str, GridSearchResult] = field(repr=False)
    interrupted: bool = False
    threshold: float | None = None

    @property
    def scoring(self) -> Any:
        """The score by which the estimator was chosen."""
        return next(iter(self.searches.values())).scoring if self.searches else None


def choose_estimator(
    X: Any,
    y: Any,
    *,
    classification: bool,
    scoring: Any = None,
    folds: int = 5,
    max_seconds: float = 300.0,
    train_seconds: float = math.inf,
    seed: int = 0,
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    callback: SelectionCallback | None = None,
    prune: bool = False,
) -> ModelChoice:
    """Choose an estimator and its parameters for a data set.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Scaled.
    y : array of shape (n_samples,)
    classification : bool
        Whether `y` contains classes; otherwise targets of a regression.
    scoring : str or callable, optional
        As in `grid_search`; by default R², accuracy, or of imbalanced classes the balanced accuracy. For such a score
        or F1, class weights and a threshold of the decision values are considered.
    folds : int, default=5
    max_seconds : float, default=300
        Time limit for all searches together.
    train_seconds : float, optional
        Time limit for the training that follows: if the estimated time of an exact kernel estimator exceeds it, the
        kernel is approximated by landmarks.
    seed : int, default=0
        Seed of folds and subsets.
    n_jobs : int, optional
        Number of threads.
    journal : path, optional
        Stem of the files to which finished trials are appended, one for each search: see `journals`.
    resume : bool, default=False
        Whether to reuse the trials in these files, of a selection that was interrupted.
    callback : callable, optional
        Called with the name of a search and its result so far, after every trial.
    prune : bool, default=False
        Whether to skip the other folds of points that cannot be among the best any more, as `grid_search` does; the
        choice is the same.

    Returns
    -------
    ModelChoice

    Examples
    --------
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.search import choose_estimator
    >>> choice = choose_estimator(*chessboard(400, noise=0.0), classification=True)
    >>> type(choice.estimator).__name__, choice.score.mean > 0.9
    ('SVC', True)
    """
    summary = summarize(X, y, classification)
    common = {"scoring": scoring, "folds": folds, "seed": seed, "n_jobs": n_jobs}
    paths = {} if journal is None else journals(journal)
    return _ModelSelection(X, y, summary, common, max_seconds, train_seconds, paths, resume, callback, prune).choose()


def journals(stem: str | os.PathLike[str]) -> dict[str, str]:
    """Return the name of the journal of each search of a model selection."""
    return {name: f"{os.fspath(stem)}.{name}.jsonl" for name in SEARCHES}


@dataclass
class _ModelSelection:
    X: Any
    y: Any
    summary: DataSummary
    common: dict[str, Any]  # arguments of all searches
    max_seconds: float
    train_seconds: float
    journals: dict[str, str]
    resume: bool
    callback: SelectionCallback | None
    prune: bool
    plan: SelectionPlan = field(init=False)
    reasons: list[str] = field(init=False)
    searches: dict[str, GridSearchResult] = field(default_factory=dict)
    started: float = field(default_factory=perf_counter)
    stopped: bool = False  # by Ctrl-C outside of the searches

    def __post_init__(self) -> None:
        self.plan = plan_selection(self.summary, self.common["scoring"])
        self.common = {**self.common, "scoring": self.plan.weighting.scoring}
        self.reasons = list(self.plan.reasons)

    def choose(self) -> ModelChoice:
        """Search, confirm on more samples, and choose."""
        linear, kernel = self.plan.linear, self.plan.kernel
        rows = self._subset(self.plan.search_samples, self.common["seed"])
        if len(rows) < self.summary.rows:
            self.reasons.append(f"parameters were searched on {len(rows):,} of {self.summary.rows:,} samples")
        try:
            self._search("linear", linear, rows, LINEAR_DEADLINE if kernel is not None else KERNEL_DEADLINE)
            if kernel is not None and not self._interrupted:
                self._search("kernel", kernel, rows, KERNEL_DEADLINE)
            if kernel is not None and not self._interrupted and self.summary.classes is None:
                self._search_other_losses(rows)
        except KeyboardInterrupt:  # between two searches; a search returns what it has scored
            self.stopped = True
        results = {name: result for name, result in self.searches.items() if result.scores}
        if not results:
            return self._default_choice(linear if kernel is None else kernel)
        name = self._best(results)
        self._explain(results, name)
        estimator, score, samples = results[name].best_estimator, results[name].best, len(rows)
        if len(rows) < self.summary.rows and not self._interrupted:
            try:
                estimator, score, samples = self._confirm(results[name], len(rows))
            except KeyboardInterrupt:  # before the first trial or after the last
                self.stopped = True
                self.reasons.append("Ctrl-C came before this was confirmed on more samples")
        seconds, threshold = score.seconds / self.common["folds"], None
        if self.plan.weighting.considered and not self._interrupted:
            estimator, score, threshold = self._weighted(estimator, score, rows)
        final = self._final(estimator, seconds, samples)
        reasons = tuple(self.reasons)
        return ModelChoice(final, self.summary, score, reasons, self.searches, self._interrupted, threshold)

    def _weighted(self, estimator: Any, score: PointScore, rows: Any) -> tuple[Any, PointScore, float | None]:
        """Return the classifier with or without weights, its score, and its threshold."""
        scoring, folds = str(self.common["scoring"]), self.common["folds"]
        if len(self.summary.classes) > 2:
            self.reasons.append("the classes are weighted by their inverse frequencies")
            return estimator, score, None
        cause = ""
        if FITS_PER_FOLD * folds * score.seconds > self._seconds_until(1.0):
            cause = "there was no time"
        elif self.summary.counts.min() * len(rows) < 2 * folds * self.summary.rows:
            cause = "one class has too few samples"
        if cause:
            self.reasons.append(f"the classes are weighted by their inverse frequencies; {cause} to tune a threshold")
            return estimator, score, None
        try:
            found = choose_threshold(
                self.X[rows],
                self.y[rows],
                estimator,
                score.mean,
                scoring=scoring,
                folds=folds,
                seed=self.common["seed"],
            )
        except KeyboardInterrupt:
            self.stopped = True
            return estimator, score, None
        self.reasons.append(found.reason)
        return found.estimator, score._replace(mean=found.score), found.threshold

    @staticmethod
    def _best(results: dict[str, GridSearchResult]) -> str:
        """Return the name of the search with the best score: of equal ones the first, of losses the usual one."""
        scores = {name: result.best.mean for name, result in results.items()}
        if "kernel" in scores:
            for name in scores.keys() - {"linear", "kernel"}:
                scores[name] -= MIN_LOSS_GAIN * results["kernel"].best.std
        return max(results, key=lambda name: scores[name])

    @property
    def _interrupted(self) -> bool:
        return self.stopped or any(result.status == INTERRUPTED for result in self.searches.values())

    def _subset(self, count: int, seed: int) -> Any:
        """Return `count` random rows."""
        return draw_subset(self.y, count, seed, self.summary.classes is not None)

    def _seconds_until(self, fraction: float) -> float:
        """Return the seconds until a fraction of the time limit has passed."""
        return max(0.0, fraction * self.max_seconds - (perf_counter() - self.started))

    def _callback_of(self, name: str) -> Any:
        return None if self.callback is None else lambda result: self.callback(name, result)

    def _search(self, name: str, candidate: Candidate, rows: Any, deadline: float) -> None:
        estimator, costs, widths = candidate
        if widths is not None:
            typical = typical_gamma(self.X[rows])
            widths = tuple(typical * width for width in widths)
        self._search_values(name, estimator, rows, deadline, Cs=costs, gammas=widths, refine=REFINEMENTS)

    def _search_values(self, name: str, estimator: Any, rows: Any, deadline: float, **axes: Any) -> None:
        common = dict(self.common)
        start = TrialThreads.starter(common.pop("n_jobs"))
        self.searches[name] = search_grid(
            start, self.X[rows], self.y[rows], estimator, prune=self.prune, keep=CONFIRMED_POINTS,
            max_seconds=self._seconds_until(deadline), callback=self._callback_of(name),
            journal=self.journals.get(name), resume=self.resume, **axes, **common,
        )  # fmt: skip

    def _search_other_losses(self, rows: Any) -> None:
        """Try the machines of other losses around the best point of the ε-insensitive one."""
        if not self.searches["kernel"].scores:
            return
        best = self.searches["kernel"].best.point
        self._search_values("nu", NuSVR(), rows, LOSSES_DEADLINE, Cs=[best.C], gammas=[best.gamma], nus=NUS)
        if self._interrupted or len(rows) < self.summary.rows:
            return
        assert best.C is not None
        costs = [best.C * factor / max(self.summary.target_std, 1e-300) for factor in SQUARED_LOSS_COSTS]
        widths = [best.gamma / 2, best.gamma, best.gamma * 2]
        self._search_values("least squares", LSSVR(), rows, LOSSES_DEADLINE, Cs=costs, gammas=widths)

    def _explain(self, results: dict[str, GridSearchResult], chosen: str) -> None:
        for name, result in results.items():
            model = MODELS[name]
            score = f"{result.scoring} {format_score(result.best.mean, result.scoring)}"
            self.reasons.append(f"the best {model} has a cross-validation {score}, with {result.best.point}")
            if result.status != "complete":
                self.reasons.append(f"not all of its grid points were scored: {result.status}")
        if len(results) > 2 and chosen == "kernel":
            self.reasons.append("the Gaussian kernel is better, and other losses gain little")
        elif len(results) >= 2 and chosen != "linear":
            loss = {"nu": " with a tube chosen by nu", "least squares": " with squared loss"}.get(chosen, "")
            self.reasons.append(f"the Gaussian kernel{loss} is better")
        elif len(results) >= 2:
            self.reasons.append("the linear model is as good, faster and easier to interpret")

    def _confirm(self, result: GridSearchResult, searched: int) -> tuple[Any, PointScore, int]:
        """Score the best points, and a smaller C, on more samples; return the best, and the number of samples."""
        best = [score.point for score in result.scores[:CONFIRMED_POINTS]]
        points = dict.fromkeys([*best, *(point._replace(C=(point.C or 0.0) / 4) for point in best[:1])])
        rows = self._subset(self.plan.confirmation_samples, self.common["seed"] + 1)
        confirmed = score_points(
            self.X[rows], self.y[rows], result.estimator, tuple(points), max_seconds=self._seconds_until(1.0),
            callback=self._callback_of("confirmation"), journal=self.journals.get("confirmation"),
            resume=self.resume, **self.common,
        )  # fmt: skip
        self.searches["confirmation"] = confirmed
        if len(confirmed.scores) < 2:
            causes = {INTERRUPTED: "Ctrl-C came", STOPPED: "the callback asked to stop"}
            cause = causes.get(confirmed.status, "the time limit was reached")
            self.reasons.append(f"{cause} before this was confirmed on {len(rows):,} samples")
            return result.best_estimator, result.best, searched
        score = confirmed.best
        value = format_score(score.mean, confirmed.scoring)
        self.reasons.append(f"on {len(rows):,} samples, {score.point} is the best of {len(confirmed.scores)}: {value}")
        return confirmed.best_estimator, score, len(rows)

    def _final(self, estimator: Any, seconds: float, samples: int) -> Any:
        """Return the estimator for all data, with landmarks if an exact kernel would take too long.

        `seconds` is the time of a trial on `samples` samples; it grows about quadratically with their number.
        """
        if not isinstance(estimator, SVC):
            return estimator
        folds = self.common["folds"]
        expected = (
            seconds * (self.summary.rows / (samples * (folds - 1) / folds)) ** 2 / thread_count(self.common["n_jobs"])
        )
        if self.plan.landmarks:
            cause = f"{self.summary.rows:,} samples are too many for exact training"
        elif expected > self.train_seconds:
            cause = f"exact training may take {expected:.0f} s"
        else:
            return estimator
        self.reasons.append(f"the kernel is approximated by landmarks: {cause}")
        return KernelApproximationSVC(
            C=estimator.C, gamma=estimator.gamma, class_weight=estimator.class_weight, random_state=self.common["seed"]
        )

    def _default_choice(self, candidate: Candidate) -> ModelChoice:
        """Return an estimator with default parameters, because no parameters were scored."""
        cause = "the search was interrupted" if self._interrupted else "the time limit was too short"
        self.reasons.append(f"{cause} before any parameters were scored: these are the defaults")
        estimator = clone(candidate.estimator)
        if candidate.relative_gammas is not None:
            estimator.set_params(gamma=typical_gamma(self.X))
        final = self._final(estimator, 0.0, self.summary.rows)
        return ModelChoice(final, self.summary, None, tuple(self.reasons), self.searches, self._interrupted)
