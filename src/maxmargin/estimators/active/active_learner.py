"""Learning from few labels: the learner chooses the samples that it wants to be told about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_random_state

from maxmargin._typing import Indices
from maxmargin.estimators.active.active_query import candidates_of, find_strategy, samples_of
from maxmargin.estimators.active.class_values import class_values
from maxmargin.estimators.active.incremental_learner import Pupil, count_rows
from maxmargin.estimators.active.sample_pool import Pool
from maxmargin.estimators.validation.parameters import check_count, check_fraction, check_number
from maxmargin.online.auto_stop import STOP_RULES, SeldomWrong, StopRule, Tally
from maxmargin.online.selection import Candidates, Margin, margins
from maxmargin.online.stream_rate import StreamRate


class LearnerStatus(Enum):
    """Where a learner stands. The value is the sentence a user reads."""

    ASKING = "there are samples worth a label"
    EXHAUSTED = "every sample of the pool was asked for"
    STOPPED = "the stop rule holds: fresh samples have little to teach"


class ActiveLearner:
    """A classifier that asks for the labels it wants, over a pool of samples or over a stream.

    The first samples it asks for are random, until there are labels of two classes; then it goes by its strategy. It
    can be used in four ways: ``run`` with a function that labels; ``ask`` and ``tell``; as an iterator over indices to
    ask for; and over a stream, where ``wants`` decides about each sample at once. For a fitted estimator alone see
    `query`.

    Parameters
    ----------
    estimator : classifier
        What learns; it is copied. Needs a ``decision_function``, but for ``strategy="random"``.
    strategy : str or object from `maxmargin.online`, default="margin_of_candidates"
        Which samples it asks for. The margin of a sample is the size of f(x), or half the difference of the two largest
        decision values if there are more than two classes.

        - "random": any.
        - "margin": the closest to the boundary, the smallest margin in the pool.
        - "margin_of_candidates": the smallest margin among 50 random samples (``Margin(n_candidates=50)``).
        - "auto_active": LASVM's; looks at up to 100 random samples until 5 have a margin below 1, and takes the
          closest of those it saw (``AutoActive(n_candidates=100, enough=5)``).
        - "gradient": the largest violation max(0, 1 − y f(x)) among 50 random samples (``Gradient(n_candidates=50)``).
          If the pool has known labels (``set_pool(X, y)``) it is theirs. If not, it is the violation that is certain
          whatever the label is, 1 − margin: then this is "margin_of_candidates".
    learning : {"auto", "partial_fit", "fit"}, default="auto"
        "partial_fit" takes a step for each new label, "fit" trains anew on all labels so far. "auto": the former where
        the estimator has it.
    classes : array-like, optional
        All labels that will occur. Without them ``partial_fit`` starts anew, from all labels so far, when a new one
        comes.
    n_random : int, default=10
        How many labels to ask for at random at the beginning, and on until there are two classes. A boundary drawn
        through a handful of samples is no guide: the strategies then miss regions that look settled.
    stop : {None, "seldom_wrong", "outside_margin"} or object from `maxmargin.online`, default=None
        When to ask no more.

        - "seldom_wrong": at most 2 % of the last 100 labels differed from the prediction made just before they were
          learnt (``SeldomWrong(window=100, share=0.02)``).
        - "outside_margin": at most 1 % of the last 500 samples looked at had a margin below 1
          (``OutsideMargin(window=500, share=0.01)``). Needs no labels.
    threshold : float, default=1.0
        For a stream without `rate`: samples with a smaller margin are wanted.
    rate : float, optional
        For a stream: the share of the samples that is wanted, those that rank highest among the latest 1,000. Never
        more than this share of the samples so far, rounded up. "random" needs it.
    random_state : int, RandomState or None, default=None
        Of the candidates, and of the order among equals.

    Attributes
    ----------
    estimator_ : classifier
        What has learnt so far; from two classes on.
    status : LearnerStatus
        Whether there is more to ask for; ``status.value`` is a sentence.
    labelled_ : int array
        The samples of the pool that were told, in order.
    labels_ : array
        All labels that were told, in order.
    n_labels_ : int
        How many.

    Examples
    --------
    >>> from maxmargin import SVC, ActiveLearner
    >>> from maxmargin.datasets import chessboard
    >>> X, y = chessboard(500, size=2)
    >>> learner = ActiveLearner(SVC(C=1000, gamma=1.0), "margin", n_random=20, random_state=0)
    >>> learner.run(X, label=lambda index: y[index], n_labels=60).n_labels_
    60
    >>> bool(learner.estimator_.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        estimator: Any,
        strategy: Any = "margin_of_candidates",
        *,
        learning: str = "auto",
        classes: Any = None,
        n_random: int = 10,
        stop: Any = None,
        threshold: float = 1.0,
        rate: float | None = None,
        random_state: Any = None,
    ) -> None:
        self._strategy = find_strategy(strategy)
        self._n_random = check_count("n_random", n_random, 0)
        self._pupil = Pupil(estimator, learning, classes, n_random)
        rule = STOP_RULES.get(stop) if isinstance(stop, str) else stop
        if stop is not None and not isinstance(rule, StopRule):
            names = ", ".join(map(repr, STOP_RULES))
            raise ValueError(f"stop must be None, one of {names}, or an object from maxmargin.online, not {stop!r}")
        self._tally = None if rule is None else Tally(rule)
        self._threshold = check_number("threshold", threshold, above=0)
        self._rate = None if rate is None else StreamRate(check_fraction("rate", rate))
        self._random = check_random_state(random_state)
        self._pool: Pool | None = None
        self._order: list[int] = []

    @property
    def estimator_(self) -> Any:
        """What has learnt so far."""
        if not self._pupil.ready:
            raise AttributeError("there is no estimator_ yet: it needs labels of two classes")
        return self._pupil.model

    @property
    def labelled_(self) -> Indices:
        """The samples of the pool that were told, in order."""
        return np.array(self._order, dtype=np.int64)

    @property
    def labels_(self) -> Any:
        """All labels that were told, in order."""
        return np.asarray(self._pupil.labels)

    @property
    def n_labels_(self) -> int:
        """How many labels were told."""
        return len(self._pupil.labels)

    @property
    def status(self) -> LearnerStatus:
        """Whether there is more to ask for."""
        if self._tally is not None and self._tally.complete:
            return LearnerStatus.STOPPED
        if self._pool is not None and not self._pool.open.any():
            return LearnerStatus.EXHAUSTED
        return LearnerStatus.ASKING

    def set_pool(self, X: Any, y: Any = None) -> ActiveLearner:
        """Choose from these samples from now on. What was learnt stays.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or sequence of what the estimator understands
            Equal rows of a table are one sample, and asked for once.
        y : array-like, optional
            Their labels, if they are known and there are only too many to learn from: then "gradient" looks at them,
            and ``run`` needs no `label`.

        Returns
        -------
        self
        """
        self._pool = Pool(X, y, self._pupil.estimator)
        self._order = []
        return self

    def ask(self, n: int = 1) -> Indices:
        """Return up to `n` samples of the pool to label, the most wanted first; none when it ends (see ``status``).

        They are not asked for again. Labels that arrive later, or in another order, are fine.
        """
        check_count("n", n, 1)
        pool = self._need_pool()
        self._pupil.study()
        if self.status is not LearnerStatus.ASKING:
            return np.empty(0, dtype=np.int64)
        askable = pool.askable
        if self._chooses:
            candidates = candidates_of(self._pupil.model, pool.X, askable, pool.y)
            chosen = askable[self._strategy.choose(candidates, n, self._random)]
            self._note_margins(candidates, lambda: pool.rows(chosen))
        else:
            chosen = self._random.permutation(askable)[:n]
        pool.ask(chosen)
        return chosen

    def tell(self, index: Any, y: Any) -> ActiveLearner:
        """Learn the labels `y` of samples of the pool, whether they were asked for or not."""
        self._record(index, y)
        self._pupil.study()
        return self

    def skip(self, index: Any) -> ActiveLearner:
        """Leave samples of the pool without a label for good."""
        pool = self._need_pool()
        pool.close(pool.check(index))
        return self

    def __iter__(self) -> Iterator[int]:
        """Yield samples to ask for until there are none: first those asked for and not told, then by the strategy."""
        pool = self._need_pool()
        yield from (index for index in list(pool.pending) if index in pool.pending)
        while len(index := self.ask()):
            yield int(index[0])

    def run(
        self, X: Any = None, *, label: Callable[[int], Any] | Any = None, n_labels: int | None = None, batch: int = 1
    ) -> ActiveLearner:
        """Ask and learn, until so many labels were told, or there is nothing left to ask for (see ``status``).

        An exception in `label`, or Ctrl-C, loses nothing: all labels so far are kept, and another ``run`` without `X`
        goes on as if nothing had happened, with the sample it was at.

        Parameters
        ----------
        X : array-like, sparse matrix or frame, optional
            The pool; None for the one there is.
        label : callable, or array-like
            Called with the index of a sample, returns its label, or None to skip it. An array holds the labels of all
            samples; they are not looked at before they are asked for. None: those of ``set_pool(X, y)``.
        n_labels : int, optional
            How many labels to ask for in this call; None for no limit.
        batch : int, default=1
            How many samples to ask for together, between two updates of the estimator.

        Returns
        -------
        self
        """
        if X is not None:
            self.set_pool(X)
        pool, ask = self._need_pool(), check_count("batch", batch, 1)
        left = np.inf if n_labels is None else check_count("n_labels", n_labels, 1)
        answer = _answers(pool.y if label is None else label, pool.size)
        while left > 0:
            if not pool.pending and not len(self.ask(int(min(ask, left)))):
                break
            for index in list(pool.pending):
                told = answer(index)
                if told is None:
                    self.skip(index)
                else:
                    self._record(index, told)
                    left -= 1
                if left <= 0:
                    break
            self._pupil.study()
        return self

    def wants(self, X: Any) -> Any:
        """Return for each sample of a stream, in the order they come, whether its label is wanted.

        Each is decided at once, by what was learnt before the call. At the beginning, until there are `n_random` labels
        and two classes, every sample is wanted, or as many as `rate` allows.
        """
        X = samples_of(X)
        count = count_rows(X)
        self._pupil.study()
        if self.status is LearnerStatus.STOPPED:
            return np.zeros(count, dtype=bool)
        if self._rate is None and not isinstance(self._strategy, Margin):
            raise ValueError(
                "a stream needs a rate, the share of samples to label, unless the strategy goes by margins"
            )
        if not self._chooses:
            return np.array([self._rate is None or self._rate.take(None) for _ in range(count)], dtype=bool)
        candidates = candidates_of(self._pupil.model, X, np.arange(count))
        wishes = self._strategy.wishes(candidates, self._random)
        self._note_margins(candidates, lambda: X)
        if self._rate is None:
            return -wishes < self._threshold
        return np.array([self._rate.take(wish) for wish in wishes], dtype=bool)

    def learn(self, X: Any, y: Any) -> ActiveLearner:
        """Learn samples of a stream with their labels."""
        X, y = samples_of(X), np.asarray(y)
        if y.shape != (count_rows(X),):
            raise ValueError(f"y must have one label for each of the {count_rows(X)} samples")
        self._take(X, y)
        self._pupil.study()
        return self

    def run_stream(
        self, samples: Iterable[Any], label: Callable[[Any], Any], *, n_labels: int | None = None
    ) -> ActiveLearner:
        """Look at one sample after the other, and ask for labels of those that are wanted.

        Parameters
        ----------
        samples : iterable
            Samples as they come: one-dimensional arrays, or sparse matrices with one row.
        label : callable
            Called with a sample that is wanted, returns its label, or None if there is none.
        n_labels : int, optional
            After so many labels no further sample is taken from the stream.

        Returns
        -------
        self
        """
        left = np.inf if n_labels is None else check_count("n_labels", n_labels, 1)
        for sample in samples:
            row = sample if sparse.issparse(sample) else samples_of([sample])
            if self.wants(row)[0] and (told := label(sample)) is not None:
                self.learn(row, [told])
                left -= 1
            if left <= 0 or self.status is LearnerStatus.STOPPED:
                break
        return self

    @property
    def _chooses(self) -> bool:
        """Whether the beginning, with samples at random, is over."""
        return self._pupil.ready and self.n_labels_ >= self._n_random

    def _need_pool(self) -> Pool:
        if self._pool is None:
            raise ValueError("there is no pool to choose from: call set_pool(X), or run(X, label=...)")
        return self._pool

    def _record(self, index: Any, y: Any) -> None:
        pool = self._need_pool()
        index = pool.check(index)
        y = np.atleast_1d(np.asarray(y))
        if y.shape != index.shape:
            raise ValueError(f"{len(index)} samples need as many labels, not {y.size}")
        if len(index):
            self._take(pool.rows(index), y)
            self._order.extend(index.tolist())
            pool.close(index)

    def _take(self, rows: Any, y: Any) -> None:
        """Record samples with their labels; whether the estimator knew them is noted."""
        ready = self._pupil.ready and self._tally is not None and isinstance(self._tally.rule, SeldomWrong)
        wrong = self._pupil.model.predict(rows) != y if ready else []
        self._pupil.record(rows, y.tolist())
        if self._tally is not None:
            self._tally.add(bool(each) for each in wrong)

    def _note_margins(self, candidates: Candidates, chosen: Callable[[], Any]) -> None:
        """Note how many of the samples looked at were inside the margin, or of those chosen if none was looked at."""
        if self._tally is None or isinstance(self._tally.rule, SeldomWrong):
            return
        seen = candidates.seen or [margins(class_values(self._pupil.model, chosen()))]
        for found in seen:
            self._tally.add((found < 1.0).tolist())


def _answers(label: Any, size: int) -> Callable[[int], Any]:
    """Return a function from an index to its label."""
    if label is None:
        raise ValueError("run needs label, a function from an index to its label, or labels in set_pool(X, y)")
    if callable(label):
        answer: Callable[[int], Any] = label
        return answer
    labels = np.asarray(label)
    if labels.shape != (size,):
        raise ValueError(f"label must have one label for each of the {size} samples of the pool")
    return lambda index: labels[index]
