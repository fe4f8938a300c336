"""`ActiveLearner`: a classifier that selects the samples to label."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any

import numpy as np
from sklearn.utils.validation import check_random_state

from maxmargin import _sparse as sparse
from maxmargin._typing import Indices
from maxmargin.estimators.active.active_query import candidates_of, class_values, find_strategy, samples_of
from maxmargin.estimators.active.incremental_learner import IncrementalLearner, count_rows
from maxmargin.estimators.active.sample_pool import SamplePool
from maxmargin.machines.validation.parameters import check_count, check_fraction, check_number
from maxmargin.online.early_stopping import STOPPING_RULES, ActiveStoppingRule, EventWindow, LowErrorRate
from maxmargin.online.selection import Candidates, LabelingRate, Margin, margins


class LearnerStatus(Enum):
    """The state of an active learner; the value is a sentence for the user."""

    QUERYING = "there are samples to query"
    EXHAUSTED = "all samples of the pool have been queried"
    STOPPED = "the stopping rule holds: further labels are unlikely to change the model"


class ActiveLearner:
    """Active learning over a pool of samples or over a stream.

    The first queries are random, until there are labels of two classes; then the strategy selects them. There are four
    ways to use it: ``run`` with a labelling function; ``ask`` and ``tell``; as an iterator over indices to label; and
    over a stream, where ``should_query`` decides immediately about each sample. For a fitted estimator see `query`.

    Parameters
    ----------
    estimator : classifier
        Is cloned. Requires a ``decision_function``, except for ``strategy="random"``.
    strategy : str or object from `maxmargin.online`, default="margin_of_candidates"
        Selects the queries. The margin of a sample is |f(x)|, or half the difference of the two largest decision values
        for more than two classes.

        - "random": random samples.
        - "margin": the smallest margin in the pool.
        - "margin_of_candidates": the smallest margin among 50 random samples (``Margin(n_candidates=50)``).
        - "auto_active": the method of LASVM: evaluates up to 100 random samples until 5 have a margin below 1, and
          selects the smallest margin among them (``AutoActive(n_candidates=100, n_inside=5)``).
        - "gradient": the largest violation max(0, 1 − y f(x)) among 50 random samples (``Gradient(n_candidates=50)``).
          It uses the labels of the pool if they are known (``set_pool(X, y)``), otherwise the violation that is certain
          whatever the label is, 1 − margin, as "margin_of_candidates".
    learning : {"auto", "partial_fit", "fit"}, default="auto"
        "partial_fit" updates the model with new labels, "fit" retrains it on all labels. "auto" is "partial_fit" if the
        estimator has it.
    classes : array-like, optional
        All labels that may occur. Without them a new label restarts ``partial_fit`` with all labels so far.
    n_random : int, default=10
        The number of random queries at the beginning, extended until there are two classes. A boundary learned from a
        handful of samples is a poor guide: strategies would miss regions that are classified wrongly with confidence.
    stop : {None, "low_error_rate", "margin_exhausted"} or object from `maxmargin.online`, default=None
        Stopping rule.

        - "low_error_rate": at most 2 % of the last 100 labels differed from the prediction made before they were
          learned (``LowErrorRate(window=100, fraction=0.02)``).
        - "margin_exhausted": at most 1 % of the last 500 evaluated samples had a margin below 1
          (``MarginExhausted(window=500, fraction=0.01)``). Needs no labels.
    threshold : float, default=1.0
        For a stream without `rate`: samples with a smaller margin are queried.
    rate : float, optional
        For a stream: the fraction of samples to query, those with the highest priority among the latest 1,000; never
        more than this fraction of the samples so far, rounded up. Required for "random".
    random_state : int, RandomState or None, default=None
        Seed of the candidates and of the order of ties.

    Attributes
    ----------
    estimator_ : classifier
        The current model, as soon as there are labels of two classes.
    status : LearnerStatus
        Whether there are more samples to query; ``status.value`` is a sentence.
    labelled_ : int array
        The labelled samples of the pool, in order.
    labels_ : array
        All labels so far, in order.
    n_labels_ : int
        The number of labels.

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
        self._learner = IncrementalLearner(estimator, learning, classes, n_random)
        rule = STOPPING_RULES.get(stop) if isinstance(stop, str) else stop
        if stop is not None and not isinstance(rule, ActiveStoppingRule):
            names = ", ".join(map(repr, STOPPING_RULES))
            raise ValueError(f"stop must be None, one of {names}, or an object from maxmargin.online, not {stop!r}")
        self._events = None if rule is None else EventWindow(rule)
        self._threshold = check_number("threshold", threshold, above=0)
        self._rate = None if rate is None else LabelingRate(check_fraction("rate", rate))
        self._random = check_random_state(random_state)
        self._pool: SamplePool | None = None
        self._order: list[int] = []

    @property
    def estimator_(self) -> Any:
        """The current model."""
        if not self._learner.ready:
            raise AttributeError("estimator_ is available as soon as there are labels of two classes")
        return self._learner.model

    @property
    def labelled_(self) -> Indices:
        """The labelled samples of the pool, in order."""
        return np.array(self._order, dtype=np.int64)

    @property
    def labels_(self) -> Any:
        """All labels so far, in order."""
        return np.asarray(self._learner.labels)

    @property
    def n_labels_(self) -> int:
        """The number of labels."""
        return len(self._learner.labels)

    @property
    def status(self) -> LearnerStatus:
        """Whether there are more samples to query."""
        if self._events is not None and self._events.rule_holds:
            return LearnerStatus.STOPPED
        if self._pool is not None and not self._pool.open.any():
            return LearnerStatus.EXHAUSTED
        return LearnerStatus.QUERYING

    def set_pool(self, X: Any, y: Any = None) -> ActiveLearner:
        """Set the samples to select from; the model and its labels are kept.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or sequence of samples that the estimator accepts
            Equal rows of a table are one sample, which is queried once.
        y : array-like, optional
            Their labels, if they are known and only training on all is too expensive: then "gradient" uses them, and
            ``run`` needs no `label`.

        Returns
        -------
        self
        """
        self._pool = SamplePool(X, y, self._learner.estimator)
        self._order = []
        return self

    def ask(self, n: int = 1) -> Indices:
        """Return up to `n` samples of the pool to label, the highest priority first; none at the end (see ``status``).

        Samples are returned once. Labels may arrive later and in any order.
        """
        check_count("n", n, 1)
        pool = self._require_pool()
        self._learner.update()
        if self.status is not LearnerStatus.QUERYING:
            return np.empty(0, dtype=np.int64)
        available = pool.available
        if self._uses_strategy:
            candidates = candidates_of(self._learner.model, pool.X, available, pool.y)
            chosen = available[self._strategy.choose(candidates, n, self._random)]
            self._record_margins(candidates, lambda: pool.rows(chosen))
        else:
            chosen = self._random.permutation(available)[:n]
        pool.ask(chosen)
        return chosen

    def tell(self, index: Any, y: Any) -> ActiveLearner:
        """Add the labels `y` of samples of the pool, queried or not, and update the model."""
        self._record(index, y)
        self._learner.update()
        return self

    def skip(self, index: Any) -> ActiveLearner:
        """Exclude samples of the pool from further queries."""
        pool = self._require_pool()
        pool.close(pool.check(index))
        return self

    def __iter__(self) -> Iterator[int]:
        """Yield samples to label until there are none: first the pending ones, then by the strategy."""
        pool = self._require_pool()
        yield from (index for index in list(pool.pending) if index in pool.pending)
        while len(index := self.ask()):
            yield int(index[0])

    def run(
        self, X: Any = None, *, label: Callable[[int], Any] | Any = None, n_labels: int | None = None, batch: int = 1
    ) -> ActiveLearner:
        """Query labels and update the model until a number of labels or the end of the queries (see ``status``).

        After an exception in `label`, or Ctrl-C, all labels so far are kept, and another ``run`` without `X` continues
        with the sample at which it was interrupted.

        Parameters
        ----------
        X : array-like, sparse matrix or frame, optional
            The pool; None for the current one.
        label : callable, or array-like
            Called with the index of a sample, returns its label, or None to skip it. An array has the labels of all
            samples, which are read only when they are queried. None: those of ``set_pool(X, y)``.
        n_labels : int, optional
            The number of labels to query in this call; None for no limit.
        batch : int, default=1
            The number of samples to query between two updates of the estimator.

        Returns
        -------
        self
        """
        if X is not None:
            self.set_pool(X)
        pool, size = self._require_pool(), check_count("batch", batch, 1)
        left = np.inf if n_labels is None else check_count("n_labels", n_labels, 1)
        label_of = _labelling_function(pool.y if label is None else label, pool.size)
        while left > 0:
            if not pool.pending and not len(self.ask(int(min(size, left)))):
                break
            for index in list(pool.pending):
                found = label_of(index)
                if found is None:
                    self.skip(index)
                else:
                    self._record(index, found)
                    left -= 1
                if left <= 0:
                    break
            self._learner.update()
        return self

    def should_query(self, X: Any) -> Any:
        """Return for each sample of a stream, in order, whether its label should be queried.

        The decision uses the model before the call. At the beginning, until there are `n_random` labels and two
        classes, every sample is selected, or as many as `rate` allows.
        """
        X = samples_of(X)
        count = count_rows(X)
        self._learner.update()
        if self.status is LearnerStatus.STOPPED:
            return np.zeros(count, dtype=bool)
        if self._rate is None and not isinstance(self._strategy, Margin):
            raise ValueError(
                "a stream needs a rate, the fraction of samples to query, unless the strategy uses margins"
            )
        if not self._uses_strategy:
            return np.array([self._rate is None or self._rate.select(None) for _ in range(count)], dtype=bool)
        candidates = candidates_of(self._learner.model, X, np.arange(count))
        priorities = self._strategy.priorities(candidates, self._random)
        self._record_margins(candidates, lambda: X)
        if self._rate is None:
            return -priorities < self._threshold
        return np.array([self._rate.select(priority) for priority in priorities], dtype=bool)

    def learn(self, X: Any, y: Any) -> ActiveLearner:
        """Add labelled samples of a stream and update the model."""
        X, y = samples_of(X), np.asarray(y)
        if y.shape != (count_rows(X),):
            raise ValueError(f"y must have one label for each of the {count_rows(X)} samples")
        self._add(X, y)
        self._learner.update()
        return self

    def run_stream(
        self, samples: Iterable[Any], label: Callable[[Any], Any], *, n_labels: int | None = None
    ) -> ActiveLearner:
        """Process a stream sample by sample and query the labels of the selected ones.

        Parameters
        ----------
        samples : iterable
            One-dimensional arrays, or sparse matrices with one row.
        label : callable
            Called with a selected sample, returns its label, or None if there is none.
        n_labels : int, optional
            The number of labels after which no further sample is read from the stream.

        Returns
        -------
        self
        """
        left = np.inf if n_labels is None else check_count("n_labels", n_labels, 1)
        for sample in samples:
            row = sample if sparse.issparse(sample) else samples_of([sample])
            if self.should_query(row)[0] and (found := label(sample)) is not None:
                self.learn(row, [found])
                left -= 1
            if left <= 0 or self.status is LearnerStatus.STOPPED:
                break
        return self

    @property
    def _uses_strategy(self) -> bool:
        """Whether the initial random queries are over."""
        return self._learner.ready and self.n_labels_ >= self._n_random

    def _require_pool(self) -> SamplePool:
        if self._pool is None:
            raise ValueError("there is no pool to select from: call set_pool(X), or run(X, label=...)")
        return self._pool

    def _record(self, index: Any, y: Any) -> None:
        pool = self._require_pool()
        index = pool.check(index)
        y = np.atleast_1d(np.asarray(y))
        if y.shape != index.shape:
            raise ValueError(f"{len(index)} samples need as many labels, not {y.size}")
        if len(index):
            self._add(pool.rows(index), y)
            self._order.extend(index.tolist())
            pool.close(index)

    def _add(self, rows: Any, y: Any) -> None:
        """Record samples with their labels, and whether the current model predicts them correctly."""
        ready = self._learner.ready and self._events is not None and isinstance(self._events.rule, LowErrorRate)
        wrong = self._learner.model.predict(rows) != y if ready else []
        self._learner.record(rows, y.tolist())
        if self._events is not None:
            self._events.add(bool(each) for each in wrong)

    def _record_margins(self, candidates: Candidates, chosen: Callable[[], Any]) -> None:
        """Record which evaluated samples were inside the margin, or which chosen ones if none was evaluated."""
        if self._events is None or isinstance(self._events.rule, LowErrorRate):
            return
        evaluated = candidates.margins or [margins(class_values(self._learner.model, chosen()))]
        for found in evaluated:
            self._events.add((found < 1.0).tolist())


def _labelling_function(label: Any, size: int) -> Callable[[int], Any]:
    """Return a function that maps an index to its label."""
    if label is None:
        raise ValueError("run requires label, a function from an index to its label, or labels in set_pool(X, y)")
    if callable(label):
        function: Callable[[int], Any] = label
        return function
    labels = np.asarray(label)
    if labels.shape != (size,):
        raise ValueError(f"label must have one label for each of the {size} samples of the pool")
    return lambda index: labels[index]
