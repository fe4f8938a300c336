"""Choice of estimator and parameters, scaling and default γ."""

from time import sleep

import numpy as np
import pytest
from scipy import sparse

from maxmargin.datasets import chessboard
from maxmargin.machines.validation.training_data import resolve_gamma
from maxmargin.search import choose_estimator, model_selection, selection_plan
from maxmargin.search.data_summary import choose_range, densify, summarize, typical_gamma
from maxmargin.search.trial_threads import TrialThreads

RANDOM = np.random.default_rng(0)
BOARD = chessboard(260, noise=0.0, seed=1)


def text(rows=300, columns=1500):
    """Return sparse word counts; some words are typical of a class."""
    y = RANDOM.integers(0, 2, rows)
    X = sparse.random(rows, columns, 0.01, random_state=0, format="lil")
    for row in range(rows):
        X[row, RANDOM.choice(np.arange(y[row], 40, 2), 4)] = 1.0
    return X.tocsr(), y


def wave(rows=100):
    X = RANDOM.uniform(-1, 1, (rows, 2))
    return X, 1000 * np.sin(4 * X[:, 0]) + RANDOM.normal(size=rows)


class TestChoice:
    def test_kernel_for_data_that_are_not_linearly_separable(self):
        choice = choose_estimator(*BOARD, classification=True, folds=3)
        assert type(choice.estimator).__name__ == "SVC"
        assert choice.score.mean > 0.8
        assert "the Gaussian kernel is better" in choice.reasons
        assert choice.estimator.get_params()["C"] == choice.score.point.C
        assert choice.estimator.gamma == choice.score.point.gamma
        assert not hasattr(choice.estimator, "support_")

    def test_linear_model_where_it_is_as_good(self):
        X = RANDOM.normal(size=(200, 3))
        X[:, 0] += np.sign(X[:, 0])
        choice = choose_estimator(X, X[:, 0] > 0, classification=True, folds=3)
        assert type(choice.estimator).__name__ == "LinearSVC"
        assert any("linear model is as good" in reason for reason in choice.reasons)

    def test_linear_model_for_text(self):
        choice = choose_estimator(*text(), classification=True, folds=3)
        assert type(choice.estimator).__name__ == "LinearSVC"
        assert list(choice.searches) == ["linear"]
        assert any("1,500 features" in reason for reason in choice.reasons)

    @pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
    def test_regression_does_not_depend_on_the_unit_of_the_targets(self, unit):
        X, y = wave()
        choice = choose_estimator(X, unit * y, classification=False, folds=3)
        assert type(choice.estimator).__name__ in ("SVR", "NuSVR", "LSSVR")
        assert choice.score.mean > 0.9
        best = choice.searches["kernel"].best_estimator
        assert best.epsilon == pytest.approx(0.1 * np.std(unit * y))
        assert {"nu", "least squares"} <= set(choice.searches)

    def test_large_data_are_searched_on_a_subset_and_confirmed_on_a_larger_one(self, monkeypatch):
        monkeypatch.setattr(selection_plan, "SEARCH_SAMPLES", 100)
        monkeypatch.setattr(selection_plan, "CONFIRMATION_SAMPLES", 200)
        seen = []
        choice = choose_estimator(
            *chessboard(1000, noise=0.0), classification=True, folds=3, callback=lambda name, _: seen.append(name)
        )
        assert list(dict.fromkeys(seen)) == ["linear", "kernel", "confirmation"]
        assert "parameters were searched on 100 of 1,000 samples" in choice.reasons
        confirmed = choice.searches["confirmation"]
        assert choice.score == confirmed.best
        assert 2 <= len(confirmed.scores) <= 4
        assert any("on 400 samples" in reason for reason in choice.reasons)

    def test_landmarks_for_very_large_data(self, monkeypatch):
        monkeypatch.setattr(selection_plan, "MAX_EXACT_SAMPLES", 250)
        choice = choose_estimator(*BOARD, classification=True, folds=3, seed=3)
        assert type(choice.estimator).__name__ == "KernelApproximationSVC"
        assert choice.estimator.random_state == 3
        assert choice.estimator.gamma == choice.score.point.gamma
        assert type(choose_estimator(*wave(260), classification=False, folds=3).estimator).__name__ == "LinearSVR"

    def test_landmarks_if_exact_training_takes_too_long(self):
        choice = choose_estimator(*BOARD, classification=True, folds=3, train_seconds=1e-9)
        assert type(choice.estimator).__name__ == "KernelApproximationSVC"
        assert "exact training may take" in choice.reasons[-1]

    def test_time_limit_of_zero(self):
        choice = choose_estimator(*BOARD, classification=True, folds=3, max_seconds=0)
        assert type(choice.estimator).__name__ == "SVC"
        assert choice.score is None
        assert "too short" in choice.reasons[-1]
        choice.estimator.fit(*BOARD)

    @pytest.mark.parametrize("finished", [0, 1])
    def test_ctrl_c_outside_of_the_searches(self, finished, monkeypatch):
        search = model_selection.search_grid
        searches = []

        def interrupted(*arguments, **options):
            if len(searches) == finished:
                raise KeyboardInterrupt
            searches.append(search(*arguments, **options))
            return searches[-1]

        monkeypatch.setattr(model_selection, "search_grid", interrupted)
        choice = choose_estimator(*BOARD, classification=True, folds=3)
        assert choice.interrupted
        assert (choice.score is None) == (finished == 0)
        assert type(choice.estimator).__name__ == ("LinearSVC" if finished else "SVC")
        assert ("the search was interrupted before any parameters were scored" in choice.reasons[-1]) == (not finished)

    @pytest.mark.parametrize("cause", ["Ctrl-C came", "the callback asked to stop", "the time limit was reached"])
    def test_the_reason_why_a_choice_is_not_confirmed(self, cause, monkeypatch):
        monkeypatch.setattr(selection_plan, "SEARCH_SAMPLES", 100)

        def callback(name, found):
            if name == "confirmation" and cause == "Ctrl-C came":
                raise KeyboardInterrupt
            return name == "confirmation"

        if cause == "the time limit was reached":
            until = model_selection._ModelSelection._seconds_until
            monkeypatch.setattr(
                model_selection._ModelSelection, "_seconds_until", lambda own, part: until(own, part) if part < 1 else 0
            )
        score_points, trials = model_selection.score_points, TrialThreads._trials
        confirming = []

        def one_by_one(self, job, estimator):
            for trial in trials(self, job, estimator):
                yield trial
                if confirming:  # so that no second point is finished before the callback was called
                    sleep(0.1)

        monkeypatch.setattr(TrialThreads, "_trials", one_by_one)
        monkeypatch.setattr(
            model_selection,
            "score_points",
            lambda *given, **options: confirming.append(1) or score_points(*given, **options),
        )
        choice = choose_estimator(*BOARD, classification=True, folds=3, callback=callback)
        assert f"{cause} before this was confirmed on 260 samples" in choice.reasons
        assert choice.interrupted == (cause == "Ctrl-C came")
        assert choice.score is not None

    def test_ctrl_c_before_the_first_trial_of_the_confirmation(self, monkeypatch):
        monkeypatch.setattr(selection_plan, "SEARCH_SAMPLES", 100)

        def interrupted(*arguments, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(model_selection, "score_points", interrupted)
        choice = choose_estimator(*BOARD, classification=True, folds=3)
        assert choice.interrupted
        assert choice.score == choice.searches["kernel"].best
        assert "Ctrl-C came before this was confirmed on more samples" in choice.reasons

    def test_ctrl_c_returns_the_best_choice_so_far(self):
        def callback(name, found):
            if name == "kernel" and found.scores:
                raise KeyboardInterrupt

        choice = choose_estimator(*BOARD, classification=True, folds=3, callback=callback)
        assert choice.interrupted
        assert choice.estimator.C > 0


class TestDataSummary:
    def test_summary(self):
        summary = summarize(np.array([[0.0, 2.0], [-1.0, 0.0], [0.0, 4.0]]), np.array(["b", "a", "b"]), True)
        assert (summary.rows, summary.columns, summary.density, summary.minimum, summary.maximum) == (
            3,
            2,
            0.5,
            -1.0,
            4.0,
        )
        assert list(summary.classes) == ["a", "b"]
        assert summary.smallest_class_fraction == pytest.approx(1 / 3)
        positive = sparse.csr_matrix([[0.0, 2.0], [3.0, 0.0]])
        assert summarize(positive, np.array([1.0, 3.0]), False).minimum == 0.0
        assert summarize(positive, np.array([1.0, 3.0]), False).target_std == 1.0

    @pytest.mark.parametrize(
        ("X", "expected", "why"),
        [
            (np.array([[0.0, 1.0], [-1.0, 0.5]]), None, "already"),
            (np.array([[0.0, 100.0], [-1.0, 0.5]]), (-1.0, 1.0), "values were between -1 and 100"),
            (sparse.eye(50, format="csr") * 5, (0.0, 1.0), "which keeps zeros"),
            (sparse.eye(50, format="csr") * -5, None, "98.00% of the values are 0"),
            (np.zeros((5, 2)), None, "already"),
        ],
    )
    def test_choose_range(self, X, expected, why):
        limits, reason = choose_range(summarize(X, np.zeros(X.shape[0]), False))
        assert limits == expected
        assert why in reason

    def test_matrices_with_many_nonzeros_become_dense(self):
        full, thin = sparse.csr_matrix(BOARD[0]), sparse.eye(20, format="csr")
        np.testing.assert_array_equal(densify(full), BOARD[0])
        assert densify(thin) is thin

    @pytest.mark.parametrize("X", [BOARD[0], sparse.csr_matrix(BOARD[0]), 1e6 * BOARD[0], text()[0]])
    def test_typical_gamma_is_near_that_of_scikit_learn(self, X):
        ratio = typical_gamma(X) / resolve_gamma("scale", X, np.ones(X.shape[0]))
        assert 2**-0.51 <= ratio <= 2**0.51
        assert typical_gamma(np.ones((3, 2))) == 0.5 or typical_gamma(np.ones((3, 2))) == 1.0
