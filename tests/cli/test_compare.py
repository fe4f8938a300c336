"""`maxmargin compare`: data formats, forms of the result, error messages, terminal output and Ctrl-C."""

import json

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from cli.terminal import Terminal, call, plain
from maxmargin.cli import data
from maxmargin.cli.main import main
from maxmargin.datasets import chessboard


def three_classes():
    X, y = chessboard(90, seed=3)
    return X, y + (X[:, 0] > 3)


@pytest.fixture
def folder(tmp_path):
    X, y = chessboard(60)
    np.savez(tmp_path / "board.npz", X=X, y=y)
    dump_svmlight_file(X, y, str(tmp_path / "board.txt"))
    lines = [f"{a!r},{b!r},{'black' if label else 'white'}" for (a, b), label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "board.csv").write_text("\n".join(["left,up,colour", *lines, ""]), encoding="utf-8")
    first = [f"{label}\t{a!r}\t{b!r}" for (a, b), label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "board.tsv").write_text("\n".join(first), encoding="utf-8")
    X, y = three_classes()
    np.savez(tmp_path / "three.npz", X=X, y=y)
    return tmp_path


def run(capsys, *arguments):
    """Run the command in this process; return its exit code and what it printed."""
    code = main(["compare", *map(str, arguments)])
    return code, *capsys.readouterr()


def compare_json(capsys, *arguments):
    code, out, err = run(capsys, *arguments, "--json", "--threads", 1)
    assert (code, err) == (0, "")
    return json.loads(out)


class TestData:
    def test_optimum_does_not_depend_on_the_file_format(self, folder, capsys):
        options = ["-C", 10, "-g", 1, "--solvers", "pairwise", "--tol", "1e-8"]
        names = ("board.npz", "board.txt", "board.csv")
        found = [compare_json(capsys, folder / name, *options)["runs"][0]["dual"] for name in names]
        found.append(compare_json(capsys, folder / "board.tsv", *options, "--label", "first")["runs"][0]["dual"])
        found.append(compare_json(capsys, "chessboard", "--samples", 60, *options)["runs"][0]["dual"])
        np.testing.assert_allclose(found, found[0], rtol=1e-6)

    def test_random_subset_of_a_file(self, folder, capsys):
        drawn = [compare_json(capsys, folder / "board.npz", "--samples", 30, "--seed", seed) for seed in (0, 0, 1)]
        assert [found["problem"]["variables"] for found in drawn] == [30] * 3
        values = [found["runs"][0]["dual"] for found in drawn]
        assert values[0] == values[1] != values[2]
        assert compare_json(capsys, folder / "board.npz", "--samples", 1000)["problem"]["variables"] == 60

    def test_one_vs_rest(self, folder, capsys):
        found = compare_json(capsys, folder / "three.npz", "--positive", "2")
        assert found["runs"][0]["status"] == "converged"
        assert found["problem"]["variables"] == 90

    def test_labels_of_any_type(self):
        assert list(data.two_classes(np.array(["a", "b", "c"]), "b")) == [False, True, False]
        assert list(data.two_classes(np.array([1.0, 2.0, 1.0]), None)) == [1.0, 2.0, 1.0]
        assert list(data.two_classes(np.array([0.5, 1.0]), "0.5")) == [True, False]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "the file is empty"),
            ("a,b\n", "no samples below it"),
            ("1\n2\n", "no feature column is left"),
            ("1,2,a\n1,x,b\n", "line 2: 'x' in column '2' is not a number"),
            ("1,2,a\n1,b\n", "line 2: 2 values, but the first line has 3"),
            ("1,2,a\n1,nan,b\n", "line 2: the value of column '2' is missing"),
        ],
    )
    def test_bad_columns(self, content, message, tmp_path, capsys):
        (tmp_path / "bad.csv").write_text(content, encoding="utf-8")
        code, out, err = run(capsys, tmp_path / "bad.csv")
        assert (code, out) == (1, "")
        assert message in err

    def test_bad_arrays(self, tmp_path, capsys):
        np.savez(tmp_path / "a.npz", X=np.eye(3), labels=np.ones(3))
        np.savez(tmp_path / "b.npz", X=np.eye(3), y=np.ones(2))
        (tmp_path / "c.npz").write_bytes(b"no archive")
        np.savez(tmp_path / "d.npz", X=np.eye(3), y=np.array([{}, {}, {}], dtype=object))
        for name, message in (("a", "there are no labels"), ("b", "one entry per sample"), ("c", "not a valid archive"),
                              ("d", "not a valid archive")):  # fmt: skip
            code, _, err = run(capsys, tmp_path / f"{name}.npz")
            assert code == 1
            assert message in err
            assert len(err.strip().splitlines()) == 1


class TestResults:
    def test_plain_table_without_a_terminal(self, capsys):
        code, out, err = run(capsys, "chessboard", "--samples", 80, "-C", 10, "-g", 1)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[0].split() == [
            *("solver", "status", "seconds", "iterations"),
            *("kernel", "evals", "gap", "violation", "support", "vectors"),
        ]
        assert [line.split()[:2] for line in lines[1:]] == [["pairwise", "converged"], ["block", "converged"]]
        assert "\x1b" not in out

    def test_solvers_by_name(self, capsys):
        code, out, _ = run(capsys, "chessboard", "--samples", 50, "--solvers", "block, linear ,")
        assert code == 0
        assert [line.split()[1] for line in out.splitlines()[1:3]] == ["converged", "failed"]
        assert "linear: solver='linear'" in out
        names = {found["solver"] for found in compare_json(capsys, "chessboard", "--samples", 40, "--solvers", "all",
                                                     "--kernel", "linear", "--max-iter", 50)["runs"]}  # fmt: skip
        assert {"pairwise", "linear", "subgradient"} <= names

    def test_options_of_the_estimator(self, capsys):
        found = compare_json(
            capsys, "chessboard", "--samples", 50, "--kernel", "poly", "--degree", 2, "--coef0", 1, "--gamma", "auto",
            "-C", 2, "--tol", "1e-5", "--gap", 3, "--max-seconds", 9, "--max-iter", 70, "--cache-size", 1,
        )  # fmt: skip
        assert found["problem"]["kernel"] == "Polynomial(degree=2, gamma=0.5, coef0=1.0)"
        assert "C=2.0" in found["problem"]["estimator"]
        assert found["stopping"] == {
            "violation": 1e-5, "gap": 3.0, "max_iterations": 70, "max_seconds": 9.0, "relative_gap": None,
        }  # fmt: skip

    def test_page_and_plot(self, tmp_path, capsys):
        page, image = tmp_path / "page.html", tmp_path / "plot.png"
        code, out, err = run(capsys, "chessboard", "--samples", 80, "--html", page, "--plot", image)
        assert (code, err) == (0, "")
        assert out.startswith("solver")
        assert "gap over time" in page.read_text(encoding="utf-8")
        assert image.read_bytes().startswith(b"\x89PNG")
        assert image.stat().st_size > 20_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt"], "there is no file nowhere.txt, and the generators are bananas, chessboard, documents"),
        (["chessboard", "--solvers", "smo"], "unknown solver 'smo'; choose from pairwise, block"),
        (["chessboard", "--solvers", ","], "at least one solver"),
        (["chessboard", "--kernel", "rfb"], "unknown kernel 'rfb'"),
        (["chessboard", "-C", "0"], "C must be a number above 0"),
        (["chessboard", "-g", "wide"], "gamma must be"),
        (["chessboard", "--samples", "0"], "at least one sample"),
        (["chessboard", "--tol", "0"], "above 0"),
        (["chessboard", "--threads", "0"], "--threads must not be 0"),
        (["chessboard", "--html", "no/such/folder/page.html"], "there is no folder no/such/folder"),
        (["chessboard", "--positive", "7"], "there is no label 7; the labels are 0, 1"),
        (["three.npz"], "3 classes (0, 1, 2): choose one with --positive LABEL"),
        (["fractions.npz"], "compare is for classification"),
        (["board.npz", "--samples", "1"], "--samples must be at least 2"),
        (["notes.txt"], "neither LIBSVM format"),
    ],
)
def test_errors_are_one_line(arguments, message, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    np.savez("fractions.npz", X=np.eye(3), y=np.array([0.1, 0.2, 0.3]))
    (folder / "notes.txt").write_text("some words\n", encoding="utf-8")
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


@pytest.fixture
def slow(tmp_path):
    """Random labels, on which pair steps converge slowly."""
    random = np.random.default_rng(0)
    np.savez(tmp_path / "noise.npz", X=random.normal(size=(3000, 4)), y=random.integers(0, 2, 3000))
    return tmp_path / "noise.npz"


def test_live_table_on_a_terminal():
    terminal = Terminal(
        "compare", "chessboard", "--samples", 300, "-C", 100, "-g", 1, "--solvers", "pairwise,block,linear"
    )
    terminal.read()
    written = terminal.written
    assert terminal.code() == 0
    for words in ("waiting", "running"):
        assert words in written  # while it ran
    assert "\x1b[1A" in written  # and was redrawn
    last = plain(written[written.rindex("solver ") :])
    assert [line.split()[:2] for line in last.splitlines()[1:4]] == [
        ["pairwise", "converged"],
        ["block", "converged"],
        ["linear", "failed"],
    ]
    assert "running" not in last


def test_ctrl_c_keeps_the_runs_so_far(slow):
    terminal = Terminal(
        "compare", slow, "-C", "1e6", "-g", "5", "--tol", "1e-12", "--solvers", "linear,pairwise,block", columns=80
    )
    terminal.read(until=r"running.*\d+\.\d{3} ")
    terminal.press(b"\x03")
    terminal.read()
    written = terminal.written
    assert terminal.code() == 130
    last = plain(written[written.rindex("solver ") :])
    assert [line.split()[:2] for line in last.splitlines()[1:4]] == [
        ["linear", "failed"],
        ["pairwise", "interrupted"],
        ["block", "not"],
    ]
    assert "Traceback" not in written


def test_only_json_without_a_terminal():
    done = call("compare", "chessboard", "--samples", "50", "--json")
    assert json.loads(done.stdout)["runs"][0]["status"] == "converged"
    assert done.stderr == ""
