"""The loop of a fit on each worker, and the binary tree in which the sums of a pass are added.

A `Node` is a worker's place in the tree. A pass goes down the tree as a request to each child and comes back as sums,
added in the order of the tree: those of the worker, of its first and of its second child. Requests are handled by the
server of the Dask worker, with the connections, encryption and authentication of the cluster: no other port is opened.
The values are computed in the thread of a Dask task, which ends when the task is cancelled, too.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import reduce
from threading import Event
from typing import Any, NamedTuple

from distributed.protocol import to_serialize
from distributed.worker import thread_state

from maxmargin._typing import Floats
from maxmargin.dask.packed_sums import Sums, add_sums, packed
from maxmargin.deadline import check_deadline
from maxmargin.solvers.linear.pass_sums import PassPoint
from maxmargin.training.block_training import PoseBlock, TrainingBlock, evaluate_pass
from maxmargin.training.proximal_centres import ProximalCentres

#: Seconds after which a waiting loop looks whether its task was cancelled, or the deadline of the fit has passed.
MAX_WAIT = 0.1

#: The states of a task whose result is still wanted.
WANTED = ("executing", "long-running")


class FitEndedError(Exception):
    """The client has ended the fit, or its task was cancelled."""


class LostWorkerError(Exception):
    """A worker does not answer any more."""


class Request(NamedTuple):
    """A pass: the point of each problem, and what moments are about."""

    points: dict[int, PassPoint]
    origin: Floats | None


class Node:
    """The place of a worker in the tree of a fit.

    Parameters
    ----------
    worker : distributed.Worker
    name : str
        The unique name of the loops of a fit.
    children : sequence of str
        The addresses of the workers below.

    Attributes
    ----------
    points : dict
        The last point of each problem, from which a fit continues after a failure.
    passes : int
        Passes so far.
    """

    def __init__(self, worker: Any, name: str, children: Sequence[str]) -> None:
        self.worker, self.name, self.children = worker, name, tuple(children)
        self.points: dict[int, PassPoint] = {}
        self.passes = 0
        self._ended = Event()
        self._key: Any = None
        self._centres: ProximalCentres | None = None
        self._requests: queue.SimpleQueue[tuple[Request, Future[Sums]]] = queue.SimpleQueue()

    # In the event loop of the worker.

    async def handle(self, request: Request) -> dict[str, Any]:
        """Return the sums of this worker and those below."""
        if self._ended.is_set():
            return self._lost("its loop has ended")
        own: Future[Sums] = Future()
        self._requests.put((request, own))
        try:
            sums, below = await asyncio.gather(asyncio.wrap_future(own), self.ask_children(request))
            return {"status": "OK", "sums": to_serialize(add_sums(sums, below))}
        except LostWorkerError as error:
            return {"status": "lost", "reason": str(error)}
        except FitEndedError:
            return self._lost("its loop has ended")
        except Exception as error:
            return {"status": "failed", "error": to_serialize(error)}

    def _lost(self, reason: str) -> dict[str, Any]:
        return {"status": "lost", "reason": f"{self.worker.contact_address}: {reason}"}

    async def ask_children(self, request: Request) -> Sums:
        """Return the sums of all workers below, empty if there are none."""
        found = await asyncio.gather(*(self._ask(child, request) for child in self.children))
        return reduce(add_sums, found, {})

    async def _ask(self, address: str, request: Request) -> Sums:
        try:
            reply = await getattr(self.worker.rpc(address), self.name)(request=to_serialize(request))
        except OSError as error:  # those of distributed.comm, timeouts included
            raise LostWorkerError(f"{address}: {error}") from error
        if reply is None or reply["status"] == "lost":
            raise LostWorkerError(f"{address} has left the fit" if reply is None else reply["reason"])
        if reply["status"] == "failed":
            raise reply["error"]
        sums: Sums = reply["sums"]
        return sums

    def end(self) -> None:
        """Let the loop end; requests that wait are answered."""
        self._ended.set()
        while not self._requests.empty():
            answer = self._requests.get()[1]
            if answer.set_running_or_notify_cancel():
                answer.set_exception(FitEndedError())

    # In the thread of the task.

    def start(self) -> None:
        """Note the task of the loop."""
        self._key = thread_state.key

    def check_wanted(self) -> None:
        """Raise `FitEndedError` if the client has ended the fit, or the task was cancelled."""
        task = self.worker.state.tasks.get(self._key)
        if self._ended.is_set() or task is None or task.state not in WANTED:
            raise FitEndedError

    def serve(self, blocks: Sequence[TrainingBlock], pose: PoseBlock) -> None:
        """Answer requests until the fit ends."""
        while True:
            self.check_wanted()
            try:
                request, answer = self._requests.get(timeout=MAX_WAIT)
            except queue.Empty:
                continue
            if not answer.set_running_or_notify_cancel():  # the worker that asked has gone
                continue
            try:
                answer.set_result(self.evaluate_own(blocks, pose, request))
            except Exception as error:  # raised again where the request came from
                answer.set_exception(error)

    def evaluate_own(self, blocks: Sequence[TrainingBlock], pose: PoseBlock, request: Request) -> Sums:
        """Return the sums of this worker."""
        self.points.update(request.points)
        self.passes += 1
        if self._centres is None:
            self._centres = ProximalCentres(sum(block.rows.size for block in blocks))
        return packed(evaluate_pass(self._while_wanted(blocks), pose, request.points, request.origin, self._centres))

    def evaluate_tree(self, blocks: Sequence[TrainingBlock], pose: PoseBlock, request: Request) -> Sums:
        """Return the sums of all workers; this is the root of the tree."""
        below = asyncio.run_coroutine_threadsafe(self.ask_children(request), self.worker.loop.asyncio_loop)
        try:
            own = self.evaluate_own(blocks, pose, request)
            while True:
                self.check_wanted()
                check_deadline()
                try:
                    return add_sums(own, below.result(MAX_WAIT))
                except FutureTimeoutError:
                    if below.done():  # it was the exception of a child
                        raise
        finally:
            below.cancel()

    def _while_wanted(self, blocks: Sequence[TrainingBlock]) -> Iterator[TrainingBlock]:
        for block in blocks:
            self.check_wanted()
            yield block


def tree(addresses: Sequence[str]) -> dict[str, list[str]]:
    """Return the children of each worker in a binary tree, whose root is the first."""
    return {address: list(addresses[2 * at + 1 : 2 * at + 3]) for at, address in enumerate(addresses)}


# The functions below run on workers in their event loop, outside of the queue of tasks (`Client.run`).


def open_node(name: str, children: dict[str, list[str]], dask_worker: Any) -> None:
    """Take requests from now on; they wait until the loop of the worker runs."""
    node = Node(dask_worker, name, children[dask_worker.contact_address])
    dask_worker.extensions[name] = node
    dask_worker.handlers[name] = node.handle


def end_node(name: str, dask_worker: Any) -> tuple[int, dict[int, PassPoint]]:
    """Let the loop of a worker end; return its passes and its last points."""
    node = dask_worker.extensions.pop(name, None)
    dask_worker.handlers.pop(name, None)
    if node is None:
        return 0, {}
    node.end()
    return node.passes, node.points
