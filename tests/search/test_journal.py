"""What is in a journal is taken over, half a line is dropped, and other searches are refused."""

import json

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
    """Search until so many trials are known."""
    return grid_search(X, Y, **GRID, journal=path, watch=lambda found: len(found.trials) >= trials)


def test_going_on_gives_what_one_go_would(tmp_path):
    path = tmp_path / "a.jsonl"
    begun = begin(path)
    known = path.read_bytes()
    assert begun.status == "stopped"
    found = grid_search(X, Y, **GRID, refine=1, journal=path, resume=True)
    whole = grid_search(X, Y, **GRID, refine=1)
    assert [score[:3] for score in found.scores] == [score[:3] for score in whole.scores]
    assert path.read_bytes().startswith(known)  # what was known was not tried again
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + len(found.trials) == 1 + 3 * len(found.points)
    again = grid_search(X, Y, **GRID, refine=1, journal=path, resume=True)
    assert [score[:3] for score in again.scores] == [score[:3] for score in found.scores]
    assert path.read_text().splitlines() == lines


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_half_a_line_at_the_end_is_dropped(tmp_path, cut):
    path = tmp_path / "a.jsonl"
    begin(path)
    path.write_bytes(path.read_bytes()[:-cut])
    found = grid_search(X, Y, **GRID, journal=path, resume=True)
    assert len(found.scores) == 6
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(records) == 1 + 18
    assert len({(r["C"], r["gamma"], r["fold"]) for r in records[1:]}) == 18


def test_killed_in_the_first_line_or_never_begun(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"format": "maxm')
    (tmp_path / "b.jsonl").touch()
    for name in ("a", "b", "c"):
        found = grid_search(X, Y, Cs=[1], gammas=[1], journal=tmp_path / f"{name}.jsonl", resume=True)
        assert len((tmp_path / f"{name}.jsonl").read_text().splitlines()) == 1 + len(found.trials) == 6


def test_another_grid_takes_what_it_can(tmp_path):
    path = tmp_path / "a.jsonl"
    grid_search(X, Y, **GRID, journal=path)
    found = grid_search(X, Y, Cs=[100, 1000], gammas=[1], folds=3, journal=path, resume=True)
    assert {score.point.C for score in found.scores} == {100, 1000}
    assert len(path.read_text().splitlines()) == 1 + 18 + 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": X + 1}, "is about another search: data was"),
        ({"y": 1 - Y}, "data was"),
        ({"estimator": SVC(kernel="laplacian")}, "parameters was"),
        ({"folds": 4}, "folds was 3 there and is 4 now"),
        ({"seed": 1}, "seed was 0 there and is 1 now"),
        ({"scoring": "balanced_accuracy"}, "scoring was 'accuracy'"),
    ],
)
def test_another_search_is_refused(tmp_path, changed, message):
    path = tmp_path / "a.jsonl"
    begin(path)
    before = path.read_bytes()
    given = {"X": X, "y": Y, "estimator": SVC(), **GRID, **changed}
    with pytest.raises(ValueError, match=message):
        grid_search(given.pop("X"), given.pop("y"), given.pop("estimator"), **given, journal=path, resume=True)
    assert path.read_bytes() == before


def test_a_journal_is_not_overwritten(tmp_path):
    path = tmp_path / "a.jsonl"
    begin(path)
    with pytest.raises(FileExistsError, match="go on with it"):
        begin(path)


@pytest.mark.parametrize("content", ["notes\n", "[]\n", '{"format": "other"}\n', "\xff\n", "\n"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "a.jsonl"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match="line 1: this is no journal"):
        grid_search(X, Y, **GRID, journal=path, resume=True)
    begin(tmp_path / "b.jsonl")
    whole = (tmp_path / "b.jsonl").read_text().splitlines()
    path.write_text("\n".join([whole[0], '{"C": 1}', *whole[1:], ""]))
    with pytest.raises(ValueError, match="line 2: this is no journal"):
        grid_search(X, Y, **GRID, journal=path, resume=True)


def test_the_checksum_tells_data_apart():
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


def test_a_journal_without_trials_is_in_nobodys_way(tmp_path):
    path = tmp_path / "journal"
    Journal(path, {"seed": 0}, resume=False).close()
    again = Journal(path, {"seed": 1}, resume=False)
    again.add(Trial(Point(1.0, None), 0, 0.5, 0.1))
    again.close()
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2
    with pytest.raises(FileExistsError, match="earlier search"):
        Journal(path, {"seed": 1}, resume=False)
    path.write_text("somebody's only line\n", encoding="utf-8")
    with pytest.raises(FileExistsError, match="earlier search"):
        Journal(path, {"seed": 1}, resume=False)
