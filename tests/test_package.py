"""The package as a whole: what it exports, what importing it loads, threads, progress."""

import ast
import io
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import maxmargin
from maxmargin.datasets import chessboard
from maxmargin.problems import Progress
from maxmargin.progress import ProgressLine, format_progress
from maxmargin.resources import thread_count


def test_public_names_exist():
    for name in maxmargin.__all__:
        assert hasattr(maxmargin, name)


@pytest.mark.parametrize("package", ["datasets", "interchange", "interchange.libsvm", "matrices", "models", "solvers"])
def test_names_that_packages_import_when_needed_exist(package):
    module = import_module(f"maxmargin.{package}")
    stub = Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    listed = next(
        statement.value
        for statement in ast.parse(stub).body
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "__all__"
    )
    assert sorted(module.__all__) == sorted(ast.literal_eval(listed))
    for name in module.__all__:
        assert hasattr(module, name)


def test_version():
    assert maxmargin.__version__ == version("maxmargin")


def test_import_loads_nothing_heavy():
    program = (
        "import sys, maxmargin; print([m for m in ('matplotlib', 'rich', 'clarabel', 'torch') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_thread_counts(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    everything = thread_count(None)
    assert everything >= 1
    assert thread_count(3) == 3
    assert thread_count(-1) == everything
    assert thread_count(-1000) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert thread_count(None) == 1
    with pytest.raises(ValueError, match="must not be 0"):
        thread_count(0)


def test_progress_line_is_silent_without_a_terminal():
    progress = Progress(iteration=1000, violation=0.5, primal=3.0, dual=2.0, active=10, seconds=5.0)
    quiet, loud = io.StringIO(), io.StringIO()
    for stream, terminal in ((quiet, False), (loud, True)):
        line = ProgressLine(Console(file=stream, force_terminal=terminal, width=120))
        line(progress)
        line.close()
    assert quiet.getvalue() == ""
    assert "iteration 1,000" in loud.getvalue()
    assert "violation 5.00e-01" in format_progress(progress)


def test_verbose_fits_stay_silent_when_piped(capfd):
    maxmargin.SVC(verbose=True).fit(*chessboard(100))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_chessboard():
    X, y = chessboard(500, size=3, noise=0.0, seed=4)
    assert X.shape == (500, 2)
    assert X.min() >= 0
    assert X.max() <= 3
    np.testing.assert_array_equal(y, (np.floor(X[:, 0]) + np.floor(X[:, 1])) % 2)
    noisy = chessboard(500, size=3, noise=0.2, seed=4)[1]
    assert 0.1 < (noisy != y).mean() < 0.3
    with pytest.raises(ValueError, match="noise"):
        chessboard(10, noise=2.0)
