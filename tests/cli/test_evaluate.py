"""`maxmargin evaluate`: metrics equal those of scikit-learn; cross-validation, ROC curves, error messages."""

import json
import re

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from cli.terminal import Terminal
from maxmargin import SVC, SVDD, SVR, OneClassSVM, RankSVC, save
from maxmargin.cli import metrics as cli_metrics
from maxmargin.cli.main import main


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *words, code=0):
    exit_code = main(["evaluate", *map(str, words)])
    out, err = capsys.readouterr()
    assert exit_code == code, err
    return out, err


def evaluate_json(capsys, *words):
    return json.loads(run(capsys, *words, "--json", "-q")[0])


class TestMetrics:
    def test_two_classes(self, folder, capsys):
        X, y = load_breast_cancer(return_X_y=True)
        X, words = X[:200] / X.max(axis=0), np.array(["bad", "good"])[y[:200]]
        np.savez("data.npz", X=X, y=words)
        model = SVC(probability=True).fit(X[:100], words[:100])
        save(model, "m")
        found = evaluate_json(capsys, "data.npz", "m")
        predicted, proba = model.predict(X), model.predict_proba(X)
        assert found["accuracy"] == metrics.accuracy_score(words, predicted)
        assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(words, predicted))
        assert found["macro_f1"] == pytest.approx(metrics.f1_score(words, predicted, average="macro"))
        assert found["confusion_matrix"] == metrics.confusion_matrix(words, predicted).tolist()
        assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(words == "good", model.decision_function(X)))
        assert found["log_loss"] == pytest.approx(metrics.log_loss(words, proba))
        report = metrics.classification_report(words, predicted, output_dict=True)
        for one in found["classes"]:
            expected = report[one["label"]]
            assert [one["precision"], one["recall"], one["f1"], one["samples"]] == pytest.approx(
                [expected["precision"], expected["recall"], expected["f1-score"], expected["support"]]
            )

    def test_many_classes(self, folder, capsys):
        X, y = load_digits(return_X_y=True)
        X, y = X[:400], y[:400].astype(float)
        np.savez("data.npz", X=X, y=y)
        model = SVC(gamma=0.001).fit(X[:200], y[:200])
        save(model, "m")
        found = evaluate_json(capsys, "data.npz", "m")
        scores = model.decision_function(X)
        areas = [metrics.roc_auc_score(y == label, scores[:, column]) for column, label in enumerate(model.classes_)]
        assert found["roc_auc"] == pytest.approx(np.mean(areas))
        assert "log_loss" not in found

    def test_labels_unknown_to_the_model(self, folder, capsys):
        X, y = load_iris(return_X_y=True)
        np.savez("data.npz", X=X, y=y)
        save(SVC().fit(X[y < 2], y[y < 2]), "m")
        found = evaluate_json(capsys, "data.npz", "m")
        assert found["accuracy"] == pytest.approx(2 / 3)
        assert [one["label"] for one in found["classes"]] == [0, 1, 2]
        assert found["confusion_matrix"][2][2] == 0
        assert found["roc_auc"] == 1.0

    def test_single_class_has_no_roc_curve(self):
        y = np.ones(5)
        found = cli_metrics.classification_metrics(y, y, np.array([-1.0, 1.0]), np.linspace(0, 1, 5))
        assert found["accuracy"] == 1
        assert "roc_auc" not in found

    def test_regression(self, folder, capsys):
        random = np.random.default_rng(0)
        X = random.normal(size=(80, 2))
        y = X[:, 0] + 0.1 * random.normal(size=80)
        np.savez("data.npz", X=X, y=y)
        model = SVR().fit(X, y)
        save(model, "m")
        found = evaluate_json(capsys, "data.npz", "m")
        predicted = model.predict(X)
        assert found["mean_squared_error"] == pytest.approx(metrics.mean_squared_error(y, predicted))
        assert found["mean_absolute_error"] == pytest.approx(metrics.mean_absolute_error(y, predicted))
        assert found["median_absolute_error"] == pytest.approx(metrics.median_absolute_error(y, predicted))
        assert found["r2"] == pytest.approx(metrics.r2_score(y, predicted))
        assert found["correlation"] == pytest.approx(np.corrcoef(y, predicted)[0, 1])
        assert "r2" not in cli_metrics.regression_metrics(np.ones(3), np.zeros(3))

    @pytest.mark.parametrize("kind", [OneClassSVM, SVDD])
    def test_novelty_detection(self, kind, folder, capsys):
        random = np.random.default_rng(0)
        X = np.vstack([random.normal(size=(100, 2)), random.normal(3, 1, size=(20, 2))])
        y = np.repeat([1.0, -1.0], [100, 20])
        np.savez("data.npz", X=X, y=y)
        np.savez("plain.npz", X=X)
        model = kind(nu=0.1).fit(X[:100])
        save(model, "m")
        found = evaluate_json(capsys, "data.npz", "m")
        assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(y, model.decision_function(X)))
        assert found["accuracy"] == np.mean(model.predict(X) == y)
        assert (
            found["inlier_fraction"]
            == evaluate_json(capsys, "plain.npz", "m")["inlier_fraction"]
            == np.mean(model.predict(X) == 1)
        )

    def test_ranking(self, folder, capsys):
        random = np.random.default_rng(0)
        X = random.normal(size=(60, 3))
        y, queries = np.rint(2 * X[:, 0] + random.normal(size=60)), np.arange(60) // 15
        np.savez("data.npz", X=X, y=y, query=queries)
        model = RankSVC(kernel="linear").fit(X, y, queries)
        save(model, "m")
        found = evaluate_json(capsys, "data.npz", "m")
        assert found["concordance"] == pytest.approx(model.score(X, y, queries))
        assert found["queries"] == 4
        assert "concordance" not in cli_metrics.ranking_metrics(np.ones(3), np.arange(3.0), None)


class TestFolds:
    def test_folds_are_those_of_scikit_learn(self, folder, capsys):
        X, y = load_iris(return_X_y=True)
        np.savez("iris.npz", X=X, y=y)
        found = evaluate_json(capsys, "iris.npz", "--folds", 5, "-C", 10, "-g", 0.5, "--seed", 3)
        folds = StratifiedKFold(5, shuffle=True, random_state=3)
        model = SVC(C=10, gamma=0.5, callback=lambda _: None)
        predicted = cross_val_predict(model, X, y, cv=folds)
        assert found["confusion_matrix"] == metrics.confusion_matrix(y, predicted).tolist()
        scores = cross_val_predict(model, X, y, cv=folds, method="decision_function")
        areas = [metrics.roc_auc_score(y == label, scores[:, label]) for label in range(3)]
        assert found["roc_auc"] == pytest.approx(np.mean(areas))

    def test_every_task(self, folder, capsys):
        random = np.random.default_rng(0)
        X = random.normal(size=(90, 3))
        np.savez("values.npz", X=X, y=X[:, 0] + 0.1 * random.normal(size=90))
        np.savez("orders.npz", X=X, y=np.rint(3 * X[:, 0]), query=np.arange(90) // 10)
        assert evaluate_json(capsys, "values.npz", "--folds", 3, "--estimator", "linear-svr")["r2"] > 0.9
        assert evaluate_json(capsys, "orders.npz", "--folds", 3, "--estimator", "rank-svc")["concordance"] > 0.9
        assert (
            0
            < evaluate_json(capsys, "values.npz", "--folds", 3, "--estimator", "one-class", "--nu", 0.2)[
                "inlier_fraction"
            ]
            < 1
        )

    def test_probabilities_and_limits(self, folder, capsys):
        X, y = load_iris(return_X_y=True)
        np.savez("iris.npz", X=X, y=y)
        assert evaluate_json(capsys, "iris.npz", "--folds", 3, "--probability")["log_loss"] < 0.3
        _, err = run(capsys, "iris.npz", "--folds", 3, "--max-iter", 1, code=3)
        assert "fold 1/3: " in err
        assert "the limit on iterations was reached" in err


def test_roc_curves(folder, capsys):
    X, y = load_iris(return_X_y=True)
    np.savez("iris.npz", X=X, y=y)
    run(capsys, "iris.npz", "--folds", 3, "--roc", "roc.png")
    assert (folder / "roc.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "roc.png").stat().st_size > 10_000


def test_tables_on_a_terminal(folder):
    X, y = load_iris(return_X_y=True)
    np.savez("iris.npz", X=X, y=y)
    save(SVC().fit(X, y), "m")
    terminal = Terminal("evaluate", "iris.npz", "m", columns=80)
    written = terminal.read()
    assert terminal.code() == 0
    assert re.search(r"accuracy +97\.3333%", written)
    assert re.search(r"│ 1 +│ +0 │ +48 │ +2 │", written)


def test_many_classes_list_the_most_frequent_confusions(folder, capsys):
    X, y = np.random.default_rng(0).normal(size=(100, 2)), np.arange(100) % 20
    np.savez("data.npz", X=X, y=y)
    save(SVC().fit(X, y), "m")
    out, _ = run(capsys, "data.npz", "m")
    lines = out[out.index("true\tpredicted\tsamples") :].splitlines()
    assert len(lines) == 13
    counts = [int(line.split("\t")[2]) for line in lines[1:]]
    assert counts == sorted(counts, reverse=True)
    assert all(line.split("\t")[0] != line.split("\t")[1] for line in lines[1:])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["iris.npz"], "give either a MODEL, or --folds K"),
        (["iris.npz", "m", "--folds", "3"], "give either a MODEL, or --folds K"),
        (["iris.npz", "--folds", "1"], "between 2 and the number of samples, 150, not 1"),
        (["rare.npz", "--folds", "3"], "a class has only 2 samples, but each of 3 folds needs one: use --folds 2"),
        (
            ["alone.npz", "--folds", "2"],
            "a class has only 1 sample, but each of 2 folds needs one: remove that class",
        ),
        (
            ["values.npz", "m"],
            "the labels of values.npz are fractional numbers, and the model predicts classes",
        ),
        (["plain.npz", "m"], "plain.npz has no labels to compare with"),
        (["plain.npz", "--folds", "3"], "there are no labels"),
        (["values.npz", "r", "--roc", "roc.png"], "a ROC curve needs"),
        (["iris.npz", "m", "--roc", "no/such/folder/roc.png"], "there is no folder no/such/folder"),
    ],
)
def test_errors_are_one_line(words, message, folder, capsys):
    X, y = load_iris(return_X_y=True)
    np.savez("iris.npz", X=X, y=y)
    np.savez("plain.npz", X=X)
    np.savez("values.npz", X=X, y=X[:, 0])
    np.savez("rare.npz", X=X[:52], y=y[:52])
    np.savez("alone.npz", X=X[:51], y=y[:51])
    save(SVC().fit(X, y), "m")
    save(SVR().fit(X, X[:, 0]), "r")
    _, err = run(capsys, *words, "-q", code=1)
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_limit_that_ended_the_training_is_evaluate_json(folder, capsys):
    words = ["chessboard:200", "--folds", 3, "-C", 100, "--json"]
    assert json.loads(run(capsys, *words)[0])["status"] == "finished"
    out, err = run(capsys, *words, "--max-iter", 1, code=3)
    assert json.loads(out)["status"] == "limited"
    assert "fold 3/3: the limit on iterations was reached" in err
