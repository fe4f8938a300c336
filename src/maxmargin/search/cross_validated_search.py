"""Cross-validated search for C and γ on all cores.

Every point of a grid is tried on every fold: a machine is trained on the other folds and scored on this one. Trials do
not depend on each other, and native loops release Python's lock, so they run in threads: one thread each as long as
there are enough trials, more for each when there are not. The memory for kernel rows is shared among them.

A kernel machine begins every trial afresh: measured along C, starts from the solution before save nothing on average. A
linear machine goes through the costs of a fold from the smallest to the largest and starts from the one before, as in
`estimators/linear/linear_path.py`.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.utils.metaestimators import _safe_split

from maxmargin._typing import Indices
from maxmargin.datasets.samples import checksum
from maxmargin.estimators import SVC
from maxmargin.estimators.kernel.kernel_classifier import KernelClassifier
from maxmargin.estimators.kernel.kernel_estimator import SMALL
from maxmargin.estimators.linear.linear_estimator import LinearEstimator
from maxmargin.estimators.validation.parameters import check_count, check_number
from maxmargin.resources import default_cache_bytes, limited_blas, thread_count, usable_memory
from maxmargin.search import grid
from maxmargin.search.folds import deal_folds
from maxmargin.search.grid import Point
from maxmargin.search.grid_search_result import COMPLETE, INTERRUPTED, STOPPED, TIME_LIMIT, GridSearch
from maxmargin.search.journal import Journal, Trial

#: Is told where the search stands after every trial; returning True ends it.
Watch = Callable[[GridSearch], object]

#: Seconds between looks at the clock.
LOOK = 0.1

#: The part of the memory that copies of the data by fold may take.
PARTS = 1 / 16

#: A problem of up to so many samples takes milliseconds. Nobody need be able to stop it on its way, which lets all its
#: steps be a single native call. A whole trial with so few is mostly Python, which only one thread may have at a time.
FEW = 500


def _accuracy(machine: Any, X: Any, y: Any) -> float:
    """Return the share of right answers; quicker than scikit-learn's, which counts where trials take milliseconds."""
    return float(np.mean(machine.predict(X) == y))


SCORERS: dict[str, Callable[[Any, Any, Any], float]] = {"accuracy": _accuracy}


def grid_search(
    X: Any,
    y: Any,
    estimator: Any = None,
    *,
    Cs: Iterable[float] | None = None,
    gammas: Iterable[float] | None = None,
    folds: int = 5,
    scoring: Any = None,
    refine: int = 0,
    seed: int = 0,
    max_seconds: float | None = None,
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> GridSearch:
    """Search for the cost C and the kernel's width γ with the best score in cross-validation.

    Ctrl-C ends the search; what there is by then is returned, and is in the journal.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Scaled: see `maxmargin.datasets`. With ``kernel="precomputed"`` the square matrix of kernel values.
    y : array-like of shape (n_samples,)
    estimator : estimator with a parameter C, optional
        Holds all other parameters; ``SVC()`` by default. It is not changed.
    Cs : iterable of float, optional
        LIBSVM's range by default: 2⁻⁵, 2⁻³, …, 2¹⁵.
    gammas : iterable of float, optional
        2⁻¹⁵, 2⁻¹³, …, 2³ by default, if the kernel has a γ; with an empty list it stays as the estimator has it.
    folds : int, default=5
        Every sample is held out once. Classes have their share in every fold.
    scoring : str or callable, optional
        A scorer of scikit-learn by name, or ``f(model, X, y)``; more is better. By default the share of right answers,
        or R² of a regression.
    refine : int, default=0
        How often to look more closely: at the eight points around the best one, with half the distance (of logarithms).
    seed : int, default=0
        Of the shuffle that deals the folds. The result depends on nothing else.
    max_seconds : float, optional
        Trials that are not finished by then do not count.
    n_jobs : int, optional
        Threads; None and −1 are all cores.
    journal : path, optional
        A file that every trial is written to as soon as it is known.
    resume : bool, default=False
        Whether to take over what is in the journal already.
    watch : callable, optional
        Is told where the search stands after every trial; returning True ends it.

    Returns
    -------
    GridSearch
        ``best``, ``best_estimator``, ``scores``, ``table()``.

    Examples
    --------
    >>> from maxmargin import SVC, grid_search
    >>> from maxmargin.datasets import chessboard
    >>> found = grid_search(*chessboard(400, noise=0.0), SVC(), Cs=[1, 100], gammas=[0.01, 1, 100])
    >>> print(found.best.point)
    C = 100, gamma = 1
    >>> found.best_estimator
    SVC(C=100.0, gamma=1.0)
    """
    estimator = SVC() if estimator is None else estimator
    costs, widths = _axes(estimator, Cs, gammas)
    plan = _Plan.of(estimator, X, y, folds, scoring, seed)
    check_count("refine", refine, 0)
    with _Search(plan, n_jobs, max_seconds, journal, resume, watch) as search:
        found = search.run(search.begin(), grid.grid_of(costs, widths))
        steps = grid.step_of(costs), grid.step_of([width for width in widths if width is not None])
        for _ in range(refine):
            if found.status != COMPLETE:
                break
            steps = steps[0] ** 0.5, steps[1] ** 0.5
            found = search.run(found, grid.around(found.best.point, *steps, found.points))
    return found


def try_points(
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
    watch: Watch | None = None,
) -> GridSearch:
    """Return the scores of some points, whether or not they make a grid; the rest is as in `grid_search`."""
    plan = _Plan.of(estimator, X, y, folds, scoring, seed)
    with _Search(plan, n_jobs, max_seconds, watch=watch) as search:
        return search.run(search.begin(), tuple(points))


def _axes(estimator: Any, Cs: Any, gammas: Any) -> tuple[tuple[float, ...], tuple[float | None, ...]]:
    """Return the values of both axes."""
    if "C" not in estimator.get_params(deep=False):
        raise ValueError(
            f"{type(estimator).__name__} has no cost C to search for; scikit-learn's GridSearchCV takes it"
        )
    costs = grid.check_values("Cs", grid.powers(*grid.COSTS) if Cs is None else Cs)
    given = None if gammas is None else list(gammas)
    if given == [] or (given is None and not grid.has_gamma(estimator)):
        return costs, (None,)
    if grid.has_gamma(estimator):
        return costs, grid.check_values("gammas", grid.powers(*grid.WIDTHS) if given is None else given)
    raise ValueError("gammas are for kernels that have a gamma: rbf, poly, sigmoid, laplacian, chi_squared")


@dataclass(frozen=True)
class _Plan:
    """What is tried, on which data."""

    estimator: Any
    X: Any
    y: Any
    dealt: Indices
    folds: int
    scoring: str
    scorer: Callable[[Any, Any, Any], float]
    seed: int
    parts: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, folds: int, scoring: Any, seed: int) -> _Plan:
        if not (is_classifier(estimator) or is_regressor(estimator)):
            raise ValueError(f"{type(estimator).__name__} is neither a classifier nor a regressor: nothing to score")
        X, y = X if hasattr(X, "shape") else np.asarray(X), np.asarray(y)
        if len(X.shape) != 2 or y.shape != X.shape[:1]:
            raise ValueError(f"X must be a table with a label for each row, not of shape {X.shape} with {y.shape}")
        dealt = deal_folds(y, check_count("folds", folds, 2), seed, is_classifier(estimator))
        if scoring is None:
            scoring = "accuracy" if is_classifier(estimator) else "r2"
        name = scoring if isinstance(scoring, str) else str(getattr(scoring, "__name__", scoring))
        return cls(clone(estimator), X, y, dealt, folds, name, SCORERS.get(name) or get_scorer(scoring), seed)

    def about(self) -> dict[str, Any]:
        """Return what two searches must agree on to share trials."""
        machine = {name: repr(value) for name, value in self.estimator.get_params(deep=False).items()}
        for name in ("C", "n_jobs", "cache_size", "callback", "verbose", "warm_start"):
            machine.pop(name, None)
        return {
            "samples": list(self.X.shape),
            "data": checksum(self.X, self.y),
            "machine": type(self.estimator).__name__,
            "parameters": machine,
            "folds": self.folds,
            "seed": self.seed,
            "scoring": self.scoring,
        }

    def jobs(self, points: Sequence[Point], known: set[tuple[Point, int]]) -> list[list[tuple[Point, int]]]:
        """Return lists of trials: lists run side by side, the trials of a list one after the other."""
        missing = [(point, fold) for point in points for fold in range(self.folds) if (point, fold) not in known]
        if not isinstance(self.estimator, LinearEstimator):
            return [[trial] for trial in missing]
        by_fold = [[trial for trial in missing if trial[1] == fold] for fold in range(self.folds)]
        return [sorted(trials, key=lambda trial: trial[0].C) for trials in by_fold if trials]

    def machine(self, threads: int, cache_bytes: int, callback: Any) -> Any:
        """Return an estimator for the trials of a job."""
        linear = isinstance(self.estimator, LinearEstimator)
        own = {"n_jobs": threads, "cache_size": cache_bytes / 2**20, "callback": callback, "warm_start": linear}
        machine = copy(self.estimator)
        for name in own.keys() & vars(machine).keys():
            setattr(machine, name, own[name])
        return machine

    def try_out(self, machine: Any, point: Point, fold: int) -> float:
        """Return the score of a machine with the parameters of a point on a fold that it does not see."""
        machine.C = point.C
        if point.gamma is not None:
            machine.gamma = point.gamma
        seen, held = self._parts(fold)
        machine.fit(*seen)
        score = float(self.scorer(machine, *held))
        if not np.isfinite(score):
            raise ValueError(f"the score {self.scoring} of fold {fold + 1} at {point} is {score}; use fewer folds")
        return score

    def _parts(self, fold: int) -> tuple[Any, Any]:
        """Return what the machines of a fold see, and what is held out; cut out once if there is room for all."""
        if fold in self.parts:
            return self.parts[fold]
        seen, held = np.flatnonzero(self.dealt != fold), np.flatnonzero(self.dealt == fold)
        cut = _safe_split(self.estimator, self.X, self.y, seen), _safe_split(self.estimator, self.X, self.y, held, seen)
        size = self.X.data.nbytes + self.X.indices.nbytes if sparse.issparse(self.X) else self.X.nbytes
        if self.folds * size < PARTS * usable_memory():
            self.parts[fold] = cut
        return cut

    @property
    def few(self) -> bool:
        """Whether there are few samples."""
        return len(self.y) <= FEW

    @property
    def brief(self) -> bool:
        """Whether every problem has few samples: all of them, or those of two classes where each pair is a problem."""
        pairs = isinstance(self.estimator, KernelClassifier) and self.estimator.multi_class == "ovo"
        if not pairs or len(self.y) * (self.folds - 1) > SMALL * self.folds:
            return self.few
        return int(np.sort(np.unique(self.y, return_counts=True)[1])[-2:].sum()) <= FEW

    def cache_bytes(self) -> int:
        """Return the memory for kernel rows of all trials together."""
        asked = self.estimator.get_params(deep=False).get("cache_size", "auto")
        if isinstance(asked, str):
            return default_cache_bytes()
        return int(check_number("cache_size", asked, above=0) * 2**20)


class _Search:
    """Trials on all cores, until they are done, time is up or somebody wants to stop."""

    def __init__(
        self,
        plan: _Plan,
        n_jobs: int | None,
        max_seconds: float | None,
        journal: str | os.PathLike[str] | None = None,
        resume: bool = False,
        watch: Watch | None = None,
    ) -> None:
        self.plan, self.threads, self.watch = plan, thread_count(n_jobs), watch
        self.started = perf_counter()
        limit = None if max_seconds is None else check_number("max_seconds", max_seconds, least=0)
        self.deadline = None if limit is None else self.started + limit
        self.journal = None if journal is None else Journal(journal, plan.about(), resume)
        self._ended = threading.Event()
        #: What the threads have to say: a trial, what went wrong, or None when a job is done.
        self._news: SimpleQueue[Trial | Exception | None] = SimpleQueue()

    def __enter__(self) -> _Search:
        return self

    def __exit__(self, *_: object) -> None:
        if self.journal is not None:
            self.journal.close()

    def begin(self) -> GridSearch:
        """Return a search that knows what is in the journal."""
        known = () if self.journal is None else tuple(self.journal.known)
        return GridSearch(self.plan.estimator, self.plan.scoring, self.plan.folds, (), known)

    def run(self, found: GridSearch, points: tuple[Point, ...]) -> GridSearch:
        """Return the search with a round of points more."""
        found = replace(found, rounds=(*found.rounds, points))
        jobs = self.plan.jobs(points, {(trial.point, trial.fold) for trial in found.trials})
        workers = 1 if self.plan.few else max(1, min(self.threads, len(jobs)))
        threads = self.threads // workers
        left, status = len(jobs), COMPLETE
        # Workers fetch their jobs. Handing hundreds of them to the pool asks for Python's lock each time, which a busy
        # worker gives up every few milliseconds: nobody would listen to the first trials meanwhile.
        waiting: SimpleQueue[list[tuple[Point, int]]] = SimpleQueue()
        for job in jobs:
            waiting.put(job)
        # Fits that are stopped warn; the list of filters belongs to all threads, so it is set for all of them at once.
        with warnings.catch_warnings(), limited_blas(threads), ThreadPoolExecutor(workers) as pool:
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                for _ in range(workers):
                    pool.submit(self._labour, waiting, threads, self.plan.cache_bytes() // workers)
                while left and status == COMPLETE:
                    if self.deadline is not None and perf_counter() > self.deadline:
                        status = TIME_LIMIT
                        break
                    trials, done = self._hear()
                    left -= done
                    if trials:
                        found = replace(found, trials=(*found.trials, *trials), seconds=perf_counter() - self.started)
                        if self.watch is not None and self.watch(found) is True:
                            status = STOPPED
            except KeyboardInterrupt:
                status = INTERRUPTED
            finally:
                if left:
                    self._ended.set()
        return replace(found, status=status, seconds=perf_counter() - self.started)

    def _hear(self) -> tuple[list[Trial], int]:
        """Wait a while for news, write trials down, and return them and how many jobs have been done."""
        trials: list[Trial] = []
        done = 0
        try:
            news = self._news.get(timeout=LOOK)
            while True:
                if isinstance(news, Exception):
                    raise news  # all other trials would go wrong in the same way
                if news is None:
                    done += 1
                else:
                    trials.append(news)
                    if self.journal is not None:
                        self.journal.add(news)
                news = self._news.get_nowait()
        except Empty:
            return trials, done

    def _labour(self, waiting: SimpleQueue[list[tuple[Point, int]]], threads: int, cache_bytes: int) -> None:
        """Do one job after the other, until none is waiting or the search has ended."""
        while not self._ended.is_set():
            try:
                job = waiting.get_nowait()
            except Empty:
                return
            self._work(job, threads, cache_bytes)

    def _work(self, job: list[tuple[Point, int]], threads: int, cache_bytes: int) -> None:
        """Do the trials of a job."""
        callback = None if self.plan.brief else lambda _: self._ended.is_set()
        try:
            machine = self.plan.machine(threads, cache_bytes, callback)
            for point, fold in job:
                if self._ended.is_set():
                    return
                begin = perf_counter()
                score = self.plan.try_out(machine, point, fold)
                if self._ended.is_set():
                    return  # what was stopped on its way says nothing
                self._news.put(Trial(point, fold, score, perf_counter() - begin))
        except Exception as error:
            self._news.put(error)
        self._news.put(None)
