"""A few seconds of the soak test, and its verdict on memory."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # the benchmarks are not installed

from benchmarks.soak import MAX_GROWTH_MB, growth  # noqa: E402


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_some_seconds_of_the_soak_test():
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "0.1", "--cases", "20"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 failures" in run.stdout
    assert " fits" in run.stdout


def test_growth_ignores_the_start_and_detects_a_leak():
    assert growth([100.0, *[300.0] * 20]) == 0.0
    assert growth([300.0 + (k % 5) for k in range(100)]) < 2.0
    assert growth([300.0 + k for k in range(100)]) > MAX_GROWTH_MB
    assert growth([300.0]) == 0.0
