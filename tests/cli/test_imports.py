"""What the commands that start often import: below the estimators, and nothing that draws or shows tables."""

from __future__ import annotations

import subprocess
import sys

import pytest

from maxmargin.datasets import dump_libsvm, two_gaussians

PROGRAM = """
import contextlib, io, sys
from maxmargin.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:])
print(code, sorted({name.partition(".")[0] for name in sys.modules}))
"""

HEAVY = ("sklearn", "rich", "matplotlib", "pandas")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imports")
    X, y = two_gaussians(60)
    dump_libsvm(X, 2 * y - 1, folder / "data.libsvm")
    for program, model in ("svm-train", "kernel.model"), ("liblinear-train", "linear.model"):
        imported(folder, program, "-q", "data.libsvm", model)
    return folder


def imported(folder, *words):
    """Return the top-level modules that a command has imported."""
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    code, _, names = done.stdout.partition(" ")
    assert code == "0", done.stderr
    return names


@pytest.mark.parametrize(
    "words",
    [
        "svm-train -q data.libsvm out.model",
        "svm-train -q -v 3 data.libsvm",
        "svm-train -q -b 1 data.libsvm out.model",
        "svm-train -q -s 1 data.libsvm out.model",
        "svm-train -q -s 2 data.libsvm out.model",
        "svm-train -q -s 3 data.libsvm out.model",
        "svm-train -q -s 4 data.libsvm out.model",
        "svm-grid -log2c 0,1,1 -log2g 0,0,1 -gnuplot null -out null data.libsvm",
    ],
)
def test_programs_for_dense_data_import_no_scipy(files, words):
    names = imported(files, *words.split())
    assert not [name for name in (*HEAVY, "scipy") if f"'{name}'" in names]


@pytest.mark.parametrize(
    "words",
    [
        "svm-predict data.libsvm kernel.model out.txt",
        "svm-scale data.libsvm",
        "liblinear-train -q data.libsvm out.model",
        "liblinear-predict data.libsvm linear.model out.txt",
        "scale data.libsvm out.libsvm",
        "convert data.libsvm out.csv",
        "convert kernel.model out.maxmargin",
        "info data.libsvm",
        "info kernel.model",
        "predict data.libsvm kernel.model out.txt",
        "predict data.libsvm linear.model out.txt",
    ],
)
def test_commands_import_nothing_heavy(files, words):
    names = imported(files, *words.split())
    assert not [name for name in HEAVY if f"'{name}'" in names]
