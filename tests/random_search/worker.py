"""A process that examines cases one after another; where a fit does not end, the process is ended and replaced.

A limit that is an exception in the main thread does not reach a fit on worker threads or in native code. Here the
operating system ends the process: with SIGXCPU when the CPU time of all its threads exceeds the limit of the fit.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from time import perf_counter, process_time
from typing import Any

from .cases import Case
from .checks import Report, examine

#: CPU seconds after which a fit with its predictions is ended. Such problems take milliseconds.
MAX_CPU_SECONDS = 10.0

#: Seconds after which the process is ended whatever it does: a deadlock takes no CPU time.
MAX_SECONDS = 900.0


class Worker:
    """A process that examines cases.

    Parameters
    ----------
    max_cpu_seconds, max_seconds : float
        CPU time of a fit, rounded up to whole seconds, and time of a case with its evaluation.
    """

    def __init__(self, max_cpu_seconds: float = MAX_CPU_SECONDS, max_seconds: float = MAX_SECONDS) -> None:
        self.max_cpu_seconds, self.max_seconds = max_cpu_seconds, max_seconds
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def examine(self, case: Case, only_enclosure: bool = False) -> Report:
        """Return the report of a case; a fit that does not end, or a crash, is a finding."""
        if self._process is None:
            self._begin()
        assert self._connection is not None
        assert self._process is not None
        report, started = Report(), perf_counter()
        try:
            self._connection.send((case, only_enclosure))
            if self._connection.poll(self.max_seconds):
                received: Report = self._connection.recv()
                return received
            report.add("time", f"fit and evaluation did not end within {self.max_seconds:g} s")
        except (EOFError, ConnectionError):
            self._process.join()
            if self._process.exitcode == -signal.SIGXCPU:
                report.add("time", f"the fit did not end within {self.max_cpu_seconds:g} s of CPU time")
            else:
                report.add("crash", f"the process ended with exit status {self._process.exitcode}")
        self._end()
        report.wall = perf_counter() - started
        return report

    def _begin(self) -> None:
        # A new interpreter: a fork would inherit the state of threads that it does not have.
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.max_cpu_seconds), daemon=True)
        self._process.start()
        theirs.close()  # so that the end of the process is the end of the connection
        self._connection.recv()  # the limits do not cover its imports

    def _end(self) -> None:
        if self._process is not None and self._connection is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
        self._process = self._connection = None


def _serve(connection: Connection, max_cpu_seconds: float) -> None:
    """Examine the cases that arrive until the connection is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # SIGXCPU would leave a core file
    connection.send("ready")
    while True:
        try:
            case, only_enclosure = connection.recv()
        except EOFError:
            return
        connection.send(examine(case, only_enclosure, limit=lambda: _cpu_limit(max_cpu_seconds)))


@contextmanager
def _cpu_limit(seconds: float) -> Iterator[Any]:
    """End this process when it takes more CPU time than this inside."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(process_time() + seconds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))
