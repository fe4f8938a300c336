"""Heat map of a grid search with a cell for each point; a line without gamma."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color
from matplotlib.patches import Rectangle

from maxmargin import SVC, SVCCV, LinearSVRCV, OneClassSVMCV
from maxmargin.datasets import chessboard
from maxmargin.plotting import ScoreGridDisplay
from maxmargin.plotting.style import GREY
from maxmargin.search import Point
from maxmargin.search.grid_search_result import GridSearchResult
from maxmargin.search.journal import Trial
from maxmargin.search.score_colormap import colour_of, colour_range, format_score, text_colour_on


def searched(points, refined=(), scoring="accuracy", unknown=()):
    """Return a grid search whose scores increase with C."""
    trials = [
        Trial(point, fold, {"test_score": 0.5 + 0.01 * np.log2(point.C) + 0.001 * fold}, 0.1)
        for point in (*points, *refined)
        if point not in unknown
        for fold in range(2)
    ]
    rounds = (tuple(points), tuple(refined)) if refined else (tuple(points),)
    return GridSearchResult(SVC(), scoring, 2, rounds, tuple(trials))


GRID = [Point(c, g) for c in (1.0, 4.0, 16.0) for g in (0.25, 1.0)]


def cells(ax):
    return [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_fill()]


def test_cells_have_the_size_of_the_grid_step():
    display = ScoreGridDisplay.from_search(searched(GRID, [Point(8.0, 1.0), Point(32.0, 0.5)]))
    found = cells(display.ax_)
    assert [(cell.get_width(), cell.get_height()) for cell in found] == [(2.0, 2.0)] * 6 + [(1.0, 1.0)] * 2
    frame = next(patch for patch in display.ax_.patches if not patch.get_fill())
    assert (frame.get_x(), frame.get_y()) == (4.5, -1.5)  # the best is C = 2^5, gamma = 2^-1
    assert "2^{5}" in display.ax_.get_title()
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["1", "4", "$2^{4}$"]
    plt.close(display.figure_)


def test_points_without_score_are_grey():
    unknown = GRID[:1]
    display = ScoreGridDisplay.from_search(searched(GRID, unknown=unknown))
    assert len(display.ax_.texts) == 5
    assert [same_color(cell.get_facecolor(), GREY) for cell in cells(display.ax_)] == [True] + [False] * 5
    plt.close(display.figure_)


def test_large_grids_have_few_labels():
    points = [Point(2.0**c, 2.0**g) for c in range(30) for g in range(3)]
    display = ScoreGridDisplay.from_search(searched(points))
    assert not display.ax_.texts
    assert len(display.ax_.get_xticks()) <= 14
    plt.close(display.figure_)


def test_line_without_gamma():
    figure, ax = plt.subplots()
    display = ScoreGridDisplay.from_search(searched([Point(c, None) for c in (4.0, 1.0, 2.0)], scoring="r2"), ax=ax)
    assert display.ax_ is ax
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [1, 2, 4])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.5005, 0.5105, 0.5205])
    assert ax.get_ylabel() == "cross-validated r2"
    plt.close(figure)


def test_no_scores_is_an_error():
    with pytest.raises(ValueError, match="no point of the grid was finished"):
        ScoreGridDisplay.from_search(searched(GRID, unknown=GRID))


def test_shades_go_from_dark_to_bright():
    means = np.array([[0.5, 0.6, 0.7], [0.8, 0.9, np.nan]])
    low, high = colour_range(means)
    assert 0.5 < low < high == 0.9
    assert colour_of(0.5, low, high) == colour_of(low, low, high) == (0, 34, 78)
    assert colour_of(0.9, low, high) == (254, 232, 56)
    assert (text_colour_on(0.5, low, high), text_colour_on(0.9, low, high)) == ("white", "black")
    assert colour_of(0.3, 0.3, 0.3) == (254, 232, 56)  # all are as good
    assert colour_range(np.array([[np.nan]])) == (0.0, 1.0)


def test_words():
    assert format_score(0.96958, "accuracy") == "96.96 %"
    assert format_score(0.96958, "accuracy", short=True) == "97.0"
    assert format_score(0.5649, "r2") == "0.5649"
    assert format_score(-1234.5, "neg_mean_squared_error", short=True) == "-1.23e+03"


def test_path_of_the_search():
    display = ScoreGridDisplay.from_search(searched(GRID, [Point(8.0, 1.0), Point(32.0, 0.5)]))
    np.testing.assert_allclose(display.ax_.lines[0].get_xydata(), [[4, -2], [5, -1]])  # ties: the smaller gamma
    assert not ScoreGridDisplay.from_search(searched(GRID)).ax_.lines
    plt.close("all")


def test_chosen_point_of_an_estimator():
    X, y = chessboard(120, seed=1)
    grid = {"Cs": [1, 10, 100], "gammas": [0.1, 1]}
    model = SVCCV(**grid, refit=lambda results: 4).fit(X, y)
    display = ScoreGridDisplay.from_estimator(model)
    assert display.best.point == Point(100.0, 0.1)
    frame = next(patch for patch in display.ax_.patches if not patch.get_fill())
    assert frame.get_x() < np.log2(100) < frame.get_x() + frame.get_width()
    several = SVCCV(**grid, scoring=["accuracy", "roc_auc"], refit="accuracy").fit(X, y)
    assert "accuracy" in ScoreGridDisplay.from_estimator(several).ax_.get_title()
    assert "roc_auc" in ScoreGridDisplay.from_estimator(several, metric="roc_auc").ax_.get_title()
    with pytest.raises(ValueError, match=r"metric must be one of \['accuracy', 'roc_auc'\], not 'f1'"):
        ScoreGridDisplay.from_estimator(several, metric="f1")
    for other in (SVCCV(), SVC().fit(X, y), several.search_):
        with pytest.raises(ValueError, match="model must be a fitted SVCCV"):
            ScoreGridDisplay.from_estimator(other)
    plt.close("all")


def test_other_parameters():
    X, y = chessboard(120, seed=1)
    display = ScoreGridDisplay.from_estimator(OneClassSVMCV(nus=[0.1, 0.2], gammas=[1, 2], cv=2).fit(X))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("gamma", "nu")
    model = LinearSVRCV(Cs=[1, 4], epsilons=[0.0, 0.1, 0.2], cv=2).fit(X, y)
    display = ScoreGridDisplay.from_estimator(model)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["0", "0.1", "0.2"]
    assert display.ax_.get_yticks()[0] < display.ax_.get_yticks()[1]  # 0 is one step below
    display = ScoreGridDisplay.from_estimator(LinearSVRCV(Cs=[1], epsilons=[0.0, 0.1], cv=2, refine=1).fit(X, y))
    assert display.ax_.get_xlabel() == "C"
    plt.close("all")
