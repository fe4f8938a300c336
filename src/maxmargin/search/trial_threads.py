"""Trials of a cross-validated search in parallel threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, Protocol

from sklearn.exceptions import ConvergenceWarning

from maxmargin.deadline import Deadline, TimeLimitReachedError
from maxmargin.resources import blas_thread_limit, thread_count
from maxmargin.search.device_trials import where_trained
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.grid import Point
from maxmargin.search.journal import Trial
from maxmargin.search.path_trials import PathTrials
from maxmargin.search.pruning import Pruning

#: Seconds between two checks of the time limit.
POLL_SECONDS = 0.1

#: Trials that run one after another: points, and the folds on which they are scored.
Job = list[tuple[Point, int]]


class RunningJobs(Protocol):
    """Jobs that are running."""

    def collect(self) -> tuple[list[Trial], int]:
        """Wait a moment for trials; return those that have finished since the last call, and the number of jobs.

        The error of a trial is raised.
        """
        ...


#: Starts jobs, which end with the context.
StartJobs = Callable[[FoldScorer, Sequence[Job], Deadline, Pruning | None], AbstractContextManager[RunningJobs]]


class TrialThreads:
    """Jobs in threads of this process.

    Parameters
    ----------
    threads : int
        As many trials run at the same time as there are jobs, at most; each has its share of the threads.
    scorer : FoldScorer
    jobs : sequence of Job
    deadline : Deadline
    pruning : Pruning or None
        Trials of points that lose are left out, as far as others do not start from them.
    """

    def __init__(
        self,
        threads: int,
        scorer: FoldScorer,
        jobs: Sequence[Job],
        deadline: Deadline,
        pruning: Pruning | None = None,
    ) -> None:
        self._pruning = pruning
        # Its own deadline ends the long computations of its workers when the search ends, whatever the reason.
        self.scorer = scorer = where_trained(scorer)
        self.deadline = Deadline(deadline.at)
        self._together = PathTrials.of(scorer, [trial for job in jobs for trial in job], threads)
        units: Sequence[Job] = jobs if self._together is None else self._together.paths
        most = threads if scorer.workers is None else min(scorer.workers, threads)
        self.workers = 1 if scorer.is_small else max(1, min(most, len(units)))
        self.threads = max(1, threads // self.workers)
        self._ended, self._stack = threading.Event(), ExitStack()
        self._error: Exception | None = None
        #: Messages of the workers: a trial, an error, or None when a job is finished.
        self._messages: SimpleQueue[Trial | Exception | None] = SimpleQueue()
        # Workers take their jobs from a queue. Submitting hundreds of jobs to the pool acquires the interpreter lock
        # each time, which a busy worker releases only every few milliseconds, and delays the first results.
        self._waiting: SimpleQueue[Job] = SimpleQueue()
        for unit in units:
            self._waiting.put(unit)

    @classmethod
    def starter(cls, n_jobs: int | None) -> StartJobs:
        """Return the function that starts jobs in so many threads."""
        return partial(cls, thread_count(n_jobs))

    def __enter__(self) -> TrialThreads:
        with ExitStack() as stack:
            # Stopped fits warn. Warning filters are shared by all threads, so they are set here, not in the workers.
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore", ConvergenceWarning)
            stack.enter_context(blas_thread_limit(self.threads))
            pool = stack.enter_context(ThreadPoolExecutor(self.workers))
            stack.callback(self._end)
            for _ in range(self.workers):
                pool.submit(self._run_jobs, self.scorer.cache_bytes() // self.workers)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def collect(self) -> tuple[list[Trial], int]:
        """Wait a moment for trials; return those that have finished, and the number of finished jobs."""
        trials: list[Trial] = []
        finished = 0
        try:
            message = self._messages.get(timeout=POLL_SECONDS)
            while self._error is None:
                if isinstance(message, Exception):
                    self._error = message  # the other trials would fail for the same reason
                    break
                if message is None:
                    finished += 1
                else:
                    trials.append(message)
                message = self._messages.get_nowait()
        except Empty:
            pass
        if self._error is not None and not trials:
            raise self._error
        return trials, finished

    def _end(self) -> None:
        """End the jobs that are running."""
        self._ended.set()
        self.deadline.at = perf_counter()
        if self._together is not None:
            self._together.cancel()

    def _run_jobs(self, cache_bytes: int) -> None:
        """Run jobs until the queue is empty or the search has ended."""
        while not self._ended.is_set():
            try:
                job = self._waiting.get_nowait()
            except Empty:
                return
            self._run_job(job, cache_bytes)

    def _run_job(self, job: Job, cache_bytes: int) -> None:
        """Run the trials of one job."""
        callback = None if self.scorer.has_small_problems else lambda _: self._ended.is_set()
        try:
            with self.deadline.in_force():  # of the fits, and of the predictions
                estimator = self.scorer.estimator_for_job(self.threads, cache_bytes, callback, self.workers)
                for trial in self._trials(job, estimator):
                    if self._ended.is_set() or self.deadline.reached:
                        return  # the fit was stopped, so its score means nothing
                    if self._pruning is not None:
                        self._pruning.add(trial)
                    self._messages.put(trial)
        except TimeLimitReachedError:
            return
        except Exception as error:
            self._messages.put(error)
        for _ in job if self._together is not None else job[:1]:  # a path is a job for each of its trials
            self._messages.put(None)

    def _trials(self, job: Job, estimator: Any) -> Iterator[Trial]:
        """Yield the trials of a job as they are finished, until the search ends."""
        together = self._together.run(job, estimator) if self._together is not None else None
        for k, (point, fold) in enumerate(job):
            # Later trials start from earlier ones: these are left out if they and all later ones lose.
            if self._ended.is_set() or (self._pruning is not None and self._pruning.lose(job[k:])):
                return
            if together is None:
                yield self.scorer.trial(estimator, point, fold)
                continue
            trial = next(together, None)
            if trial is None:
                return
            yield trial
