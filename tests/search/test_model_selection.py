"""The machine that suits the data, within the time, with reasons."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.datasets import chessboard
from maxmargin.estimators.validation.samples import resolve_gamma
from maxmargin.search import choose_machine, model_selection
from maxmargin.search.data_summary import as_table, choose_range, look_at, typical_gamma

RANDOM = np.random.default_rng(0)
BOARD = chessboard(260, noise=0.0, seed=1)


def text(rows=300, columns=1500):
    """Return sparse counts of words, of which some belong to a class."""
    y = RANDOM.integers(0, 2, rows)
    X = sparse.random(rows, columns, 0.01, random_state=0, format="lil")
    for row in range(rows):
        X[row, RANDOM.choice(np.arange(y[row], 40, 2), 4)] = 1.0
    return X.tocsr(), y


def wave(rows=100):
    X = RANDOM.uniform(-1, 1, (rows, 2))
    return X, 1000 * np.sin(4 * X[:, 0]) + RANDOM.normal(size=rows)


class TestChoice:
    def test_a_kernel_where_lines_cannot_separate(self):
        choice = choose_machine(*BOARD, classification=True, folds=3)
        assert type(choice.estimator).__name__ == "SVC"
        assert choice.score.mean > 0.8
        assert "the gaussian kernel is better" in choice.reasons
        assert choice.estimator.get_params()["C"] == choice.score.point.C
        assert choice.estimator.gamma == choice.score.point.gamma
        assert not hasattr(choice.estimator, "support_")

    def test_a_line_where_that_is_as_good(self):
        X = RANDOM.normal(size=(200, 3))
        X[:, 0] += np.sign(X[:, 0])
        choice = choose_machine(X, X[:, 0] > 0, classification=True, folds=3)
        assert type(choice.estimator).__name__ == "LinearSVC"
        assert any("linear machine is as good" in reason for reason in choice.reasons)

    def test_text_is_for_linear_machines(self):
        choice = choose_machine(*text(), classification=True, folds=3)
        assert type(choice.estimator).__name__ == "LinearSVC"
        assert list(choice.searches) == ["linear"]
        assert any("1,500 features" in reason for reason in choice.reasons)

    @pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
    def test_a_regression_whatever_its_unit(self, unit):
        X, y = wave()
        choice = choose_machine(X, unit * y, classification=False, folds=3)
        assert type(choice.estimator).__name__ == "SVR"
        assert choice.score.mean > 0.9
        assert choice.estimator.epsilon == pytest.approx(0.1 * np.std(unit * y))

    def test_large_data_are_searched_by_samples_and_confirmed(self, monkeypatch):
        monkeypatch.setattr(model_selection, "SEARCHED", 100)
        monkeypatch.setattr(model_selection, "CONFIRMED", 200)
        seen = []
        choice = choose_machine(
            *chessboard(1000, noise=0.0), classification=True, folds=3, watch=lambda name, _: seen.append(name)
        )
        assert list(dict.fromkeys(seen)) == ["linear", "kernel", "confirmation"]
        assert "parameters were searched for on 100 of 1,000 samples" in choice.reasons
        confirmed = choice.searches["confirmation"]
        assert choice.score == confirmed.best
        assert 2 <= len(confirmed.scores) <= 4
        assert any("on 400 samples" in reason for reason in choice.reasons)

    def test_very_large_data_get_landmarks(self, monkeypatch):
        monkeypatch.setattr(model_selection, "EXACT", 250)
        choice = choose_machine(*BOARD, classification=True, folds=3, seed=3)
        assert type(choice.estimator).__name__ == "KernelApproximationSVC"
        assert choice.estimator.random_state == 3
        assert choice.estimator.gamma == choice.score.point.gamma
        assert type(choose_machine(*wave(260), classification=False, folds=3).estimator).__name__ == "LinearSVR"

    def test_little_time_for_training_gets_landmarks(self):
        choice = choose_machine(*BOARD, classification=True, folds=3, train_seconds=1e-9)
        assert type(choice.estimator).__name__ == "KernelApproximationSVC"
        assert "an exact machine may take" in choice.reasons[-1]

    def test_no_time(self):
        choice = choose_machine(*BOARD, classification=True, folds=3, max_seconds=0)
        assert type(choice.estimator).__name__ == "SVC"
        assert choice.score is None
        assert "too short" in choice.reasons[-1]
        choice.estimator.fit(*BOARD)

    def test_an_interruption(self):
        def watch(name, found):
            if name == "kernel" and found.scores:
                raise KeyboardInterrupt

        choice = choose_machine(*BOARD, classification=True, folds=3, watch=watch)
        assert choice.interrupted
        assert choice.estimator.C > 0


class TestLooking:
    def test_facts(self):
        look = look_at(np.array([[0.0, 2.0], [-1.0, 0.0], [0.0, 4.0]]), np.array(["b", "a", "b"]), True)
        assert (look.rows, look.columns, look.density, look.least, look.most) == (3, 2, 0.5, -1.0, 4.0)
        assert list(look.classes) == ["a", "b"]
        assert look.smallest_share == pytest.approx(1 / 3)
        positive = sparse.csr_matrix([[0.0, 2.0], [3.0, 0.0]])
        assert look_at(positive, np.array([1.0, 3.0]), False).least == 0.0
        assert look_at(positive, np.array([1.0, 3.0]), False).spread == 1.0

    @pytest.mark.parametrize(
        ("X", "expected", "why"),
        [
            (np.array([[0.0, 1.0], [-1.0, 0.5]]), None, "already"),
            (np.array([[0.0, 100.0], [-1.0, 0.5]]), (-1.0, 1.0), "values were between -1 and 100"),
            (sparse.eye(50, format="csr") * 5, (0.0, 1.0), "zeros stay zeros"),
            (sparse.eye(50, format="csr") * -5, None, "98.00% of the values are 0"),
            (np.zeros((5, 2)), None, "already"),
        ],
    )
    def test_ranges(self, X, expected, why):
        limits, reason = choose_range(look_at(X, np.zeros(X.shape[0]), False))
        assert limits == expected
        assert why in reason

    def test_full_matrices_become_tables(self):
        full, thin = sparse.csr_matrix(BOARD[0]), sparse.eye(20, format="csr")
        np.testing.assert_array_equal(as_table(full), BOARD[0])
        assert as_table(thin) is thin

    @pytest.mark.parametrize("X", [BOARD[0], sparse.csr_matrix(BOARD[0]), 1e6 * BOARD[0], text()[0]])
    def test_the_typical_width_is_next_to_scikit_learns(self, X):
        ratio = typical_gamma(X) / resolve_gamma("scale", X, np.ones(X.shape[0]))
        assert 2**-0.51 <= ratio <= 2**0.51
        assert typical_gamma(np.ones((3, 2))) == 0.5 or typical_gamma(np.ones((3, 2))) == 1.0
