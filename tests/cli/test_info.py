"""`maxmargin info`: models of all formats, and data."""

import json

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from sklearn.datasets import load_iris

from cli.terminal import Terminal
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
    exit_code = main([*map(str, words)])
    out, err = capsys.readouterr()
    assert exit_code == code, err
    return out, err


def test_model_trained_by_maxmargin(folder, capsys):
    run(capsys, "train", "iris.npz", "m.maxmargin", "-C", 10)
    facts = dict(line.split("\t", 1) for line in run(capsys, "info", "m.maxmargin")[0].splitlines())
    assert facts["estimator"] == "SVC"
    assert facts["classes"] == "3: 0, 1, 2"
    assert "in any problem" in facts["support vectors"]
    assert "worst of 3 problems" in facts["duality gap"]
    assert facts["trained on"].startswith("iris.npz: 150 samples, 4 features, in ")
    found = json.loads(run(capsys, "info", "m.maxmargin", "--json")[0])
    assert (found["kind"], found["format"], found["estimator"]) == ("model", "maxmargin", "SVC")
    assert found["notes"]["rows"] == 150
    assert found["relative_gap"] < 1e-3


def test_models_of_other_programs(folder, capsys):
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


def test_errors(folder, capsys):
    _, err = run(capsys, "info", "nowhere", code=1)
    assert "there is no file nowhere" in err
    (folder / "cut").write_bytes(b"\x89MXMG\r\n\x1a")
    _, err = run(capsys, "info", "cut", code=1)
    assert "truncated" in err


def test_range_that_overflows(folder, capsys):
    (folder / "huge.csv").write_text("a,label\n1e308,1\n-1e308,2\n", encoding="utf-8")
    found = json.loads(run(capsys, "info", "huge.csv", "--json")[0])
    assert found["largest_range"] == np.finfo(float).max


@pytest.mark.parametrize("kind", ["csv", "npz", "npy", "parquet"])
@pytest.mark.parametrize("role", ["label", "query"])
def test_integers_that_are_equal_in_double_precision(role, kind, folder, capsys):
    """64-bit identifiers must not be merged into one class or one query."""
    names, few = 2**60 + np.arange(20) // 5, np.arange(20) % 5
    label, query = (names, few) if role == "label" else (few, names)
    if kind == "csv":
        lines = [f"{i},{q},{y}\n" for i, (q, y) in enumerate(zip(query, label, strict=True))]
        (folder / "large.csv").write_text("a,q,label\n" + "".join(lines), encoding="utf-8")
    elif kind == "npz":
        np.savez("large.npz", X=np.eye(20), y=label, query=query)
    elif kind == "npy":
        np.save("large.npy", np.column_stack([np.arange(20), query, label]))
    else:
        parquet.write_table(pyarrow.table({"a": np.arange(20.0), "q": query, "label": label}), "large.parquet")
    column = [] if kind == "npz" else ["--query", "2" if kind == "npy" else "q"]
    _, err = run(capsys, "info", f"large.{kind}", *column, code=1)
    inexact, equal = f"{2**60 + 1}", f"has {2**60} and {2**60 + 1}, which are equal as float64"
    assert (equal if role == "query" else inexact) in err
    assert "float64" in err


def test_large_targets_are_numbers(folder, capsys):
    (folder / "large.csv").write_text("a,label\n1,1e300\n2,2e300\n3,9007199254740993\n", encoding="utf-8")
    assert json.loads(run(capsys, "info", "large.csv", "--json")[0])["samples"] == 3


def test_a_query_with_too_many_digits(folder, capsys):
    (folder / "long.txt").write_text(f"1 qid:{2**70} 1:2\n", encoding="utf-8")
    _, err = run(capsys, "info", "long.txt", code=1)
    assert f"line 1: qid: must be followed by an integer of at most 18 digits, not by '{2**70}'" in err


def test_markup_in_labels_is_printed_literally(folder, capsys):
    rows = "".join(f"{i % 2},{i},{'[/b]' if i % 2 else '[red]a'}\n" for i in range(40))
    (folder / "brackets.csv").write_text("[/c],[bold]d,label\n" + rows, encoding="utf-8")
    (folder / "wrong.csv").write_text("a,b[/x],label\n1,2,x\n3,[/y],y\n", encoding="utf-8")
    commands = [["info", "brackets.csv"], ["train", "brackets.csv", "m"], ["evaluate", "brackets.csv", "m"]]
    for words in commands:
        terminal = Terminal(*words)
        written = terminal.read()
        assert terminal.code() == 0, written
        assert "[/b]" in written
        assert "[red]a" in written
    terminal = Terminal("check", "wrong.csv")
    assert "'b[/x]'" in terminal.read()
    assert terminal.code() == 1
