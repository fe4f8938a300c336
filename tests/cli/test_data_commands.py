"""The argument DATA, and the commands scale, check, convert and info for data."""

import argparse
import gzip
import io
import json
import os
import pty
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

import maxmargin
from maxmargin import SVC
from maxmargin.cli import data
from maxmargin.cli.info import data_rows, describe_data
from maxmargin.cli.main import main
from maxmargin.datasets import Samples, Scaling, chessboard, read_samples, write_samples

COMMAND = [sys.executable, "-c", "import sys; from maxmargin.cli.main import main; sys.exit(main())"]

PEOPLE = "height,sex,weight,class\n1.8,m,80,b\n1.6,f,60,a\n1.7,f,65,b\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bunch = load_iris()
    names = tuple(name.removesuffix(" (cm)") for name in bunch.feature_names)
    iris = Samples(bunch.data, bunch.target_names[bunch.target], feature_names=names, label_name="species")
    write_samples(iris, "iris.csv")
    (tmp_path / "people.csv").write_text(PEOPLE)
    X = sparse.random(50, 8, 0.2, format="csr", random_state=0)
    write_samples(Samples(X, np.arange(50) % 2 * 2.0 - 1), "sparse.libsvm")
    return tmp_path


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    return code, *capsys.readouterr()


def options(*arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    data.add_data_options(parser)
    return parser.parse_args([str(argument) for argument in arguments])


class TestData:
    def test_files_and_options(self, folder):
        found = data.read_data(options("iris.csv"))
        assert (found.X.shape, found.label_name, found.y[0]) == ((150, 4), "species", "setosa")
        assert data.read_data(options("iris.csv", "--label", 1, "--ignore", "species")).label_name == "sepal length"

    def test_columns(self, folder):
        found = data.read_data(options("people.csv", "--label", "weight", "--ignore", "sex,class"))
        assert found.feature_names == ("height",)
        assert found.y.tolist() == [80.0, 60.0, 65.0]
        assert data.read_data(options("people.csv", "--label", "none", "--ignore", "2,4")).y is None
        found = data.read_data(options("people.csv", "--query", 3, "--ignore", "sex"))
        assert found.query.tolist() == [80.0, 60.0, 65.0]

    def test_categories_are_saved_for_other_files(self, folder):
        found = data.read_data(options("people.csv", "--one-hot", "words.json"))
        assert found.feature_names == ("height", "sex=f", "sex=m", "weight")
        assert json.loads((folder / "words.json").read_text()) == {"sex": ["f", "m"]}
        (folder / "new.csv").write_text("height,sex,weight\n1.5,m,50\n")
        again = data.read_data(options("new.csv", "--one-hot", "words.json"), n_features=4)
        assert again.X.tolist() == [[1.5, 0.0, 1.0, 50.0]]
        assert again.y is None
        for text in ("{", "[]", '{"a": ["b", "b"]}', '{"a": [1]}'):
            (folder / "words.json").write_text(text)
            with pytest.raises(ValueError, match=r"words\.json: it must"):
                data.read_data(options("new.csv", "--one-hot", "words.json"))

    def test_first_index_and_header(self, folder):
        (folder / "zero.libsvm").write_text("1 1:5 2:6\n")
        assert data.read_data(options("zero.libsvm", "--first-index", 0)).n_features == 3
        assert data.read_data(options("zero.libsvm")).n_features == 2
        (folder / "a.csv").write_text("1,2\n3,4\n")
        assert len(data.read_data(options("a.csv", "--header", "yes"))) == 1

    def test_generators(self):
        assert len(data.read_data(options("chessboard"))) == 1000
        found = data.read_data(options("chessboard:50,noise=0.5,seed=7"))
        assert np.array_equal(found.X, chessboard(50, noise=0.5, seed=7)[0])
        assert found.y.dtype == np.float64
        assert found.name == "chessboard:50,noise=0.5,seed=7"
        assert len(data.read_data(options("rings", "--samples", 20))) == 20
        assert data.read_data(options("ranked_queries:30")).query.tolist() == np.repeat([1, 2, 3], 10).tolist()

    @pytest.mark.parametrize(
        ("word", "message"),
        [
            ("nowhere", "there is no file nowhere, and the generators are"),
            ("chessboard:x", "n_samples of chessboard must be a number"),
            ("chessboard:1.5", "n_samples of chessboard must be a number"),
            ("chessboard:noise=[1]", "noise of chessboard must be a number"),
            ("chessboard:5,colour=3", "chessboard has no argument 'colour'; it takes n_samples, size, noise, seed"),
            ("chessboard:5,6", "chessboard has no argument '6'"),
            ("chessboard:0", "at least one sample"),
        ],
    )
    def test_invalid_data(self, word, message, folder):
        with pytest.raises(ValueError, match=message.replace("[", r"\[")):
            data.read_data(options(word))

    def test_samples_and_labels(self, folder):
        assert len(data.read_data(options("iris.csv", "--samples", 10))) == 10
        assert len(data.read_data(options("iris.csv", "--samples", 1000))) == 150
        with pytest.raises(ValueError, match="--samples must be at least 2"):
            data.read_data(options("iris.csv", "--samples", 1))
        np.savez("a.npz", X=np.eye(2))
        with pytest.raises(ValueError, match=r"a\.npz: there are no labels"):
            data.read_data(options("a.npz"), need_labels=True)


class TestScale:
    def test_train_and_test(self, folder, capsys):
        code, out, err = run(capsys, "scale", "iris.csv", "scaled.csv", "--save", "range")
        assert (code, err) == (0, "")
        assert "features\t4" in out
        found = read_samples("scaled.csv")
        assert (found.X.min(axis=0) == -1).all()
        assert (found.X.max(axis=0) == 1).all()
        assert found.label_name == "species"
        code, out, err = run(capsys, "scale", "iris.csv", "again.npz", "--restore", "range", "--json")
        assert json.loads(out) == {
            "samples": 150, "features": 4, "scaled_features": 4, "nonzeros_before": 600,
            "nonzeros_after": int(np.count_nonzero(found.X)), "written": "again.npz",
        }  # fmt: skip
        assert np.array_equal(read_samples("again.npz").X, found.X)

    def test_standard_output_in_the_format_of_the_data(self, folder, capfdbinary):
        assert main(["scale", "sparse.libsvm", "--lower", "0"]) == 0
        out, err = capfdbinary.readouterr()
        assert err == b""
        samples = read_samples("sparse.libsvm")
        assert np.array_equal(
            read_samples(io.BytesIO(out), n_features=8).X.toarray(),
            Scaling.fit(samples.X, 0, 1).apply(samples.X).toarray(),
        )
        assert main(["scale", "sparse.libsvm", "--quiet"]) == 0
        assert capfdbinary.readouterr()[1] == b""
        assert main(["scale", "sparse.libsvm"]) == 0
        assert b"--lower 0 keeps zeros" in capfdbinary.readouterr()[1]
        assert main(["scale", "iris.csv", "--to", "tsv", "--standardise"]) == 0
        out, _ = capfdbinary.readouterr()
        np.testing.assert_allclose(read_samples(io.BytesIO(out)).X.std(axis=0), 1)

    def test_targets_and_unseen_features(self, folder, capsys):
        write_samples(Samples(np.eye(3)[:, :2], np.array([5.0, 10, 20])), "a.npz")
        assert run(capsys, "scale", "a.npz", "b.npz", "-y", 0, 1, "-s", "range")[0] == 0
        assert read_samples("b.npz").y.tolist() == [0.0, 1 / 3, 1.0]
        write_samples(Samples(np.eye(3), np.array([5.0, 10, 20])), "c.npz")
        code, _, err = run(capsys, "scale", "c.npz", "d.npz", "-r", "range")
        assert code == 0
        assert "features without a range in range become 0: 3" in err
        assert (read_samples("d.npz").X[:, 2] == 0).all()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["iris.csv", "--json"], "--json needs a file OUT"),
            (["iris.csv", "o.csv", "-r", "range", "-l", "0"], "--restore takes the ranges"),
            (["iris.csv", "o.csv", "--standardise", "-u", "2"], "--standardise has no range"),
            (["iris.csv", "o.csv", "-l", "1", "-u", "0"], "must be above the lower"),
            (["iris.csv", "o.csv", "-y", "0", "1"], "--targets needs numeric labels"),
            (["iris.csv", "o.csv", "-r", "people.csv"], "people.csv, line 1: a range file begins"),
            (["iris.csv", "o.libsvm"], "encode them as integers"),
            (["iris.csv", "nowhere/o.csv"], "nowhere"),
        ],
    )
    def test_errors(self, arguments, message, folder, capsys):
        code, out, err = run(capsys, "scale", *arguments)
        assert (code, out) == (1, "")
        assert message in err
        assert len(err.strip().splitlines()) == 1


class TestCheck:
    def test_lines_of_a_table(self, folder, capsys):
        (folder / "bad.csv").write_text("a,b\n1,2\nx,3\n4\n,5\n")
        code, out, err = run(capsys, "check", "bad.csv")
        assert code == 1
        lines = [line.split("\t") for line in out.splitlines()]
        assert [line[0] for line in lines] == ["line", "3", "4", "5"]
        assert "'x' in column 'a' is not a number" in lines[1][1]
        assert err == "bad.csv (csv): 3 problems\n"
        code, out, _ = run(capsys, "check", "bad.csv", "--json", "--limit", 2)
        found = json.loads(out)
        assert (code, found["complete"], [problem["line"] for problem in found["problems"]]) == (1, False, [3, 4])

    def test_lines_of_libsvm_text(self, folder, capsys):
        (folder / "bad").write_text("1 1:2\n2 3:x\n1 2:1 1:1\n")
        code, out, err = run(capsys, "check", "bad")
        assert code == 1
        assert [line.split("\t")[0] for line in out.splitlines()] == ["line", "2", "3"]
        assert "bad (libsvm): 2 problems" in err

    def test_other_files(self, folder, capsys):
        np.savez("bad.npz", X=np.array([[np.nan]]), y=np.ones(1))
        code, out, _ = run(capsys, "check", "bad.npz")
        assert code == 1
        assert "sample 1 has nan" in out
        (folder / "cut.csv.gz").write_bytes(gzip.compress(PEOPLE.encode())[:-9])
        assert run(capsys, "check", "cut.csv.gz")[0] == 1
        (folder / "noise").write_text("some words\n")
        code, out, err = run(capsys, "check", "noise")
        assert code == 1
        assert "neither LIBSVM format" in out
        assert "noise (unknown): 1 problem\n" in err

    def test_valid_files(self, folder, capsys):
        for arguments in (["iris.csv"], ["sparse.libsvm"], ["people.csv", "--ignore", "sex"],
                          ["people.csv", "--one-hot", "words.json"]):  # fmt: skip
            code, out, err = run(capsys, "check", *arguments)
            assert (code, out) == (0, "")
            assert err.endswith("no problems\n")
        assert not (folder / "words.json").exists()
        assert run(capsys, "check", "people.csv")[0] == 1

    def test_standard_input(self, folder):
        for text, code in ((b"a,b\n1,2\n", 0), (b"a,b\n1,2\nx,1\n", 1), (b"1 1:2\n", 0)):
            done = subprocess.run([*COMMAND, "check", "-", "--json"], input=text, capture_output=True, check=False)
            assert done.returncode == code
            assert len(json.loads(done.stdout)["problems"]) == code

    def test_errors(self, folder, capsys):
        assert run(capsys, "check", "nowhere")[2] == "maxmargin: there is no file nowhere\n"
        assert run(capsys, "check", "iris.csv", "--limit", 0)[0] == 1


class TestConvert:
    @pytest.mark.parametrize("target", ["a.libsvm", "a.tsv.gz", "a.npz", "a.npy", "a.parquet", "a.arrow"])
    def test_there_and_back(self, target, folder, capsys):
        assert run(capsys, "convert", "iris.csv", target)[0] == 0
        assert run(capsys, "convert", target, "back.csv")[0] == 0
        found, iris = read_samples("back.csv"), read_samples("iris.csv")
        assert np.array_equal(found.X, iris.X)
        numbers = np.unique(iris.y, return_inverse=True)[1] + 1
        assert np.array_equal(found.y, numbers if target in ("a.libsvm", "a.npy") else iris.y)

    def test_models(self, folder, capsys):
        X, y = chessboard(80)
        model = SVC(C=10, gamma=1.0).fit(X, y)
        maxmargin.save(model, "a.maxmargin")
        code, out, _ = run(capsys, "convert", "a.maxmargin", "a.model")
        assert (code, out) == (0, "format\tlibsvm\nwritten\ta.model\n")
        assert run(capsys, "convert", "a.model", "b.maxmargin")[0] == 0
        assert np.array_equal(maxmargin.load("b.maxmargin").predict(X), model.predict(X))
        code, out, _ = run(capsys, "convert", "a.model", "c", "--to", "libsvm", "--json")
        assert json.loads(out) == {"format": "libsvm", "written": "c"}
        assert run(capsys, "convert", "a.model", "-")[2] == (
            "maxmargin: a model cannot be written to standard output; OUT must be a file\n"
        )
        assert "the format of a model must be" in run(capsys, "convert", "a.model", "d", "--to", "csv")[2]

    def test_text_labels_become_numbers(self, folder, capsys):
        code, out, err = run(capsys, "convert", "iris.csv", "iris", "--json")
        assert code == 0
        assert "they are replaced by numbers: 1 setosa, 2 versicolor, 3 virginica" in err
        assert json.loads(out) == {
            "samples": 150, "features": 4, "format": "libsvm", "written": "iris",
            "classes": ["setosa", "versicolor", "virginica"],
        }  # fmt: skip

    def test_pipes(self, folder):
        done = subprocess.run(
            [*COMMAND, "convert", "-", "-", "--to", "libsvm"],
            input=b"a,b,label\n1,0,3\n0,2.5,4\n",
            capture_output=True,
            check=True,
        )
        assert done.stdout == b"3 1:1\n4 2:2.5\n"
        assert done.stderr == b""

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["iris.csv", "-", "--json"], "--json needs a file OUT"),
            (["iris.csv", "o", "--to", "xls"], "unknown format 'xls'; the formats are libsvm, csv"),
            (["people.csv", "o.npz"], "text instead of numbers in column 'sex'"),
        ],
    )
    def test_errors(self, arguments, message, folder, capsys):
        code, out, err = run(capsys, "convert", *arguments)
        assert (code, out) == (1, "")
        assert message in err
        assert len(err.strip().splitlines()) == 1


class TestInfo:
    def test_iris(self, folder):
        facts = describe_data(read_samples("iris.csv"))
        json.dumps(facts)
        assert facts["classes"] == {"setosa": 50, "versicolor": 50, "virginica": 50}
        assert (facts["samples"], facts["features"], facts["labels"]) == (150, 4, "classes")
        assert facts["duplicate_samples"] == 1  # two flowers of one species have equal measurements
        assert facts["conflicting_samples"] == 0
        assert (facts["minimum"], facts["maximum"]) == (0.1, 7.9)
        assert facts["advice"] == []
        rows = data_rows(facts)
        assert rows["classes"] == "setosa (50), versicolor (50), virginica (50)"

    def test_advice(self):
        random = np.random.default_rng(0)
        X = np.column_stack([random.normal(size=60), 1e4 * random.normal(size=60), np.ones(60)])
        X[1] = X[0]
        facts = describe_data(Samples(X, np.array(["a", "b"] + ["b"] * 58)))
        assert facts["constant_features"] == ["3"]
        assert (facts["duplicate_samples"], facts["conflicting_samples"]) == (1, 2)
        assert [sentence.split(":")[0] for sentence in facts["advice"]] == [
            "scale the features",
            "remove the constant features",
            "the classes are imbalanced",
            "a class has fewer than 5 samples",
            "some equal samples have different labels",
        ]
        assert "advice 2" in data_rows(facts)
        scaled = Scaling.fit(X).apply(X)
        assert "scale" not in describe_data(Samples(scaled, np.arange(60) % 2.0))["advice"][0]

    def test_sparse_and_dense_data_have_the_same_description(self, folder):
        samples = read_samples("sparse.libsvm")
        rows = np.r_[np.arange(50), [3, 4, 5]]
        twice = samples.take(rows)
        facts = describe_data(twice)
        dense = describe_data(Samples(twice.X.toarray(), twice.y))
        for name in set(facts) - {"megabytes", "name"}:
            assert facts[name] == dense[name], name
        zeros = int(np.sum(samples.X.getnnz(axis=1) == 0))
        assert facts["duplicate_samples"] == 3 + max(0, zeros - 1)

    @pytest.mark.parametrize(
        ("samples", "labels"),
        [
            (Samples(np.eye(3)), "none"),
            (Samples(np.eye(3), np.array([0.5, 1.5, 2.5])), "numbers from 0.5 to 2.5"),
            (Samples(np.ones((2, 2)), np.ones(2)), None),
            (Samples(sparse.csr_matrix((3, 4)), np.arange(3.0)), None),
        ],
    )
    def test_degenerate_data(self, samples, labels):
        facts = describe_data(samples)
        json.dumps(facts, allow_nan=False)
        assert data_rows(facts).get("labels") == labels

    def test_duplicates_are_found_by_value(self):
        random = np.random.default_rng(0)
        X = random.integers(0, 3, (2000, 5)).astype(float)
        X[X == 0] = random.choice([0.0, -0.0], np.sum(X == 0))
        expected = 2000 - len({tuple(row) for row in X.tolist()})
        assert describe_data(Samples(X))["duplicate_samples"] == expected
        assert describe_data(Samples(sparse.csr_matrix(X)))["duplicate_samples"] == expected


def test_table_on_a_terminal(folder):
    pid, end = pty.fork()
    if not pid:
        size = {"COLUMNS": "100", "LINES": "40", "TERM": "xterm-256color"}
        os.execve(COMMAND[0], [*COMMAND, "check", "people.csv"], {**os.environ, **size})
    written = b""
    while True:
        try:
            part = os.read(end, 65536)
        except OSError:  # on Linux the end of the output
            break
        if not part:
            break
        written += part
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    os.close(end)
    assert "│" in written.decode()  # a table with lines
    assert "column 'sex'" in written.decode()
