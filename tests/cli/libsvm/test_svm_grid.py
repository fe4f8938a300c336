"""`maxmargin svm-grid` beside LIBSVM's grid.py: the same points in the same order with the same rates."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin
from maxmargin.cli.libsvm.grid_order import Range, centre_first, grid_order
from maxmargin.datasets import chessboard, dump_libsvm
from reference.libsvm_programs import ours, real, write_data


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@given(st.integers(1, 12), st.integers(1, 12), st.sampled_from([1.0, -2.0]), st.sampled_from([0.5, -1.0]))
def test_every_point_is_visited_once(costs, gammas, cost_step, gamma_step):
    c = Range(3.0, 3.0 + cost_step * (costs - 1), cost_step)
    g = Range(-1.0, -1.0 + gamma_step * (gammas - 1), gamma_step)
    assert len(c.values()) == costs
    points = list(grid_order(c, g))
    assert sorted(points) == sorted(itertools.product(c.values(), g.values()))


def test_centre_first():
    assert centre_first([1, 2, 3, 4, 5, 6, 7]) == [4, 2, 6, 1, 5, 3, 7]


@pytest.mark.parametrize(
    "options",
    ["-log2c -1,3,2 -log2g -3,1,1", "-log2c -1,7,2 -log2g null", "-log2g 1,-5,-2 -log2c null -v 3",
     "-v 3 -log2c 0,2,2 -log2g 0,-2,-2 -t 1 -r 1", "-log2c 0,1,1 -log2g 0,-1,-1 -s 1 -n 0.2 -out null"],
)  # fmt: skip
def test_output_equals_that_of_grid_py(options, folder, capsys):
    words = ["-svmtrain", "/usr/bin/svm-train", "-gnuplot", "null", *options.split(), "iris"]
    theirs = real("svm-grid", *words, folder=folder)
    out = folder / "iris.out"
    their_file = out.read_text() if out.exists() else None
    out.unlink(missing_ok=True)
    assert ours(capsys, "svm-grid", *words) == theirs
    assert (out.read_text() if out.exists() else None) == their_file


def test_plot_and_resume(folder, capsys):
    words = ["-log2c", "0,2,1", "-log2g", "0,-2,-1", "-v", "3", "-out", "rates"]
    code, out, err = ours(capsys, "svm-grid", *words, "-png", "map.png", "iris")
    assert (code, err) == (0, "")
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")
    lines = (folder / "rates").read_text().splitlines(keepends=True)
    assert len(lines) == 9
    (folder / "rates").write_text("".join(lines[:4]) + "log2c=1 ra")  # the last line was cut
    code, again, err = ours(capsys, "svm-grid", *words, "-gnuplot", "null", "-resume", "rates", "iris")
    assert (code, err) == (0, "")
    assert again.splitlines()[-1] == out.splitlines()[-1]
    assert [line.split()[0] for line in again.splitlines()[:-1]] == ["[resumed]"] * 4 + ["[local]"] * 5
    assert (folder / "rates").read_text().splitlines()[5:] == [line.strip() for line in lines[4:]]


def test_regression_selects_the_smallest_error(folder, capsys):
    words = ["-gnuplot", "null", "-s", 3, "-log2c", "-3,3,3", "-log2g", "-5,-1,2"]
    _, out, _ = ours(capsys, "svm-grid", *words, "targets")
    errors = [float(line.split()[3]) for line in out.splitlines()[:-1]]
    assert float(out.split()[-1]) == min(errors)


@pytest.mark.parametrize("options", ["-c 1", "-g 1", "-log2c null -log2g null", "-resume nothing", "data"])
def test_errors_equal_those_of_grid_py(options, folder, capsys):
    words = ["-svmtrain", "/usr/bin/svm-train", *options.split(), *([] if options == "data" else ["iris"])]
    code, out, err = real("svm-grid", *words, folder=folder)
    own_code, own_out, own_err = ours(capsys, "svm-grid", *words)
    assert (own_code, own_out) == (code, out)
    assert own_err.splitlines()[0] == err.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [("-log2c 1", "a range is begin,end,step or null, not 1"), ("-log2c 1,2,0", "a range needs a step"),
     ("-log2c 0,1e9,1", "a range needs a step"), ("-log2c 3,1,1", "a range needs"),
     ("-log2c 0,5000,100", "2 to the power of"),
     ("-v 1", "n-fold cross validation: n must >= 2"),
     ("-x 1", "Unknown option: -x"), ("-log2g", "-log2g needs a value"), ("stray", "stray is not an option"),
     ("-t 9", "ERROR: unknown kernel type"), ("-out no/where", "can't open output file no/where")],
)  # fmt: skip
def test_other_errors(options, message, folder, capsys):
    code, _, err = ours(capsys, "svm-grid", "-gnuplot", "null", *options.split(), "iris")
    assert code == 1
    assert err.startswith(message)


def test_ctrl_c_keeps_the_output_so_far(folder):
    X, y = chessboard(3000, seed=0)
    dump_libsvm(X, y, folder / "many")
    command = [sys.executable, "-c", "import sys; from maxmargin.cli.main import main; sys.exit(main())", "svm-grid"]
    words = [*command, "-gnuplot", "null", "-log2c", "0,14,1", "-log2g", "-2,3,1", "many"]
    here = {**os.environ, "PYTHONPATH": str(Path(maxmargin.__file__).parents[1])}
    with subprocess.Popen(
        words, cwd=folder, env=here, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        first = run.stdout.readline()
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
    assert first.startswith("[local] 7.0 ")
    assert (run.returncode, err) == (130, "interrupted\n")
    assert 1 <= len((folder / "many.out").read_text().splitlines()) < 80


def test_usage(folder, capsys):
    code, out, _ = ours(capsys, "svm-grid")
    assert code == 1
    assert out.startswith("Usage: svm-grid [grid_options] [svm_options] dataset\n")
