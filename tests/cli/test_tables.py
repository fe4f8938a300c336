"""Tables as they come, from the shell: one model file that needs no option, errors, the tables of the examples."""

import json
import runpy
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from maxmargin import load
from maxmargin.cli.main import main

MAKE = Path(__file__).parents[2] / "examples/tables/make_tables.py"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    runpy.run_path(str(MAKE))["main"](made)
    return made


def run(capsys, *words, code=0):
    """Run a command in this process; return what it printed."""
    found = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert found == code, err
    return out, err


def usage(err):
    """Return the words of the printed line that says how to use the model."""
    (line,) = [line for line in err.splitlines() if line.startswith("to use the model:")]
    return shlex.split(line.partition(":")[2])[1:]


class TestEasy:
    @pytest.mark.parametrize(
        ("name", "answer"), [("subscribers", "churned"), ("rents", "Kaltmiete"), ("patients", "urgency")]
    )
    def test_the_printed_line_predicts_new_rows(self, tables, name, answer, capsys):
        """Rows without answers and with columns in another order get the predictions of those with answers."""
        _, err = run(capsys, "easy", tables / f"{name}.csv", "--no-report", "--folds", 3)
        words = usage(err)
        assert words[:2] == ["predict", "NEW"]
        words[1] = str(tables / f"{name}-new.csv")
        new, _ = run(capsys, *words)
        later, remarks = run(capsys, "predict", tables / f"{name}-later.csv", words[2])
        assert new == later
        assert "categories that the training data do not have count as rare" in remarks
        found = json.loads(run(capsys, "evaluate", tables / f"{name}-later.csv", words[2], "--json")[0])
        assert found["r2"] > 0.85 if name == "rents" else found["balanced_accuracy"] > 0.6

    @pytest.mark.parametrize(
        ("options", "write"),
        [
            (["--ignore", "a"], "table.csv"),
            (["--label", "a", "--header", "yes"], "table.csv"),
            (["--label", "3", "--format", "csv"], "table.txt"),
            (["--type", "b=category"], "table.csv"),
            (["--label", "1", "--ignore", "2"], "table.npy"),
        ],
    )
    def test_the_printed_line_works_whatever_the_options(self, options, write, folder, capsys):
        random = np.random.default_rng(0)
        values = np.column_stack([random.integers(0, 3, (60, 2)), random.integers(0, 2, 60)]).astype(float)
        if write.endswith("npy"):
            np.save(write, values)
        else:
            pd.DataFrame(values, columns=["a", "b", "y"]).to_csv(write, index=False)
        _, err = run(capsys, "easy", write, *options, "--no-report", "--folds", 2)
        words = usage(err)
        words[1] = write
        assert len(run(capsys, *words)[0].splitlines()) == 60

    def test_rare_classes_are_found_as_by_a_tuned_weighted_svc(self, folder, capsys):
        X, y = make_classification(
            900, n_features=6, n_informative=4, weights=[0.93], class_sep=1.2, flip_y=0.01, random_state=0
        )
        frame = pd.DataFrame(X, columns=list("abcdef")).assign(label=np.where(y, "rare", "usual"))
        frame[:600].to_csv("train.csv", index=False)
        frame[600:].to_csv("test.csv", index=False)
        out, err = run(capsys, "easy", "train.csv", "test.csv", "--no-report", "--json")
        scaler = StandardScaler().fit(X[:600])
        peer = GridSearchCV(
            SVC(class_weight="balanced"),
            {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1]},
            scoring="balanced_accuracy",
        ).fit(scaler.transform(X[:600]), y[:600])
        reached = balanced_accuracy_score(y[600:], peer.predict(scaler.transform(X[600:])))
        assert json.loads(out)["test"]["balanced_accuracy"] > reached - 0.03
        assert "so the score is the balanced accuracy" in err
        assert "with neither" in err

    def test_accuracy_is_used_if_it_is_asked_for(self, tables, capsys):
        out, err = run(
            capsys, "easy", tables / "subscribers.csv", "--score", "accuracy", "--no-report", "--folds", 2, "--json"
        )
        assert "balanced" not in err
        assert "class_weight" not in json.loads(out)["model"]["parameters"]

    def test_report(self, tables, folder, capsys):
        run(capsys, "easy", tables / "rents.csv", "--folds", 3)
        page = Path("rents.csv.html").read_text(encoding="utf-8")
        for words in ("identifier: different text in every row", "with the largest errors", "Learning curve", "Köln",
                      "90 % prediction intervals", "QuantileSVR", "Importance of the columns", "k.A."):  # fmt: skip
            assert words in page
        assert "nan" not in page.partition("largest errors")[2].partition("Grid search")[0]


class TestOtherCommands:
    def test_train_predict_and_evaluate_agree(self, tables, capsys):
        run(capsys, "train", tables / "patients.csv", "m", "-q")
        run(capsys, "predict", tables / "patients-later.csv", "m", "out.csv")
        truth = pd.read_csv(tables / "patients-later.csv", sep="\t").urgency
        accuracy = (pd.read_csv("out.csv").prediction == truth).mean()
        assert (
            json.loads(run(capsys, "evaluate", tables / "patients-later.csv", "m", "--json")[0])["accuracy"] == accuracy
        )
        rows = run(capsys, "info", "m")[0]
        assert "ignored columns\tcase, ward" in rows
        assert "complaint (category)" in rows

    def test_grid_and_cross_validation(self, tables, capsys):
        out, _ = run(capsys, "grid", tables / "patients.csv", "--Cs", "1,10", "--gammas", "0.01", "--json")
        assert json.loads(out)["best"]["mean"] > 0.7
        out, _ = run(capsys, "evaluate", tables / "rents.csv", "--folds", 3, "-C", 1000, "--json")
        assert json.loads(out)["r2"] > 0.8

    def test_plan_is_shown_written_and_used(self, tables, capsys):
        _, err = run(capsys, "train", tables / "rents.csv", "m", "--write-columns", "columns.toml")
        assert "Wohnfläche\tnumber\tnumbers from 18 to 240" in err
        text = Path("columns.toml").read_text(encoding="utf-8")
        changed = text.replace('parts = ["days", "month", "weekday"]', 'parts = ["year"]').replace(
            '"standard"', '"range"'
        )
        Path("columns.toml").write_text(changed, encoding="utf-8")
        _, err = run(capsys, "train", tables / "rents.csv", "m", "--columns", "columns.toml", "--type", "PLZ=ignored")
        assert "numbers are scaled to [-1, 1]" in err
        assert "Mietbeginn\tdate\tdate, as asked for\tyear" in err
        assert "PLZ" not in run(capsys, "info", "m")[0].partition("ignored columns")[0].partition("columns")[2]

    def test_rows_without_label_are_left_out(self, folder, capsys):
        Path("t.csv").write_text("a,label\n" + "".join(f"{n % 7},{'xy'[n % 2] if n else ''}\n" for n in range(40)))
        _, err = run(capsys, "train", "t.csv", "m")
        assert "1 rows without a value of label are left out" in err

    def test_parquet_and_csv_give_the_same_model(self, folder, capsys):
        random = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "size": pd.Series(random.normal(size=80)).where(random.random(80) > 0.1),
                "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 500, 80), "D"),
                "town": random.choice(["Ulm", "Bonn"], 80), "label": random.choice(["a", "b"], 80),
            }
        )  # fmt: skip
        frame.to_csv("t.csv", index=False)
        frame.to_parquet("t.parquet")
        for name in ("t.csv", "t.parquet"):
            run(capsys, "train", name, f"{name}.m", "-q")
        csv, parquet = load("t.csv.m"), load("t.parquet.m")
        np.testing.assert_array_equal(csv[-1].dual_coef_, parquet[-1].dual_coef_)
        assert run(capsys, "predict", "t.csv", "t.parquet.m", "-q") == run(
            capsys, "predict", "t.parquet", "t.csv.m", "-q"
        )

    @pytest.mark.parametrize(
        ("new", "message"),
        [
            ("age\n1\n", "there is no column 'town', which the model needs; the columns are age"),
            ("age,town\nold,Ulm\n", "new.csv, line 2: column 'age' has 'old', but the model expects numbers"),
            ("age,town\n1,7\n", "column 'town' has numbers such as 7, but the model expects categories such as 'Bonn'"),
            ("1 1:2\n", "the model was trained on the columns of a table, and new.csv is none"),
        ],
    )
    def test_new_data_that_do_not_fit_are_one_error(self, new, message, folder, capsys):
        Path("t.csv").write_text(
            "age,town,label\n" + "".join(f"{n},{['Ulm', 'Bonn'][n % 2]},{'xy'[n % 3 > 0]}\n" for n in [3, 1, 9, 4] * 5)
        )
        run(capsys, "train", "t.csv", "m", "-q")
        Path("new.csv").write_text(new)
        options = ["--format", "libsvm"] if ":" in new else []
        out, err = run(capsys, "predict", "new.csv", "m", *options, code=1)
        assert out == ""
        assert len(err.splitlines()) == 1
        assert message in err

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["train", "t.csv", "--type", "size=number"], "there is no column named 'size'"),
            (["train", "t.csv", "--columns", "none.toml"], "none.toml: No such file or directory"),
            (["train", "t.csv", "--label", "none", "--estimator", "svc"], "no labels|has no labels|needs"),
            (["train", "chessboard:50", "--scaling", "none"], "--scaling is for tables"),
            (["train", "t.csv", "--write-columns", "no/x.toml"], "there is no folder"),
        ],
    )
    def test_options_that_do_not_fit_are_one_error(self, words, message, folder, capsys):
        Path("t.csv").write_text("age,town,label\n1,Ulm,x\n2,Bonn,y\n1,Ulm,x\n5,Bonn,y\n")
        _, err = run(capsys, *words, "-q", code=1)
        assert any(part in err for part in message.split("|"))
        assert len(err.splitlines()) == 1
