"""The fit of a linear machine on a cluster, as the client sees it.

Dask places the partitions and makes the first scan. Then each worker with partitions runs one loop, a Dask task of its
own, and the loops evaluate the passes without the scheduler (`worker_loop`, `driver`). The client waits. If a worker is
lost, it ends the loops, lets Dask recover the partitions, and starts loops again from the last point.
"""

from __future__ import annotations

import queue
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

import distributed
from distributed.threadpoolexecutor import thread_state

from maxmargin.blocks.dask_collections import Partitions
from maxmargin.dask.driver import Outcome, Plan, run_loop
from maxmargin.dask.exact_tasks import bound_exactly
from maxmargin.dask.landmark_tasks import (
    ChosenLandmarks,
    check_worker_memory,
    choose_landmarks,
    generator,
    landmark_layout,
    map_partition,
)
from maxmargin.dask.partitions import Summary, draw, scan
from maxmargin.dask.placement import INTERVAL, await_tasks, parts_by_worker, place
from maxmargin.dask.worker_loop import end_node, open_node, tree
from maxmargin.dask.worker_watch import WorkerWatch
from maxmargin.models import LandmarkFeatures
from maxmargin.problems import Progress, Status
from maxmargin.solvers.linear.pass_sums import PassPoint
from maxmargin.solvers.stopping import Callback, requests_stop
from maxmargin.training.exact_certificate import ExactCertificate

#: The fit ends with an error when workers were lost so many times.
MAX_LOSSES = 4

#: Seconds in which workers that have just answered take the name of a fit.
MAX_SECONDS_TO_OPEN = 30.0

#: Seconds in which the worker at the root returns the models so far after an interruption.
MAX_SECONDS_TO_END = 10.0


class WorkerLossError(RuntimeError):
    """Workers were lost again and again during a fit."""


def find_client(client: Any) -> Any:
    """Return the client: the one that is given, or the current one."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise ValueError(
                "fit on a Dask collection needs a client: create a distributed.Client, or name one (client=...)"
            ) from None
    if client.status != "running":
        raise ValueError(f"fit needs a client that is connected to a cluster, but this one is {client.status}")
    if client.asynchronous:
        raise ValueError("fit needs a client that is not asynchronous: distributed.Client(asynchronous=False)")
    return client


@contextmanager
def beside_the_queue() -> Iterator[None]:
    """Let other tasks take the place of this one, if it is one: it waits for tasks that may need its worker."""
    if not getattr(thread_state, "proceed", False):  # no task, or one that has seceded
        yield
        return
    distributed.secede()
    try:
        yield
    finally:
        distributed.rejoin()


class ClusterFit:
    """The fit of one estimator: partitions on workers, and the loops over them.

    Parameters
    ----------
    client : distributed.Client
    given : Partitions
    labels : bool
        Whether the targets are labels, not numbers.

    Attributes
    ----------
    layout : Layout
        Of the rows: those that are given, or their landmark features.
    summary : Summary
        What the scan of them has found.
    parts, rows : lists of futures
        The partitions that are trained on, and those that are given; the former may be landmark features of the latter.
    passes : int
        Passes over the data, scans included.
    """

    def __init__(self, client: Any, given: Partitions, labels: bool) -> None:
        self.client, self.started = client, perf_counter()
        self.layout, self.labels = given.layout, labels
        self.parts = self.rows = place(client, given)
        self.passes = 0
        self._sample: list[Any] = []
        self._scan()

    def _scan(self) -> None:
        """Scan all partitions, and draw a sample from them."""
        client, name = self.client, self.layout.name
        self.summary = Summary()
        scans = [client.submit(scan, part, self.layout, self.labels, pure=False) for part in self.parts]
        await_tasks(client, scans)
        for found in client.gather(scans):
            self.summary.add(found)
        if not self.summary.rows:
            raise ValueError(f"{name} has no rows")
        if not self.summary.total_weight > 0:
            raise ValueError("all sample weights are 0: at least one must be above 0")
        if len(self.summary.kinds) > 1:
            raise ValueError(f"{name} has dense and sparse partitions; convert one kind to the other")
        self._sample = [client.submit(draw, part, self.summary.rows, pure=False) for part in self.parts]
        self.passes += 1

    def compute_landmark_features(self, machine: Any) -> tuple[LandmarkFeatures, float]:
        """Put landmark features in the place of the rows; return how they are computed, and what they miss of k(x, x).

        Landmarks are chosen on one worker, from the sample. A partition of features is where its rows are.
        """
        client, random = self.client, generator(machine.random_state)
        chosen = client.submit(choose_landmarks, machine, random, self.tasks(), pure=False)
        await_tasks(client, [chosen])
        landmarks: ChosenLandmarks = chosen.result()
        check_worker_memory(client, self.summary.rows, landmarks.features)
        holders, mapped = client.who_has(self.parts), []
        for part in self.parts:
            addresses = holders.get(part.key) or ()
            at = {"workers": [min(addresses)], "allow_other_workers": True} if addresses else {}
            mapped.append(client.submit(map_partition, part, chosen, pure=False, **at))
        self.parts, self.layout = mapped, landmark_layout(self.layout, landmarks)
        self._scan()
        return landmarks

    def train(self, plan: Plan, callback: Callback | None) -> Outcome:
        """Return the trained models of all problems."""
        losses: list[str] = []
        limit = plan.rule.max_seconds
        while True:
            if limit is not None:
                left = max(0.0, limit - (perf_counter() - self.started))
                plan = replace(plan, rule=replace(plan.rule, max_seconds=left))
            attempt = _Attempt(self, plan, callback)
            outcome = attempt.run()
            self.passes += outcome.passes
            if outcome.lost is None:
                return outcome
            losses.append(outcome.lost)
            if len(losses) >= MAX_LOSSES:
                raise WorkerLossError(
                    f"the fit was stopped after workers were lost {len(losses)} times: {'; '.join(losses)}; see the "
                    "logs of these workers (memory is the most frequent cause), and fit again"
                )
            plan = replace(plan, starts={**plan.starts, **attempt.points})

    def bound_exactly(self, machine: Any) -> list[ExactCertificate]:
        """Return the bounds on the exact optimum of each problem of a fitted machine on landmarks."""
        self.passes += 1
        return bound_exactly(self.client, self.rows, machine, self.layout.name)

    def tasks(self) -> list[Any]:
        """Return the futures of the partitions and of the sample, after Dask has computed or recovered them."""
        await_tasks(self.client, [*self.parts, *self._sample])
        return self._sample


class _Attempt:
    """One start of loops on all workers with partitions, under a name of its own."""

    def __init__(self, fit: ClusterFit, plan: Plan, callback: Callback | None) -> None:
        self.client, self.fit, self.callback = fit.client, fit, callback
        self.plan = replace(plan, reports=callback is not None)
        self.name = f"maxmargin-{uuid.uuid4().hex}"
        self.watch = WorkerWatch(fit.client)
        self.points: dict[int, PassPoint] = {}
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._loops: dict[str, Any] = {}
        self._ended_as: Status | None = None

    def run(self) -> Outcome:
        """Start the loops, and wait for the models or for the loss of a worker."""
        sample = self.fit.tasks()
        parts = parts_by_worker(self.client, self.fit.parts)
        addresses = list(parts)
        if sum(map(len, parts.values())) < len(self.fit.parts):
            return Outcome([], 0, "a worker was lost before the loops were started")
        if self.callback is not None:
            self.client.subscribe_topic(self.name, self._events.put)
        try:
            self.watch.await_answers(addresses)
            opened = self.watch.run(addresses, open_node, self.name, tree(addresses), seconds=MAX_SECONDS_TO_OPEN)
            if len(opened) < len(addresses):
                return Outcome([], 0, f"{min(set(addresses) - set(opened))} was lost before the loops were started")
            for address in addresses:
                self._start(address, parts[address], sample if address == addresses[0] else None)
            return self._wait(addresses)
        finally:
            if self.callback is not None:
                self.client.unsubscribe_topic(self.name)
            self._end(addresses)
            self._release_loops()

    def _start(self, address: str, parts: list[Any], sample: list[Any] | None) -> None:
        loop = self.client.submit(
            run_loop,
            self.name,
            self.plan,
            parts,
            sample,
            key=f"{self.name}-{len(self._loops)}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )
        loop.add_done_callback(lambda _: self._events.put(None))
        self._loops[address] = loop

    def _release_loops(self) -> None:
        """Give the loops a moment to end, so that a cluster that is closed now need not wait for them."""
        loops = list(self._loops.values())
        with suppress(TimeoutError, distributed.CancelledError):
            distributed.wait(loops, timeout=INTERVAL)
        self.client.cancel(loops)

    def _wait(self, addresses: list[str]) -> Outcome:
        """Return how the attempt ended; look after the workers in between."""
        root = self._loops[addresses[0]]
        looked = perf_counter()
        try:
            while not root.done():
                self._take_event()
                if perf_counter() - looked < INTERVAL:
                    continue
                looked = perf_counter()
                if gone := self._gone(addresses):
                    return self._lost(addresses, gone)
                self.watch.check(addresses)
        except KeyboardInterrupt:
            return self._interrupted(addresses[0], root)
        for loop in self._loops.values():
            if loop.status == "error":
                loop.result()
        if root.status != "finished":
            if gone := self._gone(addresses):  # its data were lost with a worker
                return self._lost(addresses, gone)
            raise RuntimeError("the fit was cancelled by another user of the cluster")
        outcome: Outcome | None = root.result()
        if outcome is None:
            raise RuntimeError("the loops of the fit were ended by another user of the cluster")
        return self._lost(addresses, outcome.lost) if outcome.lost else self._with_status(outcome)

    def _gone(self, addresses: list[str]) -> str | None:
        """Return which worker has left the cluster, None if all are there."""
        gone = set(addresses) - set(self.client.nthreads())
        return f"{min(gone)} has left the cluster" if gone else None

    def _take_event(self) -> None:
        """Wait for a moment for a report or the end of a loop; the callback may end the fit."""
        try:
            event = self._events.get(timeout=INTERVAL)
        except queue.Empty:
            return
        if event is None or self._ended_as is not None:
            return
        assert self.callback is not None
        iteration, primal, dual, active, seconds = event[1]
        progress = Progress(int(iteration), float("inf"), primal, dual, int(active), seconds)
        if requests_stop(self.callback(progress)):
            self._ended_as = Status.STOPPED
            self.watch.run([*self._loops][:1], end_node, self.name)  # the root, which returns the models so far

    def _interrupted(self, address: str, root: Any) -> Outcome:
        """Return the models so far after Ctrl-C; a second Ctrl-C, or a root that does not answer, leaves none."""
        self._ended_as = Status.INTERRUPTED
        self.watch.run([address], end_node, self.name)
        try:
            outcome: Outcome | None = root.result(timeout=MAX_SECONDS_TO_END)
        except TimeoutError:
            outcome = None
        if outcome is None or not outcome.models:
            raise KeyboardInterrupt("fit was interrupted before there was a model")
        return self._with_status(outcome)

    def _with_status(self, outcome: Outcome) -> Outcome:
        """Return the models with the reason why the client has ended the fit."""
        ended = self._ended_as
        if ended is None:
            return outcome
        models = [
            replace(model, status=ended) if model.status is Status.INTERRUPTED else model for model in outcome.models
        ]
        return replace(outcome, models=models)

    def _lost(self, addresses: list[str], reason: str) -> Outcome:
        """Return the outcome of an attempt that has lost a worker, and keep the last points of the others."""
        passes, points = max(self._end(addresses), key=lambda state: state[0], default=(0, {}))
        self.points = {number: point._replace(recentre=False, direction=None) for number, point in points.items()}
        return Outcome([], passes, reason)

    def _end(self, addresses: list[str]) -> list[tuple[int, dict[int, PassPoint]]]:
        """End all loops; return the passes and the last points of those that answer."""
        return list(self.watch.run(addresses, end_node, self.name).values())
