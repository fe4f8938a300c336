"""Fits that are killed and resumed: 20 of the kills of ``python -m tests.kill_and_resume``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Of every kind of problem one, and the command.
CASES = (
    "svc",
    "svc three classes",
    "svc probability",
    "svr",
    "nu_svc",
    "lssvc",
    "linear_svc",
    "linear_svc l1",
    "linear_svr",
    "kernel_approximation_svc",
    "train",
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that can be killed by SIGKILL")
def test_twenty_kills():
    words = [word for name in CASES for word in ("--case", name)]
    command = [sys.executable, "-m", "tests.kill_and_resume", "--kills", "20", "--seed", "1", *words]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "20 kills" in found.stdout
    assert "lost: median" in found.stdout
