"""Workers that are connected but do not answer, such as a process that was stopped: the end of a fit, not a hang.

The scheduler removes such a worker after `distributed.scheduler.worker-ttl`, five minutes by default, and a fit goes on
without it. Where that is switched off, or longer than a user wants to wait, the fit ends with an error after
`maxmargin.worker-timeout` of Dask's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

import dask
from dask.utils import parse_timedelta

#: How long a worker may be silent, unless the configuration of Dask has another value.
DEFAULT_TIMEOUT = "10 minutes"

#: Seconds between two questions to all workers.
MAX_INTERVAL = 5.0

#: Seconds in which a worker answers, unless it is silent.
MAX_SECONDS_TO_ANSWER = 2.0


class WorkerTimeoutError(RuntimeError):
    """A worker is connected, but does not answer."""


class WorkerWatch:
    """Asks workers from time to time whether they are there.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.timeout = float(parse_timedelta(dask.config.get("maxmargin.worker-timeout", DEFAULT_TIMEOUT)))
        self._next = monotonic() + min(MAX_INTERVAL, self.timeout)
        self._silent_since: dict[str, float] = {}

    def check(self, addresses: Collection[str]) -> None:
        """Raise if one of these workers is connected and has not answered for the time of the configuration.

        The event loop of a worker answers, also while its threads compute.
        """
        if monotonic() >= self._next:
            self._check_now(addresses)
            self._next = monotonic() + min(MAX_INTERVAL, self.timeout)

    def await_answers(self, addresses: Collection[str]) -> None:
        """Wait until all of these workers that are still connected have answered; raise as in `check`."""
        while self._check_now(addresses):
            sleep(min(MAX_INTERVAL, self.timeout))

    def run(
        self,
        addresses: Collection[str],
        function: Callable[..., Any],
        *arguments: Any,
        seconds: float = MAX_SECONDS_TO_ANSWER,
    ) -> dict[str, Any]:
        """Run a function on workers, outside of their queues; return the results by address.

        Workers that have left the cluster, leave it now, or are silent for so many seconds have no result. The function
        is called once more where another worker is silent.
        """
        try:
            return self._run(addresses, function, arguments, seconds)
        except TimeoutError:
            pass
        found: dict[str, Any] = {}
        for address in addresses:
            with suppress(TimeoutError):
                found |= self._run([address], function, arguments, MAX_SECONDS_TO_ANSWER)
        return found

    def _check_now(self, addresses: Collection[str]) -> bool:
        """Return whether one of these workers is silent; raise if one has been for long."""
        began = monotonic()
        try:
            self._run(addresses, _answer, (), MAX_SECONDS_TO_ANSWER)
            silent = []
        except TimeoutError:
            silent = [address for address in addresses if self._is_silent(address)]
        self._silent_since = {address: self._silent_since.get(address, began) for address in silent}
        for address, since in self._silent_since.items():
            if monotonic() - since >= self.timeout:
                raise WorkerTimeoutError(
                    f"the worker {address} is connected, but has not answered for {self.timeout:g} seconds "
                    "(maxmargin.worker-timeout in the configuration of Dask); end its process, so that Dask "
                    "recovers its partitions, and fit again"
                )
        return bool(silent)

    def _is_silent(self, address: str) -> bool:
        try:
            self._run([address], _answer, (), MAX_SECONDS_TO_ANSWER)
        except TimeoutError:
            return True
        return False

    def _run(
        self, addresses: Collection[str], function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float
    ) -> dict[str, Any]:
        known = self.client.nthreads()
        there = [address for address in addresses if address in known]
        if not there:
            return {}
        results: dict[str, Any] = self.client.run(
            function, *arguments, workers=there, on_error="return", callback_timeout=seconds
        )
        return {address: found for address, found in results.items() if not isinstance(found, BaseException)}


def _answer() -> bool:
    return True
