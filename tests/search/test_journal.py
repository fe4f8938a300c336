"""Resuming from a journal: finished trials are reused, incomplete lines dropped, other searches rejected."""

import json
import math

import numpy as np
import pytest
from scipy import sparse

from maxmargin import SVC, grid_search
from maxmargin.datasets import chessboard
from maxmargin.datasets.samples import checksum
from maxmargin.search.grid import Point
from maxmargin.search.journal import Journal, Trial

X, Y = chessboard(100, noise=0.05, seed=1)
GRID = {"Cs": [1, 10, 100], "gammas": [0.1, 1], "folds": 3}


def begin(path, trials=7):
    """Run a search that stops after some trials."""
    return grid_search(X, Y, **GRID, journal=path, callback=lambda found: len(found.trials) >= trials)


def test_resumed_search_equals_an_uninterrupted_one(tmp_path):
    path = tmp_path / "a.jsonl"
    begun = begin(path)
    known = path.read_bytes()
    assert begun.status == "stopped"
    found = grid_search(X, Y, **GRID, refine=1, journal=path, resume=True)
    whole = grid_search(X, Y, **GRID, refine=1)
    assert [score[:3] for score in found.scores] == [score[:3] for score in whole.scores]
    assert path.read_bytes().startswith(known)  # no trial is repeated
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + len(found.trials) == 1 + 3 * len(found.points)
    again = grid_search(X, Y, **GRID, refine=1, journal=path, resume=True)
    assert [score[:3] for score in again.scores] == [score[:3] for score in found.scores]
    assert path.read_text().splitlines() == lines


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_incomplete_last_line_is_dropped(tmp_path, cut):
    path = tmp_path / "a.jsonl"
    begin(path)
    path.write_bytes(path.read_bytes()[:-cut])
    found = grid_search(X, Y, **GRID, journal=path, resume=True)
    assert len(found.scores) == 6
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(records) == 1 + 18
    assert len({(r["C"], r["gamma"], r["fold"]) for r in records[1:]}) == 18


def test_empty_journal_or_incomplete_first_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"format": "maxm')
    (tmp_path / "b.jsonl").touch()
    for name in ("a", "b", "c"):
        found = grid_search(X, Y, Cs=[1], gammas=[1], journal=tmp_path / f"{name}.jsonl", resume=True)
        assert len((tmp_path / f"{name}.jsonl").read_text().splitlines()) == 1 + len(found.trials) == 6


def test_another_grid_reuses_common_points(tmp_path):
    path = tmp_path / "a.jsonl"
    grid_search(X, Y, **GRID, journal=path)
    found = grid_search(X, Y, Cs=[100, 1000], gammas=[1], folds=3, journal=path, resume=True)
    assert {score.point.C for score in found.scores} == {100, 1000}
    assert len(path.read_text().splitlines()) == 1 + 18 + 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": X + 1}, "is the journal of a different search: its data is"),
        ({"y": 1 - Y}, "its data is"),
        ({"estimator": SVC(kernel="laplacian")}, "its parameters is"),
        ({"folds": 4}, "its folds is 3, here it is 4"),
        ({"seed": 1}, "its seed is 0, here it is 1"),
        ({"scoring": "balanced_accuracy"}, "its scoring is 'accuracy'"),
    ],
)
def test_journal_of_a_different_search_is_rejected(tmp_path, changed, message):
    path = tmp_path / "a.jsonl"
    begin(path)
    before = path.read_bytes()
    given = {"X": X, "y": Y, "estimator": SVC(), **GRID, **changed}
    with pytest.raises(ValueError, match=message):
        grid_search(given.pop("X"), given.pop("y"), given.pop("estimator"), **given, journal=path, resume=True)
    assert path.read_bytes() == before


def test_existing_journal_is_not_overwritten(tmp_path):
    path = tmp_path / "a.jsonl"
    begin(path)
    with pytest.raises(FileExistsError, match="resume it"):
        begin(path)


@pytest.mark.parametrize("content", ["notes\n", "[]\n", '{"format": "other"}\n', "\xff\n", "\n"])
def test_other_files_are_rejected(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match="line 1: this is not a journal"):
        grid_search(X, Y, **GRID, journal=path, resume=True)
    begin(tmp_path / "b.jsonl")
    whole = (tmp_path / "b.jsonl").read_text().splitlines()
    path.write_text("\n".join([whole[0], '{"C": 1}', *whole[1:], ""]))
    with pytest.raises(ValueError, match="line 2: this is not a journal"):
        grid_search(X, Y, **GRID, journal=path, resume=True)


def test_checksum_depends_on_the_data():
    words = np.array(["a", "b"])
    numbers = np.array([0.0, 1.0])
    table = np.array([[0.0, 1.0], [2.0, 0.0]])
    other = table.copy()
    other[0, 1] = np.nextafter(1.0, 2.0)
    found = [
        checksum(table, numbers), checksum(other, numbers), checksum(table, numbers[::-1]), checksum(table, words),
        checksum(table.T, numbers), checksum(sparse.csr_matrix(table), numbers), checksum(table[:1], numbers[:1]),
        checksum(table, words[::-1]),
    ]  # fmt: skip
    assert len(set(found)) == len(found)
    assert checksum(table.copy(), numbers.copy()) == found[0]


def test_journal_without_trials_is_overwritten(tmp_path):
    path = tmp_path / "journal"
    Journal(path, {"seed": 0}, resume=False).close()
    again = Journal(path, {"seed": 1}, resume=False)
    again.add(Trial(Point(1.0, None), 0, {"test_score": 0.5}, 0.1))
    again.close()
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2
    with pytest.raises(FileExistsError, match="earlier search"):
        Journal(path, {"seed": 1}, resume=False)
    path.write_text("another file of one line\n", encoding="utf-8")
    with pytest.raises(FileExistsError, match="earlier search"):
        Journal(path, {"seed": 1}, resume=False)


def test_a_repeated_trial_counts_once(tmp_path):
    path = tmp_path / "journal"
    expected = grid_search(X, Y, **GRID)
    begin(path, 4)
    first, *trials = path.read_text().splitlines(keepends=True)
    path.write_text("".join([first, *trials, trials[-1], trials[0], trials[0]]))
    found = grid_search(X, Y, **GRID, journal=path, resume=True)
    assert found.status == "complete"
    assert [score[:3] for score in found.scores] == [score[:3] for score in expected.scores]
    assert len(found.points) == len(found.scores)


def written(C, fold, score):
    """Return a line of a journal."""
    scores = f'"scores": {{"test_score": {score}}}, "fit_seconds": 1, "score_seconds": 0'
    return f'{{"C": {C}, "gamma": 1.0, "fold": {fold}, {scores}}}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("different score", "lines 2 and 6 have different scores of fold"),
        (
            written("1.0", "1.5", "0.5"),
            "line 6: this is not a journal",
        ),
        (
            written("1.0", "3", "0.5"),
            "line 6: this is not a journal",
        ),
        (
            written("1.0", "-1", "0.5"),
            "line 6: this is not a journal",
        ),
        (
            written("1.0", "0", "NaN"),
            "line 6: this is not a journal",
        ),
        (
            written("1e999", "0", "1"),
            "line 6: this is not a journal",
        ),
        (
            written('"1"', "0", "1"),
            "line 6: this is not a journal",
        ),
        (
            written("true", "0", "1"),
            "line 6: this is not a journal",
        ),
        ('{"C": 1.0, "gamma": 1.0, "fold": 0}', "line 6: this is not a journal"),
        ("[" * 100_000, "line 6: this is not a journal"),
        ("9" * 5000, "line 6: this is not a journal"),
        ("\0" * 20, "line 6: this is not a journal"),
        ("", "line 6: this is not a journal"),
    ],
)
def test_a_damaged_journal_is_an_error_and_remains(tmp_path, line, message):
    path = tmp_path / "journal"
    begin(path, 4)
    lines = path.read_text().splitlines()[:5]
    if line == "different score":
        line = json.dumps({**json.loads(lines[1]), "scores": {"test_score": 0.123}})
    content = "\n".join([*lines, line, ""]).encode()
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        grid_search(X, Y, **GRID, journal=path, resume=True)
    assert path.read_bytes() == content


def test_another_file_without_a_line_end_is_not_overwritten(tmp_path):
    path = tmp_path / "notes"
    path.write_text("my notes")
    with pytest.raises(ValueError, match="line 1: this is not a journal"):
        grid_search(X, Y, **GRID, journal=path, resume=True)
    with pytest.raises(FileExistsError, match="or another file"):
        grid_search(X, Y, **GRID, journal=path)
    assert path.read_text() == "my notes"


def test_several_scores_and_parameters(tmp_path):
    path = tmp_path / "journal"
    trials = [
        Trial(Point(1.0, 2.0, 0.0), 0, {"test_a": 0.1, "train_a": 1.0}, 0.5, 0.25),
        Trial(Point(nu=0.3), 1, {"test_a": -1e300}, 0.5, 0.25),
    ]
    lost = Trial(Point(nu=0.3), 0, {"test_a": math.nan}, 0.5, 0.25)
    failed = Trial(Point(nu=0.4), 0, {}, 0.5, 0.25, "ValueError: no")
    journal = Journal(path, {"folds": 2}, resume=False)
    for trial in (*trials, lost, failed):
        journal.add(trial)
    journal.close()
    again = Journal(path, {"folds": 2}, resume=True)
    again.close()
    assert again.known[:2] == trials
    assert math.isnan(again.known[2].scores["test_a"])
    assert len(again.known) == 3  # a trial that failed is repeated
    assert trials[0].seconds == 0.75
    with path.open("a") as file:
        file.write(path.read_text().splitlines()[3] + "\n")  # nan is nan
    Journal(path, {"folds": 2}, resume=True).close()
