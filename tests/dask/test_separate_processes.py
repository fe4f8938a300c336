"""A scheduler and workers that are commands of their own, as in docs/dask.md."""

import json
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import dask.array as da
import pytest
from distributed import Client

import maxmargin
from maxmargin.dask import LinearSVC

MAX_SECONDS = 60

PAGE = Path(__file__).parents[2] / "docs" / "dask.md"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a scheduler with two workers."""
    file = tmp_path_factory.mktemp("cluster") / "scheduler.json"
    about = ["--scheduler-file", str(file), "--host", "127.0.0.1"]
    with ExitStack() as stack:
        start(stack, "scheduler", *about, "--port", "0", "--no-dashboard")
        for _ in range(2):
            start(stack, "worker", *about, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--memory-limit", "0")
        until = time.monotonic() + MAX_SECONDS
        while not file.exists() or not file.read_text():
            assert time.monotonic() < until
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"]


def start(stack, *command):
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    stack.callback(process.wait)
    stack.callback(process.kill)


def test_example_of_the_documentation(address):
    code = re.search(r"```py\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    code = code.replace("tcp://127.0.0.1:8786", address).replace("1_000_000", "5_000").replace("100_000", "1_000")
    names = {}
    exec(compile(code, str(PAGE), "exec"), names)
    names["client"].close()
    assert names["model"].certificate_.relative_gap <= 1e-4
    assert type(names["local"]) is maxmargin.LinearSVC


def test_fit(address, table):
    X, y, _, _ = table
    with Client(address) as client:
        client.wait_for_workers(2, timeout=MAX_SECONDS)
        rows, labels = da.from_array(X, chunks=(700, 6)), da.from_array(y, chunks=700)
        model = LinearSVC().fit(rows, labels)
        predicted = model.predict(rows).compute()
    local = maxmargin.LinearSVC().fit(X, y)
    assert model.certificate_.relative_gap <= 1e-4
    assert model.certificate_.dual <= local.certificate_.primal
    assert local.certificate_.dual <= model.certificate_.primal
    assert (predicted == model.predict(X)).all()
