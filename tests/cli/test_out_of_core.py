"""`maxmargin train --out-of-core`, and predictions of files that are read in blocks."""

import json

import numpy as np
import pandas as pd
import pytest

from maxmargin import LinearSVC, load
from maxmargin.cli import tables
from maxmargin.cli.main import main
from maxmargin.datasets import Scaling

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3000, 5))
Y = np.where(X[:, 0] + 0.5 * RANDOM.normal(size=3000) > 0, "spam", "ham")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = pd.DataFrame(X, columns=list("abcde"))
    table["label"] = Y
    table.to_parquet("spam.parquet", row_group_size=700)
    return tmp_path


def run(capsys, *arguments):
    code = main([str(word) for word in arguments])
    return code, *capsys.readouterr()


def test_the_model_is_that_of_training_in_memory(capsys, folder):
    code, out, err = run(capsys, "train", "spam.parquet", "model", "--out-of-core", "--json")
    found = json.loads(out)
    assert code == 0
    assert "using linear-svc" in err
    assert found["data"] == {"name": "spam.parquet", "rows": 3000, "columns": 5}
    assert found["passes"] >= 2
    assert found["relative_gap"] <= 1e-4
    assert "violation" not in found
    model = load("model")
    whole = LinearSVC().fit(X, Y)
    assert model.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=1e-4)
    code, _, _ = run(capsys, "predict", "spam.parquet", "model", "out.csv")
    assert code == 0
    predicted = np.array((folder / "out.csv").read_text().splitlines()[1:])
    assert (predicted == whole.predict(X)).mean() > 0.99


def test_files_larger_than_memory_are_read_in_blocks(capsys, monkeypatch):
    monkeypatch.setattr(tables, "available_memory", lambda: 1000)
    code, out, _ = run(capsys, "train", "spam.parquet", "model", "-q")
    assert code == 0
    assert "passes" in out
    code, out, _ = run(capsys, "predict", "spam.parquet", "model", "-q")
    assert code == 0
    assert len(out.splitlines()) == 3000
    code, out, _ = run(capsys, "info", "model", "-q")
    assert code == 0
    assert "duality gap" in out


def test_text_regression_and_options(capsys):
    lines = [f"{x[1] + 3:.6f} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(x)) for x in X[:500]]
    with open("targets.libsvm", "w") as file:
        file.write("\n".join(lines) + "\n")
    code, out, err = run(capsys, "train", "targets.libsvm", "model", "--out-of-core", "--epsilon", "0.1", "--json")
    assert code == 0
    assert "using linear-svr" in err
    assert json.loads(out)["parameters"]["epsilon"] == 0.1
    assert load("model").score(X[:500], X[:500, 1] + 3) > 0.99


def test_formats_of_other_programs(capsys, folder):
    code, _, _ = run(capsys, "train", "spam.parquet", "spam.onnx", "--out-of-core", "-q")
    assert code == 0
    assert not (folder / "spam.onnx").read_bytes().startswith(b"\x89MXM")


def test_landmarks(capsys):
    words = ["--estimator", "approximate-svc", "--out-of-core", "--json"]
    code, out, _ = run(capsys, "train", "spam.parquet", "model", *words)
    assert code == 0
    assert json.loads(out)["estimator"] == "KernelApproximationSVC"
    assert load("model").score(X, Y) > 0.8


def test_checkpoints(capsys, folder):
    words = ["train", "spam.parquet", "model", "--out-of-core", "--loss", "hinge", "--checkpoint", "state"]
    code, _, err = run(capsys, *words, "--tol", "1e-10", "--max-iter", 1)
    assert code == 3
    assert "to resume:  maxmargin train spam.parquet model --out-of-core" in err
    assert (folder / "state").exists()
    code, _, err = run(capsys, *words, "--every", 5, "--resume")
    assert code == 0
    assert "resuming from state" in err
    assert not (folder / "state").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--estimator", "svc"], "svc needs the data in memory; out of core there are linear-svc"),
        (["--resume"], "add --checkpoint FILE"),
        (["--resume", "--checkpoint", "none"], "there is no checkpoint none to resume from"),
        (["--samples", "100"], "--samples needs the data in memory"),
        (["--penalty", "l1"], "penalty='l2', not 'l1'"),
    ],
)
def test_errors(words, message, capsys, folder):
    code, _, err = run(capsys, "train", "spam.parquet", "model", "--out-of-core", *words)
    assert code == 1
    assert message in " ".join(err.split())
    assert not (folder / "model").exists()


def test_missing_and_truncated_files(capsys, folder):
    code, _, err = run(capsys, "train", "none.parquet", "model", "--out-of-core")
    assert (code, "there is no file none.parquet" in err) == (1, True)
    (folder / "short.parquet").write_bytes((folder / "spam.parquet").read_bytes()[:5000])
    code, _, err = run(capsys, "train", "short.parquet", "model", "--out-of-core")
    assert code == 1
    assert "short.parquet" in err
    assert len(err.splitlines()) == 1


def write_labels(name, labels):
    """A table in blocks of 1,000 rows, the row groups of the file."""
    table = pd.DataFrame(X, columns=list("abcde"))
    table["label"] = labels
    table.to_parquet(name, row_group_size=1000)


@pytest.mark.parametrize(
    ("labels", "estimator"),
    [
        (np.where(np.arange(3000) < 2900, 1, 2), "linear-svc"),  # the first blocks have one class
        (np.where(np.arange(3000) < 2900, 1.0, 2.5), "linear-svr"),  # the first blocks have whole numbers
        (X[:, 1], "linear-svr"),
        (np.where(np.arange(3000) < 2900, "x", "y"), "linear-svc"),
    ],
)
def test_the_labels_of_all_blocks_choose_the_estimator(capsys, monkeypatch, labels, estimator):
    monkeypatch.setattr("maxmargin.blocks.sources.BLOCK_BYTES", 1000 * 5 * 8)
    write_labels("later.parquet", labels)
    code, _, err = run(capsys, "train", "later.parquet", "model", "--out-of-core", "--max-iter", "1")
    assert code in (0, 3)
    assert f"using {estimator}" in err


def test_weights_of_classes_that_appear_only_in_later_blocks(capsys, monkeypatch):
    monkeypatch.setattr("maxmargin.blocks.sources.BLOCK_BYTES", 1000 * 5 * 8)
    write_labels("later.parquet", np.where(np.arange(3000) < 2900, "x", "y"))
    code, _, _ = run(
        capsys, "train", "later.parquet", "model", "--out-of-core", "--class-weight", "y=5", "--json",
        "--estimator", "linear-svc",
    )  # fmt: skip
    assert code == 0
    assert load("model").class_weight == {"y": 5.0}


@pytest.mark.parametrize("extra", [[], ["--out-of-core"]])
def test_training_data_are_scaled_by_a_range_file(capsys, folder, extra):
    code, _, err = run(capsys, "train", "spam.parquet", "model", "--ranges", "spam.range", *extra)
    assert code == 0
    assert "features are scaled to [-1, 1]; the ranges are in spam.range" in err
    scaling = Scaling.read("spam.range")
    np.testing.assert_array_equal(scaling.minimum, X.min(axis=0))
    expected = LinearSVC(tol=1e-6).fit(scaling.apply(X), Y)
    if extra:
        assert load("model").certificate_.primal == pytest.approx(expected.certificate_.primal, rel=1e-4)
    before = (folder / "spam.range").read_bytes()
    code, _, err = run(capsys, "train", "spam.parquet", "other", "--ranges", "spam.range", *extra)
    assert code == 0
    assert "features are scaled" not in err
    assert (folder / "spam.range").read_bytes() == before
    code, out, err = run(capsys, "predict", "spam.parquet", "model", "--ranges", "spam.range", "-q")
    assert code == 0
    if extra:
        assert (np.array(out.splitlines()[-3000:]) == expected.predict(scaling.apply(X))).mean() > 0.99
    code, _, err = run(capsys, "predict", "spam.parquet", "model", "out.csv")
    assert "was trained on scaled samples: use --ranges spam.range" in err


def test_range_files_that_cannot_be_used(capsys, folder):
    (folder / "bad.range").write_text("nonsense\n")
    code, _, err = run(capsys, "train", "spam.parquet", "model", "--out-of-core", "--ranges", "bad.range")
    assert code == 1
    assert "bad.range" in err
    code, _, err = run(capsys, "train", "spam.parquet", "model", "--out-of-core", "--ranges", "nowhere/x.range")
    assert code == 1
    assert "nowhere" in err
    assert not (folder / "model").exists()
    for extra in ([], ["--out-of-core"]):
        code, _, err = run(capsys, "train", "spam.parquet", "same", "--ranges", "same", *extra)
        assert code == 1
        assert "same cannot be both the model and the range file" in err
        assert not (folder / "same").exists()


def test_data_that_are_read_once_are_not_converted(capsys, folder):
    code, _, err = run(capsys, "train", "spam.parquet", "model", "--convert")
    assert code == 0
    assert "nothing is converted" in err
    assert not (folder / "cache" / "maxmargin").exists()


def test_parquet_is_converted_once(capsys, folder):
    code, _, _ = run(capsys, "train", "spam.parquet", "model", "--out-of-core", "--convert", "-q")
    assert code == 0
    (converted,) = (folder / "cache" / "maxmargin").iterdir()
    assert np.load(converted / "X.npy").shape == X.shape
    direct = LinearSVC().fit(X, Y).certificate_
    assert load("model").certificate_.primal == pytest.approx(direct.primal, rel=1e-4)
