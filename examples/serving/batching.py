"""Predict the rows of concurrent requests together."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np


class OverloadedError(Exception):
    """Too many rows are waiting."""


class Batcher:
    """Predictions of one model for many concurrent requests.

    While a batch is computed in a thread, requests wait; all that wait then form the next batch. One call for many rows
    is much faster than many calls, and a single request never waits for others to arrive.

    Parameters
    ----------
    model : estimator
    max_rows : int
        Rows of a batch.
    max_waiting : int
        Rows that may wait; further requests raise `OverloadedError`.
    """

    def __init__(self, model: Any, max_rows: int = 4096, max_waiting: int = 65_536) -> None:
        self._model, self._max_rows, self._max_waiting = model, max_rows, max_waiting
        self._waiting: list[tuple[np.ndarray, str, asyncio.Future[Any]]] = []
        self._rows = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1)

    async def predict(self, X: np.ndarray, method: str) -> Any:
        """Return the result of a method of the model ("predict", "decision_function", …) for some rows."""
        if self._rows + len(X) > self._max_waiting:
            raise OverloadedError
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((X, method, result))
        self._rows += len(X)
        self._arrived.set()
        return await result

    async def run(self) -> None:
        """Compute batches until the task is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            batch = self._next_batch()
            method = batch[0][1]
            rows = np.concatenate([X for X, _, _ in batch])
            try:
                found = await loop.run_in_executor(self._thread, getattr(self._model, method), rows)
            except Exception as error:  # answered by each request, the service goes on
                for _, _, result in batch:
                    if not result.done():
                        result.set_exception(error)
                continue
            parts = np.split(found, np.cumsum([len(X) for X, _, _ in batch])[:-1])
            for (_, _, result), part in zip(batch, parts, strict=True):
                if not result.done():  # its client has gone
                    result.set_result(part)

    def _next_batch(self) -> list[tuple[np.ndarray, str, asyncio.Future[Any]]]:
        """Remove and return the oldest requests of one method, at most `max_rows` rows unless the first has more."""
        method, batch, rest, rows = self._waiting[0][1], [], [], 0
        for request in self._waiting:
            fits = request[1] == method and (not batch or rows + len(request[0]) <= self._max_rows)
            (batch if fits else rest).append(request)
            rows += len(request[0]) if fits else 0
        self._waiting = rest
        self._rows -= rows
        if not rest:
            self._arrived.clear()
        return batch
