"""Grids of C and γ, folds and subsets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import ParameterGrid

from maxmargin.search import Point, powers
from maxmargin.search.fold_scoring import assign_folds, draw_subset
from maxmargin.search.grid import C_RANGE, GAMMA_RANGE, format_value, grid_points, neighbours, typical_ratio


class TestAxes:
    def test_default_ranges_are_those_of_libsvm(self):
        assert powers(*C_RANGE) == tuple(2.0**k for k in range(-5, 16, 2))
        assert powers(*GAMMA_RANGE) == tuple(2.0**k for k in range(-15, 4, 2))

    @given(st.floats(1e-6, 1e6), st.floats(1.0, 1e6), st.floats(1.5, 100))
    def test_last_value_is_the_largest_within_the_range(self, low, ratio, factor):
        values = powers(low, low * ratio, factor)
        assert values[0] == low
        assert values[-1] <= low * ratio * (1 + 1e-6) < values[-1] * factor * (1 + 2e-6)
        if len(values) > 1:
            assert typical_ratio(values) == pytest.approx(factor, rel=1e-9)

    @pytest.mark.parametrize(
        "range_",
        [(0, 1, 2), (-1, 1, 2), (2, 1, 2), (1, 2, 1), (1, 2, 0.5), (1, np.inf, 2), (1, 1e9, 1.0001), (np.nan, 1, 2)],
    )
    def test_invalid_ranges_are_rejected(self, range_):
        with pytest.raises(ValueError, match="range|factor|more than"):
            powers(*range_)

    def test_neighbours_of_the_best_point(self):
        found = neighbours(Point(4.0, 1.0), {"C": 2.0, "gamma": 10.0}, [Point(4.0, 1.0), Point(8.000000000001, 1.0)])
        assert set(found) == {Point(c, g) for c in (2.0, 4.0, 8.0) for g in (0.1, 1.0, 10.0)} - {
            Point(4.0, 1.0), Point(8.0, 1.0)
        }  # fmt: skip
        assert neighbours(Point(4.0, None), {"C": 2.0}) == (Point(2.0, None), Point(4.0, None), Point(8.0, None))

    def test_neighbours_stay_in_the_range_of_epsilon_and_nu(self):
        found = neighbours(Point(nu=0.6, epsilon=0.0), {"nu": 2.0, "epsilon": 2.0})
        assert set(found) == {Point(nu=nu, epsilon=0.0) for nu in (0.3, 0.6)}

    def test_points(self):
        point = Point(8.0, epsilon=0.0, gamma=0.5)
        assert str(point) == "C = 8, gamma = 0.5, epsilon = 0"
        assert point.parameters == {"C": 8.0, "epsilon": 0.0, "gamma": 0.5}
        axes = {"nu": (0.1, 0.2), "gamma": (2.0, 1.0), "C": (1.0,)}
        expected = [{"C": C, "gamma": g, "nu": nu} for C in (1.0,) for g in (2.0, 1.0) for nu in (0.1, 0.2)]
        assert [point.parameters for point in grid_points(axes)] == expected
        assert expected == list(ParameterGrid({name: list(values) for name, values in axes.items()}))
        path = sorted([Point(2.0, 1.0), Point(1.0, 2.0), Point(1.0, 1.0)], key=lambda point: point.path_position)
        assert path == [Point(1.0, 1.0), Point(2.0, 1.0), Point(1.0, 2.0)]

    @pytest.mark.parametrize(
        ("value", "text"),
        [(2.0**-15, "2^-15"), (2.0**5.5, "2^5.5"), (8, "8"), (0.125, "0.125"), (1e5, "1e+05"), (0.0123, "0.0123")],
    )
    def test_format_value(self, value, text):
        assert format_value(value) == text


class TestFolds:
    @given(st.lists(st.integers(0, 4), min_size=10, max_size=80), st.integers(2, 10), st.integers(0, 3))
    def test_fold_sizes_differ_by_at_most_one_in_total_and_in_every_class(self, labels, folds, seed):
        y = np.array(labels + [5] * 20 + [6] * 20)
        fold_of = assign_folds(y, folds, seed, stratified=True)
        for members in (np.ones(len(y), dtype=bool), *(y == label for label in np.unique(y))):
            counts = np.bincount(fold_of[members], minlength=folds)
            assert counts.max() - counts.min() <= 1
        np.testing.assert_array_equal(fold_of, assign_folds(y, folds, seed, stratified=True))

    def test_folds_depend_on_the_seed(self):
        y = np.arange(40) % 2
        assert (assign_folds(y, 5, 0, True) != assign_folds(y, 5, 1, True)).any()
        assert (assign_folds(y, 5, 0, False) != np.sort(assign_folds(y, 5, 0, False))).any()

    def test_too_small_classes_are_rejected(self):
        with pytest.raises(ValueError, match="only one class is left"):
            assign_folds(np.array([0, 1, 1, 1]), 2, 0, True)
        with pytest.raises(ValueError, match="all 3 samples are of class a"):
            assign_folds(np.array(["a", "a", "a"]), 2, 0, True)

    def test_subset_contains_all_classes_in_proportion(self):
        y = np.array(["often"] * 900 + ["seldom"] * 97 + ["rare"] * 3)
        rows = draw_subset(y, 100, 0, stratified=True)
        labels, counts = np.unique(y[rows], return_counts=True)
        assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == {"often": 90, "rare": 2, "seldom": 10}
        assert (np.diff(rows) > 0).all()
        np.testing.assert_array_equal(draw_subset(y, 5000, 0, True), np.arange(1000))
        assert len(set(draw_subset(y, 100, 0, stratified=False).tolist())) == 100
