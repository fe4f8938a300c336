"""Scores equal those of scikit-learn on the same folds; limits and Ctrl-C return the result so far."""

from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import PredefinedSplit, cross_val_score

from maxmargin import LSSVC, SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM, grid_search
from maxmargin.datasets import chessboard
from maxmargin.search import Point
from maxmargin.search.fold_scoring import FoldScorer, assign_folds
from maxmargin.search.grid_search_result import GridSearchResult
from maxmargin.search.journal import Trial

X, Y = chessboard(120, noise=0.05, seed=1)


def iris():
    samples, labels = load_iris(return_X_y=True)
    return samples, np.array(["setosa", "versicolor", "virginica"])[labels]


def targets():
    samples, values = load_diabetes(return_X_y=True)
    return samples[:150], values[:150]


class TestScores:
    @pytest.mark.parametrize(
        ("estimator", "data", "scoring"),
        [
            (SVC(), (X, Y), "accuracy"),
            (SVC(kernel="poly", degree=2), iris(), "balanced_accuracy"),
            (SVC(kernel="linear"), (sparse.csr_matrix(X), Y), "accuracy"),
            (SVC(multi_class="ovr"), iris(), "f1_macro"),
            (LSSVC(), (X, Y), "accuracy"),
            (LinearSVC(tol=1e-8), iris(), "accuracy"),
            (SVR(epsilon=5), targets(), "r2"),
            (LinearSVR(tol=1e-8, loss="squared_epsilon_insensitive"), targets(), "neg_mean_squared_error"),
        ],
    )
    def test_scores_equal_those_of_scikit_learn(self, estimator, data, scoring):
        samples, labels = data
        gammas = [0.1, 1.0] if getattr(estimator, "kernel", "linear") != "linear" else None
        found = grid_search(samples, labels, estimator, Cs=[1, 10], gammas=gammas, folds=3, scoring=scoring, seed=4)
        assert found.status == "complete"
        assert len(found.scores) == (4 if gammas else 2)
        split = PredefinedSplit(assign_folds(labels, 3, 4, stratified=labels.dtype.kind != "f"))
        for point, mean, std, _ in found.scores:
            own = type(estimator)(**estimator.get_params()).set_params(C=point.C)
            if point.gamma is not None:
                own.set_params(gamma=point.gamma)
            expected = cross_val_score(own, samples, labels, cv=split, scoring=scoring)
            assert mean == pytest.approx(expected.mean(), abs=1e-6, rel=1e-6)
            assert std == pytest.approx(expected.std(ddof=1), abs=1e-6, rel=1e-5)

    def test_precomputed_kernel(self):
        gaussian = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
        given = grid_search(gaussian, Y, SVC(kernel="precomputed"), Cs=[1, 10])
        computed = grid_search(X, Y, SVC(gamma=1.0), Cs=[1, 10], gammas=[])
        assert [score.mean for score in given.scores] == [score.mean for score in computed.scores]
        assert given.best.point.gamma is None

    def test_epsilon(self):
        found = grid_search(*targets(), SVR(), Cs=[10], gammas=[1], epsilons=[5, 0], folds=3)
        assert {score.point for score in found.scores} == {Point(10.0, 1.0, epsilon) for epsilon in (0.0, 5.0)}
        assert found.best_estimator.epsilon == found.best.point.epsilon
        assert found.values == {"C": (10.0,), "gamma": (1.0,), "epsilon": (0.0, 5.0)}
        refined = grid_search(*targets(), LinearSVR(), Cs=[1, 4], epsilons=[0, 1, 4], folds=3, refine=1)
        assert all(score.point.epsilon >= 0 for score in refined.scores)

    def test_nu(self):
        found = grid_search(X, Y, NuSVC(), nus=[0.2, 0.1], gammas=[1], folds=3)
        assert {score.point for score in found.scores} == {Point(None, 1.0, None, nu) for nu in (0.1, 0.2)}
        split = PredefinedSplit(assign_folds(Y, 3, 0, stratified=True))
        for point, mean, *_ in found.scores:
            expected = cross_val_score(NuSVC(nu=point.nu, gamma=1.0), X, Y, cv=split)
            assert mean == pytest.approx(expected.mean(), abs=1e-9)
        both = grid_search(*targets(), NuSVR(), Cs=[10], nus=[0.3, 1.0], gammas=[1], folds=3, refine=1)
        assert all(0 < score.point.nu <= 1 for score in both.scores)

    def test_callable_scorer(self):
        def nearness(model, samples, labels):
            return -mean_absolute_error(labels, model.predict(samples))

        own = grid_search(*targets(), SVR(), Cs=[1, 10], gammas=[1], scoring=nearness)
        made = grid_search(
            *targets(), SVR(), Cs=[1, 10], gammas=[1], scoring=make_scorer(mean_absolute_error, greater_is_better=False)
        )
        assert own.scoring == "nearness"
        assert [score.mean for score in own.scores] == pytest.approx([score.mean for score in made.scores])

    def test_scores_do_not_depend_on_the_number_of_threads(self):
        samples, labels = chessboard(600, noise=0.1, seed=2)
        found = [grid_search(samples, labels, Cs=[1, 100], gammas=[0.1, 1], folds=3, n_jobs=n) for n in (1, 3)]
        assert [score[:3] for score in found[0].scores] == [score[:3] for score in found[1].scores]

    @pytest.mark.parametrize(
        ("estimator", "samples", "expected"),
        [
            (LinearSVC(), X, False),
            (LinearSVC(penalty="l1"), X, True),
            (LinearSVC(dual=True), X, True),
            (LinearSVC(multi_class="crammer_singer"), X, True),
            (LinearSVC(), np.zeros((120, 65)), True),
            (LinearSVC(), np.broadcast_to(np.zeros((1, 60)), (10_000, 60)), True),
            (LinearSVC(), sparse.csr_matrix(X), True),
            (SVC(), X, False),
        ],
    )
    def test_which_trials_start_from_the_previous_cost(self, estimator, samples, expected):
        scorer = FoldScorer.of(estimator, samples, np.arange(samples.shape[0]) % 2, 3, None, 0)
        assert scorer.starts_along_cost == expected
        jobs = scorer.jobs([Point(4.0), Point(1.0)], {(Point(1.0), 2)})
        assert len(jobs) == (3 if expected else 5)
        assert sum(map(len, jobs)) == 5
        if expected:
            assert jobs[0] == [(Point(1.0), 0), (Point(4.0), 0)]

    def test_estimator_is_not_modified(self):
        estimator = LinearSVC(C=3)
        found = grid_search(X, Y, estimator, Cs=[1, 2])
        assert estimator.C == 3
        assert not hasattr(estimator, "coef_")
        assert found.best_estimator.get_params() == {**estimator.get_params(), "C": found.best.point.C}

    @pytest.mark.parametrize(
        ("samples", "labels", "folds"),
        [
            (np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1]), 2),
            (np.zeros((20, 2)), np.arange(20) % 2, 5),  # all samples are the same
            (X * [1.0, 1e8], Y, 3),
            (X, np.where(np.arange(120) < 2, "rare", "common"), 5),
            (X, np.where(np.arange(120) < 1, 7, Y), 5),  # a class of one sample, missing in one training set
        ],
    )
    def test_degenerate_data(self, samples, labels, folds):
        found = grid_search(samples, labels, Cs=[1e-6, 1, 1e6], gammas=[1e-3, 1], folds=folds)
        assert len(found.scores) == 6
        assert all(0 <= score.mean <= 1 for score in found.scores)


class TestBestPoint:
    def result(self, means, folds=2):
        trials = [
            Trial(point, fold, {"test_score": mean}, 0.1) for point, mean in means.items() for fold in range(folds)
        ]
        return GridSearchResult(SVC(), "accuracy", folds, (tuple(means),), tuple(trials))

    def test_ties_are_broken_by_smaller_C_then_smaller_gamma(self):
        means = {Point(4.0, 1.0): 0.9, Point(1.0, 4.0): 0.9, Point(1.0, 2.0): 0.9, Point(0.1, 1.0): 0.8}
        assert self.result(means).best.point == Point(1.0, 2.0)

    def test_rounding_errors_of_the_mean_do_not_break_ties(self):
        point, other = Point(1.0, None), Point(2.0, None)
        trials = [Trial(point, fold, {"test_score": score}, 0.1) for fold, score in enumerate([0.1, 0.2, 0.3])]
        trials += [Trial(other, fold, {"test_score": score}, 0.1) for fold, score in enumerate([0.3, 0.2, 0.1])]
        assert GridSearchResult(SVC(), "accuracy", 3, ((point, other),), tuple(trials)).best.point == point

    def test_points_with_unfinished_folds_have_no_score(self):
        whole, part = Point(1.0, 1.0), Point(2.0, 1.0)
        trials = (
            Trial(whole, 0, {"test_score": 0.5}, 0.1),
            Trial(whole, 1, {"test_score": 0.5}, 0.1),
            Trial(part, 0, {"test_score": 1.0}, 0.1),
        )
        found = GridSearchResult(SVC(), "accuracy", 2, ((whole, part),), trials)
        assert [score.point for score in found.scores] == [whole]
        assert found.record()["unfinished"] == 1
        np.testing.assert_array_equal(found.table().means, [[0.5, np.nan]])

    def test_table_over_the_parameters_with_several_values(self):
        points = {Point(C, 1.0, epsilon): C - epsilon for C in (1.0, 2.0) for epsilon in (0.0, 0.5)}
        table = self.result(points).table()
        assert (table.x, table.x_values, table.y, table.y_values) == ("C", (1.0, 2.0), "epsilon", (0.0, 0.5))
        np.testing.assert_array_equal(table.means, [[1.0, 2.0], [0.5, 1.5]])
        assert table.points[1][0] == Point(1.0, 1.0, 0.5)
        points = {Point(None, gamma, None, nu): nu for gamma in (1.0, 2.0) for nu in (0.1, 0.2)}
        table = self.result(points).table()
        assert (table.x, table.y) == ("gamma", "nu")
        points = {Point(C, gamma, e): C + gamma - e for C in (1.0, 2.0) for gamma in (1.0, 3.0) for e in (0.5, 0.1)}
        found = self.result(points)
        np.testing.assert_allclose(found.table().means, [[1.9, 2.9], [3.9, 4.9]])  # at the best epsilon
        assert found.edges() == ["largest C", "smallest epsilon", "largest gamma"]
        refined = (Point(2.0, 3.0, 0.2), Point(4.0, 3.0, 0.2))
        trials = [Trial(point, fold, {"test_score": 9.0}, 0.1) for point in refined for fold in range(2)]
        found = replace(found, rounds=(*found.rounds, refined), trials=(*found.trials, *trials))
        np.testing.assert_allclose(found.table().means, [[1.9, 2.9], [3.9, 4.9]])  # the nearest of this round
        np.testing.assert_allclose(found.table(1).means, [[9.0, 9.0]])
        assert found.path() == [Point(2.0, 3.0, 0.1), Point(2.0, 3.0, 0.2)]

    def test_failed_trials_and_scores_that_are_not_numbers_are_the_worst(self):
        good, lost, failed = Point(1.0), Point(2.0), Point(3.0)
        trials = [Trial(good, 0, {"test_score": -5.0}, 0.1), Trial(lost, 0, {"test_score": np.nan}, 0.1)]
        trials.append(Trial(failed, 0, {}, 0.1, 0.0, "ValueError: no"))
        found = GridSearchResult(SVC(), "accuracy", 1, ((lost, failed, good),), tuple(trials))
        assert [score.point for score in found.scores] == [good, lost, failed]
        assert replace(found, error_score=0.0).best.point == failed

    def test_edges(self):
        corner = {Point(C, gamma): C + gamma for C in (0.1, 0.2) for gamma in (0.01, 0.02, 0.03)}
        assert self.result(corner).edges() == ["largest C", "largest gamma"]
        assert self.result({Point(1.0, gamma): -abs(gamma - 2) for gamma in (1.0, 2.0, 3.0)}).edges() == []

    def test_refinement_halves_the_distances_around_the_best_point(self):
        found = grid_search(X, Y, Cs=[1, 16, 256], gammas=[0.01, 1, 100], refine=2, folds=3)
        grid, first, second = found.rounds
        coarse = grid_search(X, Y, Cs=[1, 16, 256], gammas=[0.01, 1, 100], folds=3)
        assert len(grid) == 9
        assert coarse.rounds == (grid,)
        best = coarse.best.point
        assert {(p.C / best.C, p.gamma / best.gamma) for p in first} == {
            (a, b) for a in (0.25, 1, 4) for b in (0.1, 1, 10)
        } - {(1, 1)}
        assert len(second) <= 8
        assert len(set(found.points)) == len(grid) + len(first) + len(second) == len(found.scores)
        assert found.best.mean >= coarse.best.mean


class TestLimitsAndErrors:
    def test_time_limit_of_zero(self):
        found = grid_search(X, Y, max_seconds=0)
        assert found.status == "time limit"
        with pytest.raises(ValueError, match="no point of the grid was finished: time limit"):
            _ = found.best

    def test_time_limit_during_a_fit(self):
        random = np.random.default_rng(0)
        samples, labels = random.normal(size=(3000, 4)), random.integers(0, 2, 3000)
        found = grid_search(samples, labels, SVC(tol=1e-12), Cs=[1e7], gammas=[1e-3], max_seconds=0.5)
        assert (found.status, found.trials) == ("time limit", ())
        assert found.seconds < 30

    def test_the_time_limit_ends_fits_and_predictions(self):
        random = np.random.default_rng(0)
        samples, labels = random.normal(size=(20_000, 50)), random.integers(0, 2, 20_000)
        began = process_time()
        found = grid_search(samples, labels, SVC(), Cs=[1], gammas=[0.1], max_seconds=0.3, n_jobs=1)
        assert process_time() - began < 0.3 + 0.5 + 0.3  # the last: copies of the folds
        assert (found.status, found.trials) == ("time limit", ())

    def test_callback_can_stop_the_search(self):
        seen = []

        def callback(found):
            seen.append(len(found.trials))
            return len(found.trials) >= 7

        found = grid_search(X, Y, callback=callback)
        assert found.status == "stopped"
        assert 7 <= len(found.trials) < 100
        assert len(found.trials) == seen[-1]
        assert seen == sorted(seen)

    def test_ctrl_c_returns_the_result_so_far(self):
        def callback(found):
            if len(found.trials) >= 60:  # all folds of one γ, at 11 values of C, and a part of the next
                raise KeyboardInterrupt

        found = grid_search(X, Y, callback=callback, refine=1)
        assert found.status == "interrupted"
        assert len(found.rounds) == 1
        assert found.scores

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"X": np.full_like(X, np.nan)}, "NaN"),
            ({"estimator": NuSVC()}, "NuSVC has no parameter C"),
            ({"estimator": OneClassSVM()}, "OneClassSVM has no parameter C"),
            ({"estimator": NuSVC(), "Cs": None}, "NuSVC has no parameter C to search: give nus"),
            ({"estimator": NuSVC(), "nus": [0.1]}, "NuSVC has no parameter C, so Cs must be None"),
            ({"estimator": NuSVC(), "Cs": None, "nus": [1.5]}, "nus must be numbers above 0 and at most 1"),
            ({"estimator": SVR(), "epsilons": [-1]}, "epsilons must be numbers at least 0"),
            ({"epsilons": [1]}, "SVC has no parameter epsilon, so epsilons must be None"),
            ({"Cs": ["one"]}, "Cs must be numbers, at least one"),
            ({"estimator": SVC(kernel="linear"), "gammas": [1]}, "gammas are for kernels that have a gamma"),
            ({"Cs": []}, "Cs must be numbers above 0"),
            ({"Cs": [0, 1]}, "Cs must be numbers above 0"),
            ({"gammas": [-1]}, "gammas must be numbers above 0"),
            ({"folds": 1}, "folds"),
            ({"folds": 121}, "2 to 120 folds, not 121"),
            ({"y": Y[:-1]}, "one label per row"),
            ({"y": np.zeros(120)}, "all 120 samples are of class 0"),
            ({"scoring": "goodness"}, "goodness"),
            ({"refine": -1}, "refine"),
            ({"max_seconds": -1}, "max_seconds"),
            ({"estimator": SVC(degree="high")}, "degree"),
            ({"resume": True, "journal": "no/such/folder/a.jsonl"}, "no/such/folder"),
        ],
    )
    def test_invalid_arguments(self, arguments, message):
        given = {"X": X, "y": Y, "Cs": [1], "gammas": None if "estimator" in arguments else [1], **arguments}
        with pytest.raises((ValueError, OSError), match=message):
            grid_search(given.pop("X"), given.pop("y"), given.pop("estimator", None), **given)

    def test_score_that_is_nan(self):
        with pytest.raises(ValueError, match="the score lost of fold 1 at C = 1 is nan"):
            grid_search(X, Y, SVC(kernel="linear"), Cs=[1], scoring=type("Lost", (), {
                "__name__": "lost", "__call__": lambda self, model, X, y: float("nan")})())  # fmt: skip
