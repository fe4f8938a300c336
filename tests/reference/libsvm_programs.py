"""The real programs of LIBSVM and LIBLINEAR, ours beside them, and data for both."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from maxmargin.cli.main import main
from maxmargin.datasets import chessboard, dump_libsvm

#: Where Debian has them.
PACKAGES = {"svm": "libsvm-tools", "liblinear": "liblinear-tools"}

NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|nan|inf)")


def real(program, *arguments, folder):
    """Run the real program in a folder; return its exit code and what it printed."""
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}, which is in Debian's package {PACKAGES[program.split('-')[0]]}")
    words = [program, *map(str, arguments)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def ours(capsys, program, *arguments):
    """Run our drop-in in this process; return its exit code and what it printed."""
    capsys.readouterr()
    code = main([program, *map(str, arguments)])
    return code, *capsys.readouterr()


def final_lines(text):
    """Return the lines of a program without those that show how it gets on."""
    passing = ("iter ", "WARNING: using -h 0 may be faster")
    return [line for line in text.splitlines() if line.strip(".* ") and not line.startswith(passing)]


def shape_of(line):
    """Return a line with its numbers left out."""
    return NUMBER.sub("#", line)


def numbers_of(text):
    """Return all numbers in a text."""
    return [float(number) for number in NUMBER.findall(text)]


def write_data(folder):
    """Write files of two classes, three classes, targets and kernel values."""
    X, y = chessboard(150, size=2, noise=0.1, seed=1)
    dump_libsvm(np.round(X - 1, 5), np.where(y, 1, -1)[::-1], folder / "overlap")
    dump_libsvm(np.round(X - 1, 5), np.where(y, 1, -1), folder / "board")
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], np.array([3, -2, 7])[y[order]]
    dump_libsvm(X, y, folder / "iris")
    kernel = X @ X.T
    lines = [
        f"{label} 0:{row + 1} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(kernel[row].tolist()))
        for row, label in enumerate(y.tolist())
    ]
    (folder / "kernel").write_text("\n".join([*lines, ""]))
    (folder / "part").write_text("\n".join([*lines[100:20:-1], ""]))
    X, y = load_diabetes(return_X_y=True)
    dump_libsvm(np.round(20 * X[:120], 5), np.round((y[:120] - 150) / 80, 3), folder / "targets")
