"""The worker of each partition: prepared partitions are placed by Dask, and recovered by it if a worker is lost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import dask
import distributed

from maxmargin.blocks.dask_collections import Partitions
from maxmargin.dask.partitions import prepare
from maxmargin.dask.worker_watch import WorkerWatch

#: Seconds between two looks at the state of tasks and workers.
INTERVAL = 0.5

#: Seconds that a cluster may be without any worker: one that grows on demand needs them to start one.
MAX_SECONDS_WITHOUT_WORKERS = 60.0


def place(client: Any, given: Partitions) -> list[Any]:
    """Return the futures of the prepared partitions.

    A partition stays where its rows are in memory already. Data that are not in memory are divided among the workers in
    ranges, so that the same data on the same workers are always placed, and added, in the same way.
    """
    homes = _homes(client, given)
    tasks = []
    for number, (X, y, weights) in enumerate(zip(given.X, given.y, given.weights, strict=True)):
        chosen = {"workers": [homes[number]], "allow_other_workers": True} if homes[number] else {}
        with dask.annotate(**chosen):
            task = dask.delayed(prepare, pure=False)(number, given.layout, X, y, weights)
        tasks.append(task)
    futures: list[Any] = client.compute(tasks, optimize_graph=False)  # optimisation would drop the annotations
    return futures


def _homes(client: Any, given: Partitions) -> list[str | None]:
    """Return the worker for each partition; None where Dask decides."""
    count, workers = len(given.X), sorted(client.nthreads())
    futures = distributed.futures_of(given.table)
    if not workers:
        return [None] * count
    if not futures:
        return [workers[number * len(workers) // count] for number in range(count)]
    await_tasks(client, futures)
    stored = _numbered(futures, count)
    holders = client.who_has(list(stored.values())) if stored else {}
    found = (holders.get(stored[number].key) if stored else None for number in range(count))
    return [min(addresses) if addresses else None for addresses in found]


def _numbered(futures: Sequence[Any], count: int) -> dict[int, Any] | None:
    """Return the stored partition behind each partition of a table; None if the numbers in their keys do not tell."""
    tuples = [future for future in futures if isinstance(future.key, tuple) and len(future.key) > 1]
    if len(tuples) != len(futures) or len({future.key[0] for future in tuples}) != 1:
        return None
    stored = {future.key[1]: future for future in tuples}
    return stored if sorted(stored) == list(range(count)) else None


def await_tasks(client: Any, futures: Sequence[Any]) -> None:
    """Wait until tasks are finished; raise the error of one that failed, or if they cannot be computed any more."""
    without_since: float | None = None
    watch = WorkerWatch(client)
    while True:
        try:
            distributed.wait(futures, timeout=INTERVAL)
        except TimeoutError:
            pass
        except distributed.CancelledError:
            raise RuntimeError(lost_data_message()) from None
        for future in futures:
            if future.status == "error":
                future.result()
            if future.status in ("cancelled", "lost"):
                raise RuntimeError(lost_data_message())
        if all(future.status == "finished" for future in futures):
            return
        workers = client.nthreads()
        watch.check(workers)
        without_since = None if workers else without_since or time.monotonic()
        if without_since is not None and time.monotonic() - without_since > MAX_SECONDS_WITHOUT_WORKERS:
            raise RuntimeError("the cluster has no workers any more: start some, and fit again")


def lost_data_message() -> str:
    """Return the sentence about partitions that Dask cannot recover."""
    return (
        "partitions of the data were lost with a worker, or cancelled, and Dask cannot compute them again (data from "
        "scatter have no source); load the data again, and fit again"
    )


def parts_by_worker(client: Any, futures: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the partitions of each worker, in order; workers are sorted by address."""
    holders = client.who_has(futures)
    found: dict[str, list[Any]] = {}
    for future in futures:
        addresses = holders.get(future.key) or ()
        if addresses:
            found.setdefault(min(addresses), []).append(future)
    return dict(sorted(found.items()))
