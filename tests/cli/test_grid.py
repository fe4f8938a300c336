"""`maxmargin grid`: tables and heat maps, limits and Ctrl-C, resuming from the journal, error messages."""

import json
import re
import signal
import subprocess
import time

import numpy as np
import pytest

from cli.terminal import COMMAND, ENVIRONMENT, Terminal
from maxmargin import SVC, grid_search
from maxmargin.cli.main import main
from maxmargin.datasets import chessboard
from maxmargin.search import grid as search_grid

GRID = ["--Cs", "1:100:10", "--gammas", "0.1,1"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def slow(folder):
    """Random labels, on which large values of C train slowly."""
    random = np.random.default_rng(0)
    np.savez(folder / "noise.npz", X=random.normal(size=(1500, 4)), y=random.integers(0, 2, 1500))
    return ["noise.npz", "--Cs", "1,10,1e7", "--gammas", "1e-3,1e-2", "--tol", "1e-11"]


def run(capsys, *arguments):
    """Run the command in this process; return its exit code and what it printed."""
    code = main(["grid", *map(str, arguments)])
    return code, *capsys.readouterr()


class TestResults:
    def test_table_in_a_pipe(self, capsys, folder):
        code, out, err = run(capsys, "chessboard:200", *GRID)
        assert code == 0
        lines = [line.split("\t") for line in out.splitlines()]
        assert lines[0] == ["C", "gamma", "accuracy", "std", "seconds"]
        assert {(float(line[0]), float(line[1])) for line in lines[1:]} == {
            (c, g) for c in (1, 10, 100) for g in (0.1, 1)
        }
        scores = [float(line[2]) for line in lines[1:]]
        assert scores == sorted(scores, reverse=True)
        X, y = chessboard(200, seed=0)
        found = grid_search(X, y.astype(float), SVC(), Cs=[1, 10, 100], gammas=[0.1, 1])
        assert scores == [score.mean for score in found.scores]
        assert "2 classes" in err
        assert not list(folder.iterdir())  # the journal of a complete search is deleted

    def test_json_and_options(self, capsys, folder):
        code, out, _ = run(
            capsys, "chessboard:200", *GRID, "--refine", 1, "--folds", 3, "--score", "balanced_accuracy", "--json",
            "--journal", "kept.jsonl", "--seed", 7, "--threads", 1, "--class-weight", "balanced", "-q",
        )  # fmt: skip
        found = json.loads(out)
        assert code == 0
        assert (found["status"], found["scoring"], found["folds"], found["unfinished"]) == (
            "complete", "balanced_accuracy", 3, 0,
        )  # fmt: skip
        assert found["best"] == found["points"][0]
        assert len(found["points"]) > 6
        journal = [json.loads(line) for line in (folder / "kept.jsonl").read_text().splitlines()]
        assert journal[0]["parameters"]["class_weight"] == "'balanced'"
        assert journal[0]["seed"] == 7
        assert len(journal) == 1 + 3 * len(found["points"])

    def test_points_that_cannot_win_are_dropped(self, capsys):
        arguments = "chessboard:300", "--Cs", "0.01,1,100", "--gammas", "0.001,1,10", "--threads", 1
        code, out, err = run(capsys, *arguments, "--json", "--prune")
        found, whole = json.loads(out), json.loads(run(capsys, *arguments, "--json")[1])
        assert code == 0
        assert found["pruned"] > 0
        assert found["unfinished"] == whole["pruned"] == 0
        assert len(found["points"]) + found["pruned"] == 9
        assert [found["best"][name] for name in ("C", "gamma", "mean")] == [
            whole["best"][name] for name in ("C", "gamma", "mean")
        ]
        assert f"{found['pruned']} points were dropped" in err
        assert run(capsys, *arguments, "--prune", "--score", "positive_likelihood_ratio")[0] == 1

    def test_epsilon_and_nu(self, capsys):
        options = ["--estimator", "svr", "--Cs", "1", "--gammas", "1", "--epsilons", "0,0.1,0.2", "--folds", 3]
        code, out, _ = run(capsys, "chessboard:100", *options)
        lines = [line.split("\t") for line in out.splitlines()]
        assert code == 0
        assert lines[0] == ["C", "gamma", "epsilon", "r2", "std", "seconds"]
        assert {float(line[2]) for line in lines[1:]} == {0, 0.1, 0.2}
        options = ["--estimator", "nu-svc", "--nus", "0.1:0.4:2", "--gammas", "1", "--folds", 3, "--json"]
        points = json.loads(run(capsys, "chessboard:100", *options)[1])["points"]
        assert {(point["C"], point["gamma"], point["nu"]) for point in points} == {
            (None, 1, nu) for nu in (0.1, 0.2, 0.4)
        }
        for arguments, message in (
            (["--nus", "0.1"], "SVC has no parameter nu, so nus must be None"),
            (["--estimator", "nu-svc"], "NuSVC has no parameter C to search: give nus"),
            (["--estimator", "svr", "--epsilons", "1", "--epsilon", "1"], "either --epsilons or --epsilon, not both"),
        ):
            code, _, err = run(capsys, "chessboard:100", *arguments)
            assert code != 0
            assert message in err

    def test_single_value_of_an_axis(self, capsys):
        points = json.loads(run(capsys, "chessboard:100", "-C", 5, "--gammas", "1,2", "--json")[1])["points"]
        assert {(point["C"], point["gamma"]) for point in points} == {(5, 1), (5, 2)}
        points = json.loads(run(capsys, "chessboard:100", "--Cs", "5,6", "-g", "auto", "--json")[1])["points"]
        assert {(point["C"], point["gamma"]) for point in points} == {(5, None), (6, None)}
        points = json.loads(run(capsys, "chessboard:100", "--Cs", "2^-1:2:2", "--kernel", "linear", "--json")[1])[
            "points"
        ]
        assert {(point["C"], point["gamma"]) for point in points} == {(0.5, None), (1, None), (2, None)}

    def test_estimators(self, capsys):
        for estimator in ("linear-svc", "ls-svc"):
            assert json.loads(run(capsys, "chessboard:100", "--estimator", estimator, "--Cs", "1,2", "--json")[1])[
                "best"
            ]
        found = json.loads(run(capsys, "sinc:100", "--Cs", "1,10", "--gammas", "1", "--json")[1])
        assert found["scoring"] == "r2"

    @pytest.mark.parametrize("name", ["map.png", "map.svg", "line.png"])
    def test_plots(self, name, capsys, folder):
        kernel = ["--kernel", "linear", "--Cs", "1:100:10"] if name.startswith("line") else GRID
        assert run(capsys, "chessboard:100", *kernel, "--plot", name)[0] == 0
        content = (folder / name).read_bytes()
        assert content.startswith(b"\x89PNG" if name.endswith("png") else b"<?xml")
        assert len(content) > 5000

    def test_best_point_at_an_edge_is_reported(self, capsys):
        _, _, err = run(capsys, "chessboard:200", "--Cs", "1e-6,1e-5", "--gammas", "1")
        assert "the best point has the smallest C of the grid: a wider range may contain a better one" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.txt"], 1, "there is no file nowhere.txt"),
        (["chessboard:50", "--Cs", "1,2", "-C", "3"], 1, "give either --Cs or -C, not both"),
        (["chessboard:50", "--Cs", "1:2:3:4"], 2, "too many parts"),
        (["chessboard:50", "--Cs", "4:1"], 2, "a range must ascend"),
        (["chessboard:50", "--gammas", "wide"], 2, "'wide' is not a range"),
        (["chessboard:50", "--gammas", "1", "--kernel", "linear"], 1, "kernels that have a gamma"),
        (["chessboard:50", "--folds", "1"], 1, "folds"),
        (["chessboard:50", "--score", "best"], 1, "'best'"),
        (["chessboard:50", "--plot", "a.jpeg"], 1, ".png, .svg or .pdf"),
        (["chessboard:50", "--plot", "no/a.png"], 1, "there is no folder no"),
        (["chessboard:50", "--estimator", "one-class"], 1, "has no parameter C"),
        (["chessboard:50", "--journal", "no/a.jsonl"], 1, "no/a.jsonl"),
        (["chessboard:50", "--memory", "inf"], 1, "--memory must be a number above 0, not inf"),
        (["chessboard:50", "--memory", "nan"], 1, "--memory must be a number above 0, not nan"),
    ],
)
def test_errors(arguments, code, message, capsys):
    if code == 2:
        with pytest.raises(SystemExit, match="2"):
            main(["grid", *arguments])
        assert message in capsys.readouterr().err
        return
    found, out, err = run(capsys, *arguments, "-q")
    assert (found, out) == (1, "")
    assert message in err.replace("\n", " ")


def test_time_limit_and_resume(slow, capsys, folder):
    code, _, err = run(capsys, *slow, "--max-seconds", 3)
    assert code == 3
    assert "points are not finished" in err
    assert "to resume:  maxmargin grid noise.npz" in err
    assert err.rstrip().endswith("--resume")
    assert (folder / "noise.npz.grid.jsonl").exists()
    code, _, err = run(capsys, *slow)
    assert code == 1
    assert "noise.npz.grid.jsonl is the journal of an earlier search" in err
    before = len((folder / "noise.npz.grid.jsonl").read_text().splitlines())
    code, _, _ = run(capsys, *slow[:1], "--Cs", "1", *slow[3:], "--resume", "--journal", "noise.npz.grid.jsonl")
    assert code == 0
    assert len((folder / "noise.npz.grid.jsonl").read_text().splitlines()) >= before > 1


def test_journal_after_kill(slow, capsys, folder):
    journal = folder / "noise.npz.grid.jsonl"
    process = subprocess.Popen([*COMMAND, "grid", *slow], stderr=subprocess.DEVNULL, env=ENVIRONMENT, cwd=folder)
    deadline = time.monotonic() + 60
    while not journal.exists() or len(journal.read_bytes().splitlines()) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    known = journal.read_bytes().splitlines()[:4]
    code, out, _ = run(capsys, *slow[:1], "--Cs", "1,10", *slow[3:], "--resume", "--journal", journal.name)
    assert code == 0
    assert len(out.splitlines()) == 1 + 4
    assert journal.read_bytes().splitlines()[:4] == known


def test_ctrl_c_between_two_rounds_says_how_to_resume(monkeypatch, capsys, folder):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(search_grid, "neighbours", interrupt)
        code, _, err = run(capsys, "chessboard:200", *GRID, "--refine", 1)
    assert code == 130
    assert "to resume:  maxmargin grid chessboard:200" in err
    code, out, _ = run(capsys, "chessboard:200", *GRID, "--refine", 1, "--resume")
    assert code == 0
    assert len(out.splitlines()) > 1 + 6  # with the points of the refinement
    assert not list(folder.iterdir())


class TestTerminal:
    def test_live_map_and_final_map(self):
        terminal = Terminal("grid", "chessboard:300", "--Cs", "2^-5:2^15:4", "--gammas", "2^-7:2^3:4")
        terminal.read()
        written = terminal.written
        assert terminal.code() == 0
        assert re.search(r"\d+ of 330 trials", written)  # while it ran
        assert "\x1b[48;2;" in written or "\x1b[38;2;" in written or ";48;5;" in written  # colours
        last = written[written.rindex("gamma") :]
        assert re.search(r"accuracy +\d\d\.\d\d % ± \d", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written))
        assert "trials in" in last or "trials in" in written

    def test_ctrl_c_prints_the_best_point_and_how_to_resume(self, slow, folder):
        terminal = Terminal("grid", *slow)
        terminal.read(until=r"best so far: C = 1")
        terminal.press(b"\x03")
        written = terminal.read()
        assert terminal.code() == 130
        assert "interrupted:" in written
        assert "to resume:" in written
        assert re.search(r"C +1", written)
        assert len((folder / "noise.npz.grid.jsonl").read_text().splitlines()) > 5
