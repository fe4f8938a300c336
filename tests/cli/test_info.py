"""`maxmargin info`: models of every program, and data."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

from maxmargin import SVC, LinearSVC, save
from maxmargin.cli.main import main
from maxmargin.interchange import write_liblinear_model, write_libsvm_model

X, y = load_iris(return_X_y=True)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("iris.npz", X=X, y=y)
    return tmp_path


def run(capsys, *words, code=0):
    ended = main([*map(str, words)])
    out, err = capsys.readouterr()
    assert ended == code, err
    return out, err


def test_a_model_that_was_trained_here(folder, capsys):
    run(capsys, "train", "iris.npz", "m.maxmargin", "-C", 10)
    facts = dict(line.split("\t", 1) for line in run(capsys, "info", "m.maxmargin")[0].splitlines())
    assert facts["machine"] == "SVC"
    assert facts["classes"] == "3: 0, 1, 2"
    assert "in some machine" in facts["support vectors"]
    assert "in the worst of 3 machines" in facts["duality gap"]
    assert facts["trained on"].startswith("iris.npz: 150 samples, 4 features, in ")
    found = json.loads(run(capsys, "info", "m.maxmargin", "--json")[0])
    assert (found["kind"], found["format"], found["machine"]) == ("model", "maxmargin", "SVC")
    assert found["notes"]["rows"] == 150
    assert found["relative_gap"] < 1e-3


def test_models_from_elsewhere(folder, capsys):
    save(SVC().fit(X, y), "plain.maxmargin")
    write_libsvm_model(SVC().fit(X, y), "m.libsvm")
    write_liblinear_model(LinearSVC().fit(X, y), "m.liblinear")
    for name, format in (("plain.maxmargin", "maxmargin"), ("m.libsvm", "libsvm"), ("m.liblinear", "liblinear")):
        found = json.loads(run(capsys, "info", name, "--json")[0])
        assert (found["kind"], found["format"], found["notes"]) == ("model", format, {})
        assert "trained on" not in run(capsys, "info", name)[0]
    assert "none: the model was not trained" in run(capsys, "info", "m.libsvm")[0]


def test_data(folder, capsys):
    facts = dict(line.split("\t", 1) for line in run(capsys, "info", "iris.npz")[0].splitlines())
    assert facts["samples"] == "150"
    assert facts["classes"] == "0 (50), 1 (50), 2 (50)"
    found = json.loads(run(capsys, "info", "chessboard:50", "--json")[0])
    assert (found["kind"], found["samples"]) == ("data", 50)


def test_mistakes(folder, capsys):
    _, err = run(capsys, "info", "nowhere", code=1)
    assert "there is no file nowhere" in err
    (folder / "cut").write_bytes(b"\x89MXMG\r\n\x1a")
    _, err = run(capsys, "info", "cut", code=1)
    assert "cut off" in err


def test_data_as_wide_as_numbers_go(folder, capsys):
    (folder / "huge.csv").write_text("a,label\n1e308,1\n-1e308,2\n", encoding="utf-8")
    found = json.loads(run(capsys, "info", "huge.csv", "--json")[0])
    assert found["largest_range"] == np.finfo(float).max
