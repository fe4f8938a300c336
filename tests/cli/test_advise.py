"""`maxmargin advise`: the plan that `maxmargin easy` follows."""

import json

import numpy as np
import pytest

from maxmargin.cli.main import main
from maxmargin.datasets import dump_libsvm, friedman1
from maxmargin.search import choose_estimator, selection_plan


def advised(capsys, *arguments):
    """Return the advice for data."""
    assert main(["advise", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_two_machines_for_dense_classes(capsys):
    found = advised(capsys, "chessboard:300")
    assert found["task"] == "classification"
    assert "scaled to [-1, 1]" in found["scaling"]
    linear, kernel = found["machines to compare"].split("; ")
    assert linear.startswith("LinearSVC, C from 0.000488 to 512")
    assert kernel.startswith("SVC with a Gaussian kernel, C from 0.0312 to 2.05e+03, gamma from about ")
    assert found["model selection"] == "cross-validation on all samples"
    assert found["command"] == "maxmargin easy chessboard:300"


def test_a_linear_model_for_text(capsys):
    found = advised(capsys, "documents:300")
    assert found["machines to compare"].startswith("LinearSVC")
    assert ";" not in found["machines to compare"]
    assert "10,000 features" in found["notes"][0]
    assert found["final fit"] == "LinearSVC on all samples"


def test_regression_by_its_targets_or_by_the_option(folder, capsys):
    dump_libsvm(*friedman1(200), folder / "targets")
    assert advised(capsys, "targets")["task"] == "regression"
    found = advised(capsys, "chessboard:300", "--task", "regression")
    assert "SVR with a Gaussian kernel" in found["machines to compare"]
    assert "epsilon is 0.1 standard deviations" in found["notes"][0]
    assert found["command"] == "maxmargin easy chessboard:300 --task regression"


def test_large_data_are_searched_on_a_subset_and_get_landmarks(capsys, monkeypatch):
    monkeypatch.setattr(selection_plan, "SEARCH_SAMPLES", 100)
    monkeypatch.setattr(selection_plan, "CONFIRMATION_SAMPLES", 200)
    monkeypatch.setattr(selection_plan, "MAX_EXACT_SAMPLES", 500)
    found = advised(capsys, "chessboard:1000")
    assert found["model selection"] == "cross-validation on 100 of 1,000 samples; the best points again on 400"
    assert "1,000 samples are too many for an exact fit" in found["final fit"]


def test_the_plan_is_followed():
    random = np.random.default_rng(0)
    X, y = random.uniform(-1, 1, (200, 3)), random.integers(0, 2, 200)
    plan = selection_plan.plan_selection(choose_estimator(X, y, classification=True, folds=2).summary)
    searches = choose_estimator(X, y, classification=True, folds=2).searches
    tried = {"linear": plan.linear, "kernel": plan.kernel}
    assert set(searches) == set(tried)
    for name, candidate in tried.items():
        assert type(searches[name].estimator) is type(candidate.estimator)
        assert {point.C for point in searches[name].rounds[0]} == set(candidate.Cs)


def test_rare_class_is_noted(folder, capsys):
    random = np.random.default_rng(0)
    dump_libsvm(random.normal(size=(300, 2)), np.arange(300) < 10, folder / "rare")
    assert any("accuracy would be misleading" in note for note in advised(capsys, "rare")["notes"])


@pytest.mark.parametrize(
    ("labels", "message"), [("1111111", "all 7 samples are of class 1.0"), ("12", "2 samples can be split into 2 to 2")]
)
def test_what_easy_would_refuse_is_refused(labels, message, folder, capsys):
    (folder / "data").write_text("".join(f"{label} 1:0.{k}\n" for k, label in enumerate(labels)), encoding="utf-8")
    errors = []
    for command in ("advise", "easy"):
        assert main([command, "data"]) == 1
        errors.append(capsys.readouterr().err.splitlines()[-1])
    assert message in errors[0]
    assert errors[0] == errors[1]
