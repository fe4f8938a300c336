"""The map on a terminal fits into its columns and can be read without colours."""

import io

import pytest
from rich.console import Console

from maxmargin import SVC
from maxmargin.cli.heat_map import LiveMap, heat_map
from maxmargin.search import Point
from maxmargin.search.grid_search_result import GridSearchResult
from maxmargin.search.journal import Trial


def searched(costs, gammas, known=None):
    points = tuple(Point(c, g) for c in costs for g in gammas)
    trials = [Trial(p, f, 0.5 + 0.01 * number, 0.1) for number, p in enumerate(points[:known]) for f in range(2)]
    return GridSearchResult(SVC(), "accuracy", 2, (points,), tuple(trials), seconds=3.0)


def printed(found, columns):
    console = Console(file=io.StringIO(), width=columns, no_color=True)
    console.print(heat_map(found, columns))
    return console.file.getvalue().splitlines()


def test_scores_and_the_best_in_brackets():
    lines = printed(searched([1.0, 2.0**5], [0.5, 2.0]), 80)
    assert [line.split() for line in lines] == [
        ["gamma"], ["2", "51.0", "[53.0]"], ["0.5", "50.0", "52.0"], ["1", "2^5"], ["C"],
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [40, 80, 132])
@pytest.mark.parametrize("values", [1, 11, 25])
def test_maps_fit(columns, values):
    lines = printed(searched([2.0**k for k in range(values)], [2.0**-12.5, 1.0, 100.0]), columns)
    assert len(lines) == 6
    assert max(map(len, lines)) <= columns
    assert sum("[" in line or "*" in line for line in lines) == 1


def test_points_that_are_not_known_yet():
    lines = printed(searched([1.0, 2.0], [1.0], known=1), 80)
    assert lines[1].split() == ["1", "[50.0]", "·"]
    assert "·" in printed(searched([1.0, 2.0], [1.0], known=0), 80)[1]


def test_refinements_have_a_map_of_their_own():
    found = searched([1.0, 4.0], [1.0])
    found = GridSearchResult(
        found.estimator, "accuracy", 2, (*found.rounds, (Point(2.0, 0.5), Point(8.0, 0.5))), found.trials
    )
    assert sum("around the best" in line for line in printed(found, 80)) == 1


def test_a_live_map_is_silent_without_a_terminal_or_if_nobody_wants_it():
    for console, wanted in (
        (Console(file=io.StringIO()), True),
        (Console(file=io.StringIO(), force_terminal=True), False),
    ):
        with LiveMap(console, wanted) as shown:
            shown(searched([1.0], [1.0]))
        assert console.file.getvalue() == ""
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with LiveMap(console) as shown:
        shown.show("kernel", searched([1.0, 2.0], [1.0], known=1))
    assert "2 of 4 trials  3 s" in console.file.getvalue()
    assert "best so far: C = 1, gamma = 1: 50.00 %" in console.file.getvalue()
