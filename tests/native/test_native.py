"""The native loops under sanitisers, and the levels against each other through Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maxmargin import _native

ROOT = Path(__file__).parents[2]


@pytest.mark.native
def test_loops_are_clean_under_sanitisers(tmp_path):
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # the test extra brings both
    cmake, ninja = (shutil.which(name, path=programs) for name in ("cmake", "ninja"))
    configure = [cmake, "-S", str(ROOT), "-B", str(tmp_path), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    configure.append("-DMAXMARGIN_SANITIZE=ON")
    for command in (configure, [cmake, "--build", str(tmp_path)]):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
    result = subprocess.run([tmp_path / "native_tests"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "passed" in result.stdout


def test_levels_give_the_same_bits():
    program = (
        "import sys, numpy as np; from maxmargin import SVC, _native; from maxmargin.datasets import chessboard;"
        "X, y = chessboard(300, noise=0.05); m = SVC(C=10, gamma=1.0).fit(X, y);"
        "Z = np.tile(X, 40); k = SVC(kernel='laplacian', gamma=0.01).fit(Z, y);"
        "sys.stdout.buffer.write(m.dual_coef_.tobytes() + m.intercept_.tobytes() + k.dual_coef_.tobytes());"
        "print(_native.level, file=sys.stderr)"
    )
    results = {}
    for wish in ("v2", "v3", "v4"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "MAXMARGIN_LEVEL": wish},
            capture_output=True,
            check=True,
        )
        results[run.stderr.decode().strip()] = run.stdout
    assert len(set(results.values())) == 1
    assert _native.level in results


def test_native_loop_checks_its_arguments():
    floats, longs = np.zeros(3), np.zeros(3, dtype=np.int64)
    counts = np.zeros(2, dtype=np.int64)
    good = [floats.copy(), floats.copy(), floats, floats, floats, floats, np.zeros(3, dtype=np.int32), floats.copy(),
            3, 1, 0, np.zeros((2, 3)), longs, counts.copy(), counts.copy(), 0, 1,
            np.full(4, -1), 0.0, 1e-3, 10, 1.0]  # fmt: skip
    for position, value in (
        (2, np.zeros(4)),
        (7, np.zeros(2)),
        (8, 4),
        (13, longs),
        (16, 9),
        (17, np.zeros(2, dtype=np.int64)),
    ):
        bad = list(good)
        bad[position] = value
        with pytest.raises(ValueError, match=r"must have|wrong length|out of range|malformed|unknown|memory"):
            _native.pairwise_steps(*bad)
    with pytest.raises(TypeError):
        _native.pairwise_steps(*[good[0].astype(np.float32), *good[1:]])
