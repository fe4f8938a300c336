"""Ctrl-C and SIGTERM in real processes: what was computed is kept, and the command says how to resume."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from maxmargin.interchange import load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def folder(tmp_path):
    """A folder with data on which searches and fits take long: labels are noise."""
    random = np.random.default_rng(0)
    np.savez(tmp_path / "noise.npz", X=random.normal(size=(3000, 20)), y=random.integers(0, 2, 3000))
    return tmp_path


def stopped(folder, words, number, is_due):
    """Start a command, send a signal when it is due, and return the finished process and its errors."""
    command = [sys.executable, "-m", "maxmargin", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # A process of a shell's background job ignores SIGINT, and its children do.
    process = subprocess.Popen(
        command, cwd=folder, **pipes, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    )
    limit = time.monotonic() + 120
    while not is_due() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.02)
    process.send_signal(number)
    out, errors = process.communicate(timeout=120)
    return process.returncode, out, errors


def trials(path):
    return len(path.read_bytes().splitlines()) if path.exists() else 0


@pytest.mark.parametrize("number", SIGNALS)
def test_easy_keeps_its_trials_and_resumes(folder, number):
    words = ["easy", "noise.npz", "--no-report", "--folds", "2"]
    journal = folder / "noise.npz.linear.jsonl"
    code, _, errors = stopped(folder, words, number, lambda: trials(journal) > 3)
    assert code == 130, errors
    assert "to resume:  maxmargin easy noise.npz --no-report --folds 2 --resume" in errors
    kept = journal.read_bytes()
    assert len(kept.splitlines()) > 3
    again = subprocess.run([sys.executable, "-m", "maxmargin", *words], cwd=folder, capture_output=True, text=True)
    assert again.returncode == 1
    assert "noise.npz.linear.jsonl is the journal of a model selection that was interrupted" in again.stderr
    assert journal.read_bytes() == kept
    resumed = [sys.executable, "-m", "maxmargin", *words, "--resume", "--max-seconds", "20", "--json", "-q"]
    done = subprocess.run(resumed, cwd=folder, capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    assert json.loads(done.stdout)["cross_validation"] is not None
    assert load(folder / "noise.npz.maxmargin").predict(np.zeros((1, 20))).shape == (1,)
    assert not list(folder.glob("*.jsonl"))


@pytest.mark.parametrize("number", SIGNALS)
def test_train_writes_the_unfinished_model(folder, number):
    words = ["train", "noise.npz", "model", "-C", "1e6", "--solver", "pairwise", "--tol", "1e-9"]
    words += ["--checkpoint", "state", "--checkpoint-seconds", "0.2"]  # the first one says that the fit has begun
    code, _, errors = stopped(folder, words, number, (folder / "state").exists)
    assert code == 130, errors
    assert "interrupted: the unfinished model was written" in errors
    assert load(folder / "model").predict(np.zeros((1, 20))).shape == (1,)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    "words",
    [
        ["grid", "noise.npz", "--Cs", "1000", "--gammas", "0.001:1:1.01"],
        ["compare", "noise.npz", "-C", "1e5"],
        ["svm-train", "-c", "1e6", "-v", "5", "noise.libsvm"],
    ],
    ids=lambda words: words[0],
)
def test_sigterm_ends_every_command_as_ctrl_c_does(folder, words):
    if words[0] != "grid":  # fits of 3,000 samples may end before the signal
        random = np.random.default_rng(0)
        np.savez(folder / "noise.npz", X=random.normal(size=(12_000, 20)), y=random.integers(0, 2, 12_000))
    subprocess.run(
        [sys.executable, "-m", "maxmargin", "convert", "noise.npz", "noise.libsvm"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    started = time.monotonic()
    code, _, errors = stopped(folder, words, signal.SIGTERM, lambda: time.monotonic() - started > 4)
    assert code == 130, errors
    assert "Traceback" not in errors


def test_a_handler_of_the_caller_is_left_alone(capsys):
    from maxmargin.cli.main import main

    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        assert main(["info", "chessboard:20"]) == 0
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    assert main(["info", "chessboard:20"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
