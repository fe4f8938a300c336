"""The heat map fits into the columns of the terminal and is legible without colours."""

import io

import pytest
from rich.console import Console

from maxmargin import SVC
from maxmargin.cli.heat_map import LiveHeatMap, heat_map
from maxmargin.search import Point
from maxmargin.search.grid_search_result import GridSearchResult
from maxmargin.search.journal import Trial


def search_result(costs, gammas, known=None):
    points = tuple(Point(c, g) for c in costs for g in gammas)
    trials = [
        Trial(p, f, {"test_score": 0.5 + 0.01 * number}, 0.1)
        for number, p in enumerate(points[:known])
        for f in range(2)
    ]
    return GridSearchResult(SVC(), "accuracy", 2, (points,), tuple(trials), seconds=3.0)


def printed(found, columns):
    console = Console(file=io.StringIO(), width=columns, no_color=True)
    console.print(heat_map(found, columns))
    return console.file.getvalue().splitlines()


def test_best_score_is_in_brackets():
    lines = printed(search_result([1.0, 2.0**5], [0.5, 2.0]), 80)
    assert [line.split() for line in lines] == [
        ["gamma"], ["2", "51.0", "[53.0]"], ["0.5", "50.0", "52.0"], ["1", "2^5"], ["C"],
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [40, 80, 132])
@pytest.mark.parametrize("values", [1, 11, 25])
def test_map_fits_the_terminal(columns, values):
    lines = printed(search_result([2.0**k for k in range(values)], [2.0**-12.5, 1.0, 100.0]), columns)
    assert len(lines) == 6
    assert max(map(len, lines)) <= columns
    assert sum("[" in line or "*" in line for line in lines) == 1


def test_unfinished_points():
    lines = printed(search_result([1.0, 2.0], [1.0], known=1), 80)
    assert lines[1].split() == ["1", "[50.0]", "·"]
    assert "·" in printed(search_result([1.0, 2.0], [1.0], known=0), 80)[1]


def test_refinements_have_their_own_map():
    found = search_result([1.0, 4.0], [1.0])
    found = GridSearchResult(
        found.estimator, "accuracy", 2, (*found.rounds, (Point(2.0, 0.5), Point(8.0, 0.5))), found.trials
    )
    assert sum("around the best point" in line for line in printed(found, 80)) == 1


def test_live_map_is_silent_without_a_terminal_or_if_quiet():
    for console, shown in (
        (Console(file=io.StringIO()), True),
        (Console(file=io.StringIO(), force_terminal=True), False),
    ):
        with LiveHeatMap(console, shown) as live_map:
            live_map(search_result([1.0], [1.0]))
        assert console.file.getvalue() == ""
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with LiveHeatMap(console) as live_map:
        live_map.show("kernel", search_result([1.0, 2.0], [1.0], known=1))
    assert "2 of 4 trials  3 s" in console.file.getvalue()
    assert "best so far: C = 1, gamma = 1: 50.00 %" in console.file.getvalue()
