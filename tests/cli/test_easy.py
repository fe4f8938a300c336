"""`maxmargin easy`: the example of LIBSVM's guide, text labels, regression, report, limits."""

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_iris

from cli.terminal import Terminal
from maxmargin import SVC, load
from maxmargin.cli import easy
from maxmargin.cli.main import main
from maxmargin.datasets import dump_libsvm, read_samples


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(rows, seed):
    """Return samples with features of different scales, as in the guide's first example: the small ones matter."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, rows)
    near = np.where(y, 0.5, 1.0) + random.normal(scale=0.12, size=rows)
    angle = random.uniform(0, 2 * np.pi, rows)
    X = np.column_stack([near * np.cos(angle), near * np.sin(angle), random.normal(200, 60, rows)])
    return X * [0.01, 0.01, 1.0], y.astype(float)


@pytest.fixture
def guide(folder):
    dump_libsvm(*measured(300, 0), folder / "train")
    dump_libsvm(*measured(500, 1), folder / "test")
    return folder


def run(capsys, *arguments):
    """Run the command in this process; return its exit code and what it printed."""
    code = main(["easy", *map(str, arguments)])
    return code, *capsys.readouterr()


class TestGuideExample:
    def test_scaling_and_search_improve_the_accuracy(self, guide, capsys):
        (X, y), (new, truth) = measured(300, 0), measured(500, 1)
        unscaled = SVC(gamma="auto").fit(X, y).score(new, truth)
        code, out, err = run(capsys, "train", "test", "--json")
        found = json.loads(out)
        assert code == 0
        assert unscaled < 0.7 < 0.95 < found["test"]["accuracy"]
        assert found["model"]["estimator"] == "SVC"
        assert found["model"]["relative_gap"] < 1e-3
        assert any("scaled to [-1, 1]" in sentence for sentence in found["decisions"])
        assert "2 classes: 0 (" in err

    def test_files_reproduce_the_test_accuracy(self, guide, capsys):
        found = json.loads(run(capsys, "train", "test", "--json", "-o", "mine")[1])
        assert found["files"] == {"model": "mine.maxmargin", "report": "mine.html"}
        samples = read_samples("test")
        assert load("mine.maxmargin").score(samples.dense(), samples.y) == found["test"]["accuracy"]
        for command in ("predict", "evaluate"):
            assert main([command, "test", "mine.maxmargin", "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["accuracy"] == found["test"]["accuracy"]

    def test_report(self, guide, capsys):
        run(capsys, "train", "test")
        page = (guide / "train.html").read_text(encoding="utf-8")
        for words in ("<svg", "duality gap", "Confusion matrix", "the Gaussian kernel is better", "cross-validation",
                      "maxmargin predict NEW train.maxmargin", "Learning curve", "Importance of the columns",
                      "Calibration of probabilities", "Samples that the model is most unsure of"):  # fmt: skip
            assert words in page
        assert not re.search(r'(src|href)="(?!#)', page)  # self-contained
        assert page.count("<svg") == 5

    def test_plain_lines_in_a_pipe(self, guide, capsys):
        code, out, err = run(capsys, "train", "test", "--no-report", "-q")
        assert (code, err) == (0, "")
        facts = dict(line.split("\t") for line in out.splitlines())
        assert facts["tested on"] == "test"
        assert re.fullmatch(r"9\d\.\d\d% \(4\d\d of 500\)", facts["accuracy"])
        assert facts["model"] == "train.maxmargin"
        assert not (guide / "train.html").exists()


class TestOtherData:
    def test_text_labels(self, folder, capsys):
        X, y = load_iris(return_X_y=True)
        names = np.array(["setosa", "versicolor", "virginica"])[y]
        lines = [",".join([*map(str, row), name]) for row, name in zip(X.tolist(), names, strict=True)]
        (folder / "iris.csv").write_text("\n".join(["a,b,c,d,species", *lines, ""]), encoding="utf-8")
        found = json.loads(run(capsys, "iris.csv", "--folds", 3, "--json", "--no-report")[1])
        assert found["cross_validation"]["mean"] > 0.95
        assert found["test"] is None
        model = load("iris.csv.maxmargin")
        assert list(model.classes_) == ["setosa", "versicolor", "virginica"]

    def test_regression(self, folder, capsys):
        code, out, err = run(capsys, "sinc:150", "sinc:200,seed=5", "--folds", 3, "--json", "-o", "sinc")
        found = json.loads(out)
        assert code == 0
        assert found["model"]["estimator"] in ("SVR", "NuSVR", "LSSVR")
        assert found["test"]["r2"] > 0.8
        assert "regression of targets" in err
        assert "<svg" in (folder / "sinc.html").read_text(encoding="utf-8")

    def test_sparse_data_stay_sparse(self, folder, capsys):
        random = np.random.default_rng(0)
        y = random.integers(0, 2, 120).astype(float)
        X = np.where(random.random((120, 60)) < 0.05, random.uniform(0, 9, (120, 60)), 0.0)
        X[np.arange(120), y.astype(int)] = 5.0
        dump_libsvm(X, y, "train")
        dump_libsvm(X[:50, :40], y[:50], "fewer")  # zeros at the end are not in the file
        found = json.loads(run(capsys, "train", "fewer", "--json", "--no-report")[1])
        assert any("which keeps zeros" in sentence for sentence in found["decisions"])
        assert found["test"]["samples"] == 50

    def test_imbalanced_classes_are_reported(self, capsys):
        random = np.random.default_rng(0)
        X = random.normal(size=(200, 2))
        np.savez("rare.npz", X=X, y=(np.arange(200) < 6).astype(float))
        _, _, err = run(capsys, "rare.npz", "--no-report", "--folds", 2)
        assert "class 1 has only 3.0% of the samples" in err
        assert "balanced_accuracy on held-out samples: with class weights" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no file nowhere"),
        (["chessboard:50", "twonorm:50"], "has 20 features, but"),
        (["chessboard:50", "--max-seconds", "0"], "--max-seconds must be a number above 0"),
        (["chessboard:50", "--max-seconds", "nan"], "--max-seconds must be a number above 0, not nan"),
        (["chessboard:50", "--max-seconds", "inf"], "--max-seconds must be a number above 0, not inf"),
        (["chessboard:50", "-o", "no/folder/name"], "there is no folder"),
        (["words.csv", "--task", "regression"], "the labels are text"),
        (["one.csv"], "all 3 samples are of class"),
    ],
)
def test_errors(arguments, message, folder, capsys):
    (folder / "words.csv").write_text("x,label\n1,a\n2,b\n3,a\n", encoding="utf-8")
    (folder / "one.csv").write_text("x,label\n1,a\n2,a\n3,a\n", encoding="utf-8")
    code, out, err = run(capsys, *arguments, "-q", "--no-report")
    assert (code, out) == (1, "")
    assert message in err
    assert not list(folder.glob("*.maxmargin"))


def test_short_time_limit_still_gives_a_model(capsys, folder):
    code, out, _ = run(capsys, "chessboard:3000", "--max-seconds", 0.01, "--json", "--no-report")
    found = json.loads(out)
    assert code in (0, 3)
    assert found["cross_validation"] is None or found["cross_validation"]["mean"] > 0
    assert "too short" in found["decisions"][-1]
    assert load("chessboard:3000.maxmargin").predict([[0.5, 0.5]]).shape == (1,)


@pytest.mark.parametrize("moment", ["_train", "_write"])
def test_ctrl_c_after_the_model_selection_says_how_to_resume(moment, monkeypatch, folder, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(easy, moment, interrupt)
        code, out, err = run(capsys, "chessboard:60", "--no-report", "--folds", 2, "--json")
    assert code == 130
    assert "to resume:  maxmargin easy chessboard:60 --no-report --folds 2 --json --resume" in err
    kept = json.loads(out)["journals"]
    assert kept == ["chessboard:60.linear.jsonl", "chessboard:60.kernel.jsonl"]
    code, out, _ = run(capsys, "chessboard:60", "--no-report", "--folds", 2, "--resume")
    assert code == 0
    assert not list(folder.glob("*.jsonl"))


def test_ctrl_c_before_the_model_selection(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(easy.data, "read_data", interrupt)
    code, out, err = run(capsys, "chessboard:60", "--no-report")
    assert (code, out, err) == (130, "", "interrupted\n")


def test_ctrl_c_on_a_terminal(guide):
    terminal = Terminal("easy", "chessboard:2500", "--no-report")
    terminal.read(until=r"of \d+ trials")
    terminal.press(b"\x03")
    written = terminal.read()
    assert terminal.code() == 130
    assert "interrupted; the best estimator so far:" in written
    assert not list(guide.glob("*.maxmargin"))
