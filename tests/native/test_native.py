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
    for program in ("native_tests", "text_tests"):
        result = subprocess.run([tmp_path / program], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "passed" in result.stdout


def test_levels_give_the_same_answer():
    program = (
        "import sys, numpy as np; from maxmargin import SVC, _native; from maxmargin.datasets import chessboard;"
        "X, y = chessboard(3000, noise=0.05); m = SVC(C=10, gamma=1.0).fit(X, y);"
        "n = SVC(C=10, gamma=1.0, n_jobs=1).fit(X, y); assert (m.dual_coef_ == n.dual_coef_).all();"
        "Z = np.tile(X[:300], 40); k = SVC(kernel='laplacian', gamma=0.01).fit(Z, y[:300]);"
        "assert m.certificate_.violation <= 1e-3 and k.certificate_.violation <= 1e-3;"
        "sys.stdout.buffer.write(m.decision_function(X).tobytes() + k.decision_function(Z).tobytes());"
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
        results[run.stderr.decode().strip()] = np.frombuffer(run.stdout)
    for result in results.values():
        np.testing.assert_allclose(result, results[_native.level], atol=1e-2)
    assert _native.level in results


def test_blocks_check_their_arguments():
    X, picks = np.ones((4, 3)), np.array([0, 1])
    values, norms = np.empty(48 * 3), np.empty(48)
    with pytest.raises(ValueError, match="out of range"):
        _native.pack(X, np.array([0, 5]), 4, np.empty(0), values, norms, 1)
    with pytest.raises(ValueError, match="more room"):
        _native.pack(X, picks, 4, np.empty(0), np.empty(2), norms, 1)
    with pytest.raises(ValueError, match="unknown kernel formula"):
        _native.dense_block(9, 0, 0.0, 0.0, 0, values, norms, values, norms, 2, 3, np.empty((2, 2)), picks, 1)
    with pytest.raises(ValueError, match="too short"):
        _native.dense_block(0, 0, 0.0, 0.0, 0, values, norms, values, norms, 2, 3, np.empty((2, 1)), picks, 1)
    with pytest.raises(ValueError, match="out of range"):
        _native.dense_block(0, 0, 0.0, 0.0, 0, values, norms, values, norms, 2, 3, np.empty((1, 2)), picks, 1)
    starts, features = np.array([0, 1, 2]), np.array([0, 7], dtype=np.int32)
    with pytest.raises(ValueError, match="feature index"):
        _native.sparse_alone(0, starts, features, np.ones(2), picks, 3, np.empty(2))
    with pytest.raises(ValueError, match="malformed"):
        _native.sparse_alone(0, np.array([0, 9, 2]), features, np.ones(2), picks, 8, np.empty(2))
    with pytest.raises(ValueError, match="one change"):
        _native.subtract_rows(np.zeros(2), np.zeros((2, 2), np.float32), picks, np.ones(3), 2, 1)
    with pytest.raises(ValueError, match="wrong shape"):
        _native.mirror(np.zeros((2, 3), np.float32), 1, 2, 1)
    with pytest.raises(ValueError, match="wrong shape"):
        _native.mirror(np.zeros((2, 2), np.float32), 3, 3, 1)


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


def test_text_loops_check_their_arguments():
    text = np.frombuffer(b"1 1:2\n" + b"\n" * _native.text_margin, np.uint8)
    chunks, floats, longs = np.zeros((4, 3), np.int64), np.zeros(4), np.zeros(4, np.int64)
    assert _native.count_text(text, 6, chunks, 1) == 1
    assert chunks[0].tolist() == [6, 1, 1]
    good = [
        text,
        6,
        chunks[:1],
        1,
        True,
        9,
        False,
        floats,
        longs,
        longs[:0],
        np.zeros(4, np.int32),
        np.zeros(4),
        0,
        0,
        1,
    ]
    assert _native.read_text(*good)[:4] == (0, -1, 1, 1)
    for position, value in (
        (0, text[:-1]),
        (1, 5),
        (1, -1),
        (2, chunks[:, :2].copy()),
        (2, np.array([[9, 1, 1]])),
        (2, np.array([[3, 1, 1]])),
        (2, np.array([[6, 1, -1]])),
        (2, np.array([[6, 9, 1]])),
        (2, np.array([[6, 1, 9]])),
        (3, 2),
        (12, 4),
        (13, 4),
    ):
        bad = list(good)
        bad[position] = value
        with pytest.raises(ValueError, match=r"text|malformed|room"):
            _native.read_text(*bad)
    short = list(good)
    short[2] = np.array([[6, 0, 0]])  # counted wrongly: nothing is written where there is no room
    assert _native.read_text(*short)[0] == 1
    with pytest.raises(ValueError, match="out of range"):
        _native.odd_lines(text, 6, 7, False, False, False, longs)
    rows = [np.ones(1), np.array([0, 1]), np.zeros(1, np.int32), np.full(1, 0.5), longs[:0], 1, 17, 1]
    assert _native.write_text(*rows) == b"1 1:0.5\n"
    for position, value in ((0, floats), (1, np.array([0, 2])), (1, np.array([1, 0])), (5, 2), (6, 18), (4, longs)):
        bad = list(rows)
        bad[position] = value
        with pytest.raises(ValueError, match=r"malformed|ascend"):
            _native.write_text(*bad)


def test_shuffling_is_even_and_depends_on_the_seed_alone():
    """Every order of three comes up equally often, to within five standard deviations."""
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(6000):
        order = np.arange(3)
        _native.shuffle(order, seed)
        counts[tuple(order)] = counts.get(tuple(order), 0) + 1
    assert len(counts) == 6
    assert all(abs(count - 1000) < 5 * np.sqrt(6000 * 5 / 36) for count in counts.values())
    first, second = np.arange(100), np.arange(100)
    _native.shuffle(first, 2**63 - 1)
    _native.shuffle(second, 2**63 - 1)
    assert np.array_equal(first, second)
    assert np.array_equal(np.sort(first), np.arange(100))
    _native.shuffle(np.arange(0), 1)
