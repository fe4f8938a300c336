"""Which machine for which data, and its parameters: a search with a budget, for people who have no time for one.

By what is known of support vector machines in practice:

- many features and few values (text): a linear machine is as accurate as any, and much quicker;
- up to 100,000 samples: the gaussian kernel, which contains the linear machine as its limit, unless the linear one
  does as well in cross-validation;
- more classified samples, or less time: the same kernel on landmarks (`KernelApproximationSVC`); for a regression of
  more samples a linear machine.

C and γ are searched for on a sample of large data, on a grid with large steps that is refined twice. What was best
there is confirmed on more data, also with smaller costs: the sum of all slacks grows with the data, so the best cost
tends to fall.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from sklearn.base import clone

from maxmargin.estimators import SVC, SVR, KernelApproximationSVC, LinearSVC, LinearSVR
from maxmargin.resources import thread_count
from maxmargin.search.cross_validated_search import grid_search, try_points
from maxmargin.search.data_summary import Look, look_at, typical_gamma
from maxmargin.search.folds import draw_share
from maxmargin.search.grid import Point, powers
from maxmargin.search.grid_search_result import INTERRUPTED, GridSearch, Score
from maxmargin.search.score_colormap import words

#: More features than that with fewer values than this part are text, or like it.
TEXT_COLUMNS, TEXT_DENSITY = 1000, 0.05

#: Up to so many samples are left to an exact kernel machine.
EXACT = 100_000

#: A search looks at so many samples, a confirmation at so many; a linear machine is quick enough for more. Data with
#: less than half as many again are taken whole.
SEARCHED, CONFIRMED, SEARCHED_LINEAR = 4_000, 16_000, 50_000
WHOLE = 1.5

#: Of more than two classes so many, which small problems of pairs are quickest for.
SEARCHED_PAIRS = 2_500

#: Half the width of the tube of a regression, in standard deviations of the targets.
TUBE = 0.1

#: The grids: from, to, factor. Those of γ are relative to the typical one, those of C for regression to the targets.
COSTS = (2.0**-5, 2.0**11, 16.0)
COSTS_OF_TARGETS = (2.0**-5, 2.0**7, 16.0)
WIDTHS = (2.0**-8, 2.0**4, 16.0)
LINEAR_COSTS = (2.0**-11, 2.0**9, 16.0)
REFINED = 2

#: How many of the best points are confirmed, and the parts of the time that the searches may take.
BEST = 3
TIME_LINEAR, TIME_KERNEL = 0.2, 0.7

#: Is told the name of a machine, and where its search stands.
Watch = Callable[[str, GridSearch], object]


@dataclass(frozen=True)
class Choice:
    """A machine with its parameters, and how they were chosen.

    Attributes
    ----------
    estimator : estimator
        With all parameters, not fitted.
    look : Look
        What the choice of the machine went by.
    score : Score or None
        What it reached in cross-validation; None if the time was too short for that.
    reasons : tuple of str
        Why this machine and these parameters, in sentences.
    searches : dict of str to GridSearch
        By name of the machine; the last one is a confirmation if there was one.
    interrupted : bool
        Whether Ctrl-C has ended the search; the choice is the best until then.
    """

    estimator: Any
    look: Look
    score: Score | None
    reasons: tuple[str, ...]
    searches: dict[str, GridSearch] = field(repr=False)
    interrupted: bool = False


def choose_machine(
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
    watch: Watch | None = None,
) -> Choice:
    """Choose a machine and its parameters for data.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Scaled.
    y : array of shape (n_samples,)
    classification : bool
        Whether `y` are classes; else targets.
    scoring : str or callable, optional
        As in `grid_search`.
    folds : int, default=5
    max_seconds : float, default=300
        For all searches together.
    train_seconds : float, optional
        For training afterwards: where an exact kernel machine would take longer, by an estimate, it gets landmarks.
    seed : int, default=0
        Of folds and samples of large data.
    n_jobs : int, optional
        Threads.
    watch : callable, optional
        Is told the name of a machine and where its search stands, after every trial.

    Returns
    -------
    Choice

    Examples
    --------
    >>> from maxmargin.datasets import chessboard
    >>> from maxmargin.search import choose_machine
    >>> choice = choose_machine(*chessboard(400, noise=0.0), classification=True)
    >>> type(choice.estimator).__name__, choice.score.mean > 0.9
    ('SVC', True)
    """
    look = look_at(X, y, classification)
    return _Choosing(X, y, look, scoring, folds, max_seconds, train_seconds, seed, n_jobs, watch).choose()


class _Choosing:
    def __init__(
        self,
        X: Any,
        y: Any,
        look: Look,
        scoring: Any,
        folds: int,
        max_seconds: float,
        train_seconds: float,
        seed: int,
        n_jobs: int | None,
        watch: Watch | None,
    ) -> None:
        self.X, self.y, self.look, self.seed, self.watch = X, y, look, seed, watch
        self.common = {"scoring": scoring, "folds": folds, "seed": seed, "n_jobs": n_jobs}
        self.started, self.max_seconds, self.train_seconds = perf_counter(), max_seconds, train_seconds
        self.threads = thread_count(n_jobs)
        self.reasons: list[str] = []
        self.searches: dict[str, GridSearch] = {}

    def choose(self) -> Choice:
        """Search, confirm, choose."""
        linear, kernel = _candidates(self.look, self.seed, self.reasons)
        several = self.look.classes is not None and len(self.look.classes) > 2
        rows = self._draw(SEARCHED_LINEAR if kernel is None else SEARCHED_PAIRS if several else SEARCHED, self.seed)
        if len(rows) < self.look.rows:
            self.reasons.append(f"parameters were searched for on {len(rows):,} of {self.look.rows:,} samples")
        self._search("linear", linear, rows, TIME_LINEAR if kernel is not None else TIME_KERNEL)
        if kernel is not None and not self._interrupted:
            self._search("kernel", kernel, rows, TIME_KERNEL)
        found = {name: search for name, search in self.searches.items() if search.scores}
        if not found:
            return self._unsearched(linear if kernel is None else kernel)
        name = max(found, key=lambda name: found[name].best.mean)  # of equal ones the first, which is linear
        self._say_who_won(found, name)
        chosen, score, tried = found[name].best_estimator, found[name].best, len(rows)
        if len(rows) < self.look.rows and not self._interrupted:
            chosen, score, tried = self._confirm(found[name], len(rows))
        final = self._final(chosen, score.seconds / self.common["folds"], tried)
        return Choice(final, self.look, score, tuple(self.reasons), self.searches, self._interrupted)

    @property
    def _interrupted(self) -> bool:
        return any(search.status == INTERRUPTED for search in self.searches.values())

    def _draw(self, count: int, seed: int) -> Any:
        """Return so many rows at random, or all if there are not many more."""
        most = self.look.rows if self.look.rows <= WHOLE * count else count
        return draw_share(self.y, most, seed, self.look.classes is not None)

    def _left(self, part: float) -> float:
        """Return the seconds until so much of the time is over."""
        return max(0.0, part * self.max_seconds - (perf_counter() - self.started))

    def _hear(self, name: str) -> Any:
        return None if self.watch is None else lambda found: self.watch(name, found)

    def _search(self, name: str, candidate: _Candidate, rows: Any, part: float) -> None:
        estimator, costs, widths = candidate
        if widths is not None:
            typical = typical_gamma(self.X[rows])
            widths = tuple(typical * width for width in widths)
        self.searches[name] = grid_search(
            self.X[rows], self.y[rows], estimator, Cs=costs, gammas=widths, refine=REFINED,
            max_seconds=self._left(part), watch=self._hear(name), **self.common,
        )  # fmt: skip

    def _say_who_won(self, found: dict[str, GridSearch], name: str) -> None:
        for other, search in found.items():
            kind = "linear machine" if other == "linear" else "machine with a gaussian kernel"
            score = f"{search.scoring} {words(search.best.mean, search.scoring)}"
            self.reasons.append(f"the best {kind} has {score} in cross-validation, with {search.best.point}")
            if search.status != "complete":
                self.reasons.append(f"not all of its points were tried: {search.status}")
        if len(found) == 2:
            why = "is better" if name == "kernel" else "is as good, quicker and easier to explain"
            self.reasons.append(f"the {'gaussian kernel' if name == 'kernel' else 'linear machine'} {why}")

    def _confirm(self, found: GridSearch, searched: int) -> tuple[Any, Score, int]:
        """Return the best of the best points, and of smaller costs, on more samples; and on how many."""
        best = [score.point for score in found.scores[:BEST]]
        points = dict.fromkeys([*best, *(Point(point.C / 4, point.gamma) for point in best[:1])])
        rows = self._draw(max(CONFIRMED, 4 * searched), self.seed + 1)
        confirmed = try_points(
            self.X[rows], self.y[rows], found.estimator, tuple(points), max_seconds=self._left(1.0),
            watch=self._hear("confirmation"), **self.common,
        )  # fmt: skip
        self.searches["confirmation"] = confirmed
        if len(confirmed.scores) < 2:
            self.reasons.append(f"there was no time to confirm that on {len(rows):,} samples")
            return found.best_estimator, found.best, searched
        score = confirmed.best
        value = words(score.mean, confirmed.scoring)
        self.reasons.append(f"on {len(rows):,} samples, {score.point} is the best of {len(confirmed.scores)}: {value}")
        return confirmed.best_estimator, score, len(rows)

    def _final(self, estimator: Any, seconds: float, tried: int) -> Any:
        """Return the machine for all data: landmarks in place of an exact kernel if that would take too long.

        `seconds` are those of a trial among so many samples. Time grows about with their square.
        """
        if not isinstance(estimator, SVC):
            return estimator
        folds = self.common["folds"]
        expected = seconds * (self.look.rows / (tried * (folds - 1) / folds)) ** 2 / self.threads
        if self.look.rows > EXACT:
            self.reasons.append(f"the kernel is approximated by landmarks: {self.look.rows:,} samples are too many")
        elif expected > self.train_seconds:
            self.reasons.append(f"the kernel is approximated by landmarks: an exact machine may take {expected:.0f} s")
        else:
            return estimator
        return KernelApproximationSVC(C=estimator.C, gamma=estimator.gamma, random_state=self.seed)

    def _unsearched(self, candidate: _Candidate) -> Choice:
        """Return a machine that suits most data, as there was no time to search for a better one."""
        self.reasons.append("the time was too short to search for parameters: these are the usual ones")
        estimator = clone(candidate[0])
        if candidate[2] is not None:
            estimator.set_params(gamma=typical_gamma(self.X))
        final = self._final(estimator, 0.0, self.look.rows)
        return Choice(final, self.look, None, tuple(self.reasons), self.searches, self._interrupted)


#: An estimator, values of C, and values of gamma relative to the typical one.
_Candidate = tuple[Any, tuple[float, ...], tuple[float, ...] | None]


def _candidates(look: Look, seed: int, reasons: list[str]) -> tuple[_Candidate, _Candidate | None]:
    """Return a linear machine, and one with a kernel where that makes sense."""
    linear_costs, widths = powers(*LINEAR_COSTS), powers(*WIDTHS)
    costs = powers(*(COSTS if look.classes is not None else COSTS_OF_TARGETS))
    kernel: Any
    if look.classes is not None:
        linear, kernel = LinearSVC(), SVC()
    else:
        spread = look.spread or 1.0
        linear, kernel = LinearSVR(epsilon=TUBE * spread), SVR(epsilon=TUBE * spread)
        # Costs that mean the same whatever the unit of the targets: C · spread / spread².
        linear_costs, costs = (tuple(cost * spread for cost in values) for values in (linear_costs, costs))
        reasons.append(f"errors of the regression below {TUBE:g} standard deviations of the targets cost nothing")
    if look.columns > TEXT_COLUMNS and look.density < TEXT_DENSITY:
        reasons.append(
            f"a linear machine: {look.columns:,} features, of which a sample has {look.density * look.columns:.0f}"
        )
        return (linear, linear_costs, None), None
    if look.classes is None and look.rows > EXACT:
        reasons.append(f"a linear machine: {look.rows:,} samples are too many for a regression with a kernel")
        return (linear, linear_costs, None), None
    return (linear, linear_costs, None), (kernel, costs, widths)
