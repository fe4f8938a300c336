"""The prediction service of examples/serving: a real server on the loopback, its answers and its errors."""

import asyncio
import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the examples are not installed

from examples.serving.batching import Batcher, OverloadedError  # noqa: E402
from examples.serving.load_test import Load, report, start_service  # noqa: E402
from examples.serving.service import MAX_BODY_BYTES  # noqa: E402

import maxmargin  # noqa: E402

X = np.random.default_rng(0).normal(size=(80, 3))
MODEL = maxmargin.SVC(C=10).fit(X, np.where(X[:, 0] > 0, "yes", "no"))


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    file = tmp_path_factory.mktemp("serving") / "model.maxmargin"
    maxmargin.save(MODEL, file)
    process, port = start_service(file)
    yield port
    process.terminate()
    assert process.wait(30) in (0, -15)


def ask(port, body, path="/predict"):
    """Return the status and the JSON of an answer."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_health(port):
    assert ask(port, None, "/health") == (200, {"status": "ok", "estimator": "SVC", "features": 3})


def test_predictions_are_those_of_the_model(port):
    status, found = ask(port, {"instances": X.tolist()})
    assert (status, found["predictions"]) == (200, MODEL.predict(X).tolist())
    status, found = ask(port, {"instances": X[:5].tolist(), "output": "decision_function"})
    assert found["predictions"] == pytest.approx(MODEL.decision_function(X[:5]).tolist())


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "not valid JSON"),
        (b"{", 400, "not valid JSON"),
        (b"[" * 100_000, 400, "not valid JSON"),
        (b"\xff", 400, "not valid JSON"),
        ([], 422, "must be an object"),
        ({"instances": [[1, 2, 3]], "more": 1}, 422, "must be an object"),
        ({"instances": []}, 422, "3 features"),
        ({"instances": [[1, 2]]}, 422, "3 features"),
        ({"instances": [[1, 2, 3], [1, 2]]}, 422, "same length"),
        ({"instances": [["a", 2, 3]]}, 422, "lists of numbers"),
        ({"instances": [[None, 2, 3]]}, 422, "instance 0 has a value that is not finite"),
        ({"instances": [[10**400, 2, 3]]}, 422, "lists of numbers"),
        (b'{"instances": [[0, 2, NaN]]}', 422, "not finite"),
        ({"instances": [[1, 2, 3]], "output": "fit"}, 422, "output must be one of predict, decision_function"),
        ({"instances": [[1, 2, 3]], "output": "predict_proba"}, 422, "output must be one of"),
        ({"instances": [[1, 2, 3]], "output": ["predict"]}, 422, "output must be one of"),
        (b" " * (MAX_BODY_BYTES + 1), 413, "bytes"),
    ],
)
def test_invalid_requests(port, body, status, message):
    found, answer = ask(port, body)
    assert found == status
    assert message in answer["error"]
    assert ask(port, None, "/health")[0] == 200


def test_concurrent_requests_are_predicted_together():
    calls = []

    class Model:
        def predict(self, rows):
            calls.append(len(rows))
            return rows[:, 0]

        def fails(self, rows):
            raise ValueError("of the model")

    async def serve():
        batcher = Batcher(Model(), max_rows=4, max_waiting=10)
        waiting = [asyncio.create_task(batcher.predict(np.full((2, 1), float(k)), "predict")) for k in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(OverloadedError):
            await batcher.predict(np.zeros((1, 1)), "predict")
        task = asyncio.create_task(batcher.run())
        found = await asyncio.gather(*waiting)
        with pytest.raises(ValueError, match="of the model"):
            await batcher.predict(np.zeros((1, 1)), "fails")
        large = await batcher.predict(np.ones((9, 1)), "predict")  # more rows than a batch
        task.cancel()
        return found, large

    found, large = asyncio.run(serve())
    assert [part.tolist() for part in found] == [[float(k)] * 2 for k in range(5)]
    assert len(large) == 9
    assert calls == [4, 4, 2, 9]


def test_load_test_reports_percentiles_and_errors(capsys):
    command = [sys.executable, "-m", "examples.serving.load_test", "--minutes", "0.05", "--connections", "4"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "99.9 %" in run.stdout
    assert "0 errors" in run.stdout

    class Options:
        minutes, rows, connections = 1.0, 10, 4

    assert report(Load([0.1], [], [100.0] * 8), Options) == 0
    assert report(Load([0.1], ["status 500"], [100.0] * 8), Options) == 1
    assert report(Load([0.1], [], [100.0 + 20 * k for k in range(40)]), Options) == 1
