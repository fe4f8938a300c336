"""Hold the service at full load on the loopback and print the percentiles of the latency.

    python -m examples.serving.load_test --minutes 5

Fits a model, starts the service with it, and keeps `--connections` connections busy: each sends its next request when
the last is answered, so that the service is never idle. Every answer is compared with the predictions of the model.
Exits with 1 if an answer is wrong or missing, or if the memory of the service grows.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np

import maxmargin
from maxmargin.datasets import chessboard

ROOT = Path(__file__).resolve().parents[2]

#: Growth of the memory of the service after the first quarter that counts as a leak, in MB.
MAX_GROWTH_MB = 30


@dataclass
class Load:
    """What was measured: latencies in seconds, errors, and the memory of the service in MB."""

    latencies: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


async def connect(port: int, requests: list[tuple[bytes, Any]], end: float, load: Load, start: int) -> None:
    """Send requests on one connection until the end, and check the answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    number = start
    while perf_counter() < end:
        request, expected = requests[number % len(requests)]
        number += 1
        began = perf_counter()
        writer.write(request)
        status, body = await answer(reader)
        load.latencies.append(perf_counter() - began)
        if status != 200 or json.loads(body)["predictions"] != expected:
            load.errors.append(f"status {status}: {body[:200]!r}")
    writer.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the status and the body of an answer (HTTP/1.1 with a content length)."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
    length = next(int(line.split(":")[1]) for line in head if line.lower().startswith("content-length"))
    return int(head[0].split()[1]), await reader.readexactly(length)


def request_of(X: np.ndarray) -> bytes:
    """Return the bytes of a request."""
    body = json.dumps({"instances": X.tolist()}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def start_service(model: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start the service with a model; return the process and its port when it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "examples.serving", model, "--port", str(port)], cwd=ROOT)
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with exit code {process.returncode}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process, port
        sleep(0.1)
    process.terminate()
    raise RuntimeError("the service did not start within a minute")


def memory_of(process: subprocess.Popen[bytes]) -> float:
    """Return the resident memory of a process in MB; Linux only, NaN elsewhere."""
    try:
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    except OSError:
        return float("nan")
    return pages * 4096 / 1e6


async def hold(port: int, requests: list[tuple[bytes, Any]], options: argparse.Namespace, process: Any) -> Load:
    """Keep all connections busy for the given time."""
    load, end = Load(), perf_counter() + 60.0 * options.minutes
    tasks = [asyncio.create_task(connect(port, requests, end, load, 7 * k)) for k in range(options.connections)]
    while perf_counter() < end:
        load.memory.append(memory_of(process))
        await asyncio.sleep(min(1.0, max(0.0, end - perf_counter())))
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, BaseException):
            load.errors.append(repr(result))
    return load


def report(load: Load, options: argparse.Namespace) -> int:
    """Print the results; return the exit code."""
    milliseconds = 1e3 * np.sort(load.latencies)
    seconds = 60.0 * options.minutes
    print(
        f"{len(milliseconds):,} requests of {options.rows} rows on {options.connections} connections in {seconds:.0f} s"
    )
    print(f"{len(milliseconds) / seconds:,.0f} requests/s, {options.rows * len(milliseconds) / seconds:,.0f} rows/s")
    names = {"median": 50, "90 %": 90, "99 %": 99, "99.9 %": 99.9, "maximum": 100}
    print(", ".join(f"{name} {np.percentile(milliseconds, q):.1f} ms" for name, q in names.items()))
    quarter = max(1, len(load.memory) // 4)
    early, late = np.median(load.memory[quarter : 2 * quarter] or load.memory), np.median(load.memory[-quarter:])
    print(f"memory of the service: {load.memory[0]:.0f} MB at first, {early:.0f} MB, {late:.0f} MB at the end")
    print(f"{len(load.errors)} errors{': ' + load.errors[0] if load.errors else ''}")
    return 1 if load.errors or not load.latencies or late - early > MAX_GROWTH_MB else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.serving.load_test", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rows", type=int, default=10, help="rows of a request")
    options = parser.parse_args()
    X, y = chessboard(5000, noise=0.05, seed=1)
    model = maxmargin.SVC(C=10, gamma=1.0).fit(X, y)
    parts = [X[k : k + options.rows] for k in range(0, 1000, options.rows)]
    requests = [(request_of(part), model.predict(part).tolist()) for part in parts]
    with tempfile.TemporaryDirectory() as folder:
        maxmargin.save(model, Path(folder) / "model.maxmargin")
        process, port = start_service(Path(folder) / "model.maxmargin")
        try:
            load = asyncio.run(hold(port, requests, options, process))
        finally:
            process.terminate()
            process.wait()
    return report(load, options)


if __name__ == "__main__":
    sys.exit(main())
