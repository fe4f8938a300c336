"""Grid search on a Dask cluster: trials spread over the workers, for data that fit into the memory of one.

A job is a Dask task: a trial of a kernel estimator, or all trials of a fold of a linear one. The data are the result of
another task, of which each worker holds a copy. So Dask recovers both if a worker is lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import monotonic, sleep
from typing import Any, NamedTuple

import distributed
from distributed import get_worker

from maxmargin.dask.cluster_fit import WorkerLossError, find_client
from maxmargin.dask.placement import MAX_SECONDS_WITHOUT_WORKERS
from maxmargin.dask.worker_loop import WANTED
from maxmargin.dask.worker_watch import WorkerWatch
from maxmargin.deadline import Deadline
from maxmargin.search import GridSearchResult
from maxmargin.search.cross_validated_search import search_grid
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.journal import Trial
from maxmargin.search.pruning import Pruning
from maxmargin.search.trial_threads import POLL_SECONDS, Job

#: Seconds in which the scheduler takes a request to start jobs.
MAX_SECONDS_TO_CANCEL = 5.0

#: The fraction of the memory limit of a worker for the kernel values of its trials.
CACHE_FRACTION = 0.25


def grid_search(X: Any, y: Any, estimator: Any = None, *, client: Any = None, **options: Any) -> GridSearchResult:
    """Search for the values of C and γ with the best cross-validation score, with trials on the workers of a cluster.

    The scores are those of `maxmargin.grid_search`. Ctrl-C ends the search; the result so far is returned, and is in
    the journal.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        In memory; each worker gets a copy. Dask collections must be computed first.
    y : array-like of shape (n_samples,)
    estimator : estimator with a parameter C, optional
        ``SVC()`` by default.
    client : distributed.Client, optional
        By default the current one.
    **options
        Those of `maxmargin.grid_search` except `n_jobs`: as many trials run at the same time as the workers have
        threads.

    Returns
    -------
    GridSearchResult

    Examples
    --------
    >>> from distributed import Client                                         # doctest: +SKIP
    >>> client = Client("tcp://scheduler:8786")                                # doctest: +SKIP
    >>> result = maxmargin.dask.grid_search(X, y, SVC(), Cs=[1, 10, 100])      # doctest: +SKIP
    >>> result.best_estimator.fit(X, y)                                        # doctest: +SKIP
    """
    if "n_jobs" in options:
        raise TypeError("grid_search on a cluster has no n_jobs: it uses the threads of the workers")
    for name, given in (("X", X), ("y", y)):
        if distributed.futures_of(given) or hasattr(given, "__dask_graph__"):
            raise ValueError(f"{name} must be in memory, not a Dask collection: call its method compute() first")
    return search_grid(partial(TrialTasks, find_client(client)), X, y, estimator, **options)


def _kept(scorer: FoldScorer) -> FoldScorer:
    """Return the data of a search: the task whose result workers share."""
    return scorer


class JobResult(NamedTuple):
    """The trials of a job; `ended` if it was ended before all of them."""

    trials: list[Trial]
    ended: bool


def run_job(job: Job, scorer: FoldScorer, seconds: float | None) -> JobResult:
    """Run the trials of a job, which ends when its task is cancelled, or after so many seconds."""
    worker, key = get_worker(), distributed.worker.thread_state.key
    deadline, trials = Deadline.after(seconds), list[Trial]()

    def ended(_: object = None) -> bool:
        task = worker.state.tasks.get(key)
        return deadline.reached or task is None or task.state not in WANTED

    limit = worker.memory_manager.memory_limit
    cache_bytes = scorer.cache_bytes() if not limit else min(scorer.cache_bytes(), int(CACHE_FRACTION * limit))
    callback = None if scorer.has_small_problems else ended
    estimator = scorer.estimator_for_job(1, cache_bytes // worker.state.nthreads, callback)
    for point, fold in job:
        trial = scorer.trial(estimator, point, fold)
        if ended():
            return JobResult(trials, ended=True)  # the fit was stopped, so its score means nothing
        trials.append(trial)
    return JobResult(trials, ended=False)


class TrialTasks:
    """Jobs on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    scorer : FoldScorer
    jobs : sequence of Job
    deadline : Deadline
    pruning : Pruning or None
        Jobs whose points all lose are cancelled.
    """

    def __init__(
        self,
        client: Any,
        scorer: FoldScorer,
        jobs: Sequence[Job],
        deadline: Deadline,
        pruning: Pruning | None = None,
    ) -> None:
        self._pruning = pruning
        self.client, self.scorer, self.deadline, self.jobs = client, replace(scorer, _copies={}), deadline, jobs
        self._running = dict[Any, Job]()
        self._without_since: float | None = None
        self._watch = WorkerWatch(client)

    def __enter__(self) -> TrialTasks:
        left = self.deadline.seconds_left()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # the data are sent once
            data = self.client.submit(_kept, self.scorer, pure=False)
        tasks = self.client.map(run_job, self.jobs, scorer=data, seconds=left, pure=False) if self.jobs else []
        self._running = dict(zip(tasks, self.jobs, strict=True))
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what is left, once the scheduler knows it: a request to cancel may overtake that to start."""
        keys, until = [task.key for task in self._running], monotonic() + MAX_SECONDS_TO_CANCEL
        while keys and monotonic() < until:
            states = self.client.sync(self.client.scheduler.get_task_status, keys=keys)
            if all(states.values()):
                break
            sleep(POLL_SECONDS)
        self.client.cancel(list(self._running))
        self._running.clear()

    def collect(self) -> tuple[list[Trial], int]:
        """Wait a moment for jobs; return the trials of those that have finished, and their number.

        The error of a job is raised once there are no trials beside it.
        """
        self._check_workers()
        with suppress(TimeoutError, distributed.CancelledError):
            distributed.wait(list(self._running), timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        trials, finished = list[Trial](), 0
        done = [task for task in self._running if task.status != "pending"]
        for task in sorted(done, key=lambda task: str(task.status) != "finished"):
            if trials and task.status != "finished":
                break
            if task.status in ("cancelled", "lost"):
                raise RuntimeError("the grid search was cancelled by another user of the cluster")
            found = self._result(task)
            del self._running[task]
            task.release()  # now: garbage collection may come late
            trials += found.trials
            finished += not found.ended
        return trials, finished + self._cancel_losing(trials)

    def _cancel_losing(self, trials: list[Trial]) -> int:
        """Cancel jobs whose points can no longer be the best after new trials, and return their number."""
        if self._pruning is None:
            return 0
        for trial in trials:
            self._pruning.add(trial)
        losing = [task for task, job in self._running.items() if task.status == "pending" and self._pruning.lose(job)]
        self.client.cancel(losing)
        for task in losing:
            del self._running[task]
        return len(losing)

    def _result(self, task: Any) -> JobResult:
        """Return the result of a job, or raise its error."""
        try:
            result: JobResult = task.result()
        except distributed.KilledWorker as error:
            point, fold = self._running[task][0]
            raise WorkerLossError(
                f"the grid search was stopped after workers were lost again and again in the trial of {point} on fold "
                f"{fold + 1}; see the logs of these workers (memory is the most frequent cause), and search again"
            ) from error
        return result

    def _check_workers(self) -> None:
        """Raise if the cluster has been without workers for long, or one has been silent for long."""
        workers = self.client.nthreads()
        self._watch.check(workers)
        if workers:
            self._without_since = None
            return
        self._without_since = self._without_since or monotonic()
        if monotonic() - self._without_since > MAX_SECONDS_WITHOUT_WORKERS:
            raise RuntimeError("the cluster has no workers any more: start some, and search again")
