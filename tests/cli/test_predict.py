"""`maxmargin predict`: formats of data and predictions, blocks, models of other programs, error messages."""

import csv
import gzip
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_regression

from cli.terminal import call
from maxmargin import SVC, SVR, LinearSVC, OneClassSVM, load, save
from maxmargin.cli import model_data
from maxmargin.cli.main import main
from maxmargin.datasets import dump_libsvm
from maxmargin.interchange import write_libsvm_model
from maxmargin.machines.linear import linear_svc

X, NUMBERS = load_iris(return_X_y=True)
X, NUMBERS = X[::2], NUMBERS[::2].astype(float)
WORDS = np.array(["setosa", "versicolor", "virginica"])[NUMBERS.astype(int)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dump_libsvm(X, NUMBERS, "iris.txt")
    rows = [[*map(repr, x), word] for x, word in zip(X.tolist(), WORDS, strict=True)]
    with open("iris.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["a", "b", "c", "d", "species"], *rows])
    save(SVC(C=10, probability=True).fit(X, NUMBERS), "numbers.maxmargin")
    save(SVC(C=10).fit(X, WORDS), "words.maxmargin")
    return tmp_path


def run(capsys, *words, code=0):
    exit_code = main(["predict", *map(str, words)])
    out, err = capsys.readouterr()
    assert exit_code == code, err
    return out, err


def numbers(text, first=0):
    """Return the lines of a text from the first on as rows of numbers."""
    return np.array([line.split() for line in text.splitlines()[first:]], dtype=float)


class TestOutput:
    def test_one_line_per_sample(self, folder, capsys):
        out, err = run(capsys, "iris.txt", "numbers.maxmargin")
        predicted = load("numbers.maxmargin").predict(X)
        assert out == "".join(f"{label:.0f}\n" for label in predicted)
        right = int((predicted == NUMBERS).sum())
        assert f"samples 75, accuracy {right / 75:.4%} ({right} of 75), seconds" in err

    def test_probabilities_as_libsvm_writes_them(self, folder, capsys):
        run(capsys, "iris.txt", "numbers.maxmargin", "out", "--probability")
        text = (folder / "out").read_text(encoding="utf-8")
        assert text.startswith("labels 0 1 2\n")
        found = numbers(text, 1)
        expected = load("numbers.maxmargin").predict_proba(X)
        np.testing.assert_array_equal(found[:, 1:], expected)
        np.testing.assert_array_equal(found[:, 0], np.argmax(expected, axis=1))

    def test_columns_with_a_heading(self, folder, capsys):
        out, err = run(capsys, "iris.csv", "words.maxmargin", "out.csv", "--decision-values")
        assert out.startswith("samples\t75\naccuracy\t")
        assert err == ""
        with open("out.csv", newline="", encoding="utf-8") as file:
            first, *rows = csv.reader(file)
        assert first == ["prediction", "decision setosa", "decision versicolor", "decision virginica"]
        model = load("words.maxmargin")
        assert [row[0] for row in rows] == list(model.predict(X))
        np.testing.assert_array_equal(np.array([row[1:] for row in rows], dtype=float), model.decision_function(X))

    def test_labels_with_separators_are_quoted(self, folder, capsys):
        save(SVC().fit(X, np.char.add("of, ", WORDS)), "m")
        run(capsys, "iris.csv", "m", "out.csv", "--label", "none", "--ignore", "species")
        with open("out.csv", newline="", encoding="utf-8") as file:
            assert {row[0] for row in csv.reader(file)} == {
                "prediction",
                "of, setosa",
                "of, versicolor",
                "of, virginica",
            }

    def test_json(self, folder, capsys):
        found = json.loads(run(capsys, "iris.csv", "words.maxmargin", "--json", "-q")[0])
        predicted = load("words.maxmargin").predict(X)
        assert found["columns"]["prediction"] == list(predicted)
        assert found["accuracy"] == np.mean(predicted == WORDS)
        found = json.loads(run(capsys, "iris.csv", "words.maxmargin", "out", "--json")[0])
        assert "columns" not in found
        assert (folder / "out").read_text(encoding="utf-8").split() == list(predicted)

    def test_no_labels_no_accuracy(self, folder, capsys):
        out, _ = run(capsys, "iris.csv", "words.maxmargin", "out", "--label", "none", "--ignore", "species")
        assert "accuracy" not in out
        np.savetxt("plain.csv", X, delimiter=",", fmt="%.17g")  # as many columns as the model has features
        out, _ = run(capsys, "plain.csv", "words.maxmargin", "out2")
        assert "accuracy" not in out
        assert (folder / "out").read_bytes() == (folder / "out2").read_bytes()

    def test_values_in_full_precision_and_intervals(self, folder, capsys):
        data, y = make_regression(60, 3, noise=5.0, random_state=0)
        dump_libsvm(data, y, "values.txt")
        model = SVR(C=100, kernel="linear", noise=True).fit(data, y)
        save(model, "m")
        found = json.loads(run(capsys, "values.txt", "m", "out.tsv", "--probability", "--json")[0])
        rows = np.loadtxt("out.tsv", skiprows=1)
        np.testing.assert_allclose(rows[:, 0], model.predict(data), rtol=1e-12)
        np.testing.assert_allclose(rows[:, 1:], model.predict_interval(data, 0.9), rtol=1e-12)
        errors = rows[:, 0] - y
        assert found["mean_squared_error"] == pytest.approx(np.mean(errors**2))
        assert found["squared_correlation"] == pytest.approx(np.corrcoef(rows[:, 0], y)[0, 1] ** 2)

    def test_novelty_detection(self, folder, capsys):
        save(OneClassSVM(nu=0.1, probability=True).fit(X), "m")
        out, _ = run(capsys, "iris.txt", "m", "--probability", "--decision-values")
        rows = numbers(out)
        assert rows.shape == (75, 4)
        np.testing.assert_array_equal(rows[:, 0], np.where(rows[:, 3] >= 0, 1, -1))


class TestData:
    def test_blocks_give_the_same_predictions(self, folder, capsys, monkeypatch):
        whole, _ = run(capsys, "iris.txt", "numbers.maxmargin", "--probability")
        monkeypatch.setattr(model_data, "BLOCK_BYTES", 200)
        parts, err = run(capsys, "iris.txt", "numbers.maxmargin", "--probability")
        assert parts.splitlines()[0] == whole.splitlines()[0] == "labels 0 1 2"
        np.testing.assert_allclose(numbers(parts, 1), numbers(whole, 1), rtol=1e-9)
        assert "samples 75, accuracy" in err

    def test_fewer_features_and_more(self, folder, capsys):
        (folder / "few.txt").write_text("0 1:5\n", encoding="utf-8")
        (folder / "many.txt").write_text("0 1:5 9:3\n0 1:5 8:2\n", encoding="utf-8")
        few, err = run(capsys, "few.txt", "numbers.maxmargin", "--decision-values")
        assert "do not occur" not in err
        many, err = run(capsys, "many.txt", "numbers.maxmargin", "--decision-values")
        np.testing.assert_allclose(numbers(many), np.repeat(numbers(few), 2, axis=0), rtol=1e-12)
        assert err.count("features above 4 do not occur in the training data and are ignored") == 1

    def test_samples_scaled_by_saved_ranges(self, folder, capsys):
        main(["scale", "iris.txt", "scaled.txt", "--save", "iris.range"])
        main(["train", "scaled.txt", "scaled.maxmargin", "-q"])
        out, _ = run(capsys, "scaled.txt", "scaled.maxmargin")
        predictions = out.splitlines()[-len(X) :]
        out, err = run(capsys, "iris.txt", "scaled.maxmargin", "--ranges", "iris.range")
        assert out.splitlines() == predictions
        assert "become 0" not in err
        dump_libsvm(np.column_stack([X, X]), NUMBERS, "wide.txt")
        out, err = run(capsys, "wide.txt", "scaled.maxmargin", "--ranges", "iris.range")
        assert out.splitlines() == predictions
        assert "features without a range in iris.range become 0" in err
        (folder / "targets.range").write_text("y\n0 1\n0 2\nx\n-1 1\n1 4 8\n")
        _, err = run(capsys, "iris.txt", "scaled.maxmargin", "--ranges", "targets.range", code=1)
        assert "scales labels, too" in err

    def test_model_of_libsvm_uses_all_features(self, folder, capsys, monkeypatch):
        write_libsvm_model(SVC(gamma=0.1).fit(X[:, :2], NUMBERS), "m.model")
        (folder / "wide.txt").write_text("0 1:5 2:3\n1 1:5 2:3 3:1\n", encoding="utf-8")
        monkeypatch.setattr(model_data, "BLOCK_BYTES", 10)
        out, err = run(capsys, "wide.txt", "m.model", "--decision-values")
        narrow, wide = (np.array(line.split()[1:], dtype=float) for line in out.splitlines())
        assert np.abs(narrow - wide).max() > 1e-3
        assert "do not occur" not in err

    def test_standard_input_and_output(self, folder):
        text = (folder / "iris.txt").read_text(encoding="utf-8")
        done = call("predict", "-", "numbers.maxmargin", "-q", input=text)
        assert len(done.stdout.splitlines()) == 75
        assert done.stderr == ""
        streamed = call("predict", "-", "numbers.maxmargin", "-q", "--format", "libsvm", input=text)
        assert streamed.stdout == done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["iris.txt", "nowhere"], "nowhere"),
        (["nowhere", "words.maxmargin"], "there is no file nowhere"),
        (["iris.txt", "iris.csv"], "not a model of maxmargin, LIBSVM, LIBLINEAR or SVMlight"),
        (
            ["iris.txt", "words.maxmargin"],
            "labels of iris.txt are numbers, but the classes of the model are setosa",
        ),
        (
            ["iris.csv", "numbers.maxmargin"],
            "labels of iris.csv are text, but the classes of the model are 0, 1, 2",
        ),
        (["iris.csv", "one-class"], "are text, but the model predicts numbers"),
        (["iris.csv", "words.maxmargin", "--probability"], "the model has no probabilities; train it with"),
        (["values.npy", "regression", "--decision-values"], "a regression has no decision values"),
        (["iris.csv", "words.maxmargin", "no/such/folder/out"], "no/such/folder"),
        (["values.npy", "words.maxmargin"], "2 features"),
    ],
)
def test_errors_are_one_line(words, message, folder, capsys):
    save(SVR().fit(X[:, :2], NUMBERS), "regression")
    save(OneClassSVM().fit(X), "one-class")
    np.save("values.npy", np.column_stack([X[:, :2], NUMBERS]))
    out, err = run(capsys, *words, code=1)
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not list(folder.glob(".*"))


def test_output_file_is_replaced_only_when_complete(folder, capsys, monkeypatch):
    (folder / "out").write_text("before", encoding="utf-8")

    def predict(self, X):
        raise KeyboardInterrupt

    monkeypatch.setattr(linear_svc.LinearSVC, "predict", predict)
    save(LinearSVC().fit(X, NUMBERS), "m")
    run(capsys, "iris.txt", "m", "out", code=130)
    assert (folder / "out").read_text(encoding="utf-8") == "before"
    assert not list(folder.glob(".*"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize(
    "words", [["predict", "iris.txt", "numbers.maxmargin", "pipe"], ["svm-train", "-q", "iris.txt", "pipe"]]
)
def test_pipes_and_devices_are_not_replaced(words, folder, capsys):
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert main(words) == 0
    assert os.read(reader, 100)
    os.close(reader)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_predictions_can_be_written_to_a_pipe(folder, capsys):
    os.mkfifo("pipe")
    with ThreadPoolExecutor(1) as reader:
        text = reader.submit((folder / "pipe").read_text, encoding="utf-8")
        run(capsys, "iris.txt", "numbers.maxmargin", "pipe")
        assert len(text.result(timeout=60).splitlines()) == len(X)
    assert (folder / "pipe").is_fifo()


def test_links_are_followed_and_other_files_not_touched(folder, capsys):
    (folder / "out.part").write_text("mine", encoding="utf-8")
    (folder / "out").symlink_to(folder / "elsewhere")
    run(capsys, "iris.txt", "numbers.maxmargin", "out")
    assert (folder / "out").is_symlink()
    assert len((folder / "elsewhere").read_text(encoding="utf-8").splitlines()) == len(X)
    assert (folder / "out.part").read_text(encoding="utf-8") == "mine"


def test_output_is_compressed_by_suffix(folder, capsys):
    run(capsys, "iris.txt", "numbers.maxmargin", "out.csv.gz")
    with gzip.open("out.csv.gz", "rt", encoding="utf-8") as file:
        assert file.readline() == "prediction\n"
        assert len(file.readlines()) == len(X)


@pytest.mark.parametrize("command", [["train", "zero.txt", "m.maxmargin"], ["easy", "zero.txt", "one.txt", "-o", "m"]])
def test_first_index_is_that_of_the_training_data(command, folder, capsys):
    """Indices of a file may start at 0 even if no index is 0."""
    random = np.random.default_rng(0)
    first = random.integers(0, 2, 40)
    rows = [f"{a} 0:{a} 1:{b:.3f} 2:{c:.3f}\n" for a, (b, c) in zip(first, random.normal(size=(40, 2)), strict=True)]
    (folder / "zero.txt").write_text("".join(rows), encoding="utf-8")
    (folder / "one.txt").write_text("0 1:2 2:2\n0 1:-2 2:2\n0 1:2 2:-2\n", encoding="utf-8")
    assert main([*command, "-q"]) == 0
    capsys.readouterr()
    ranges = ["--ranges", "m.range"] if command[0] == "easy" and (folder / "m.range").exists() else []
    assert run(capsys, "one.txt", "m.maxmargin", *ranges)[0] == "0\n0\n0\n"
    assert run(capsys, "one.txt", "m.maxmargin", *ranges, "--samples", 3)[0] == "0\n0\n0\n"
    shifted = run(capsys, "one.txt", "m.maxmargin", *ranges, "--first-index", 1)[0]
    assert shifted != "0\n0\n0\n"
