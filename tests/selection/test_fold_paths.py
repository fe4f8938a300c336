"""Which searches are trained as paths, their limits, memory and repeatability."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import KFold

from maxmargin import SVC, SVCCV, SVR, LinearSVC, NuSVC, grid_search
from maxmargin.datasets import chessboard
from maxmargin.problems import certify
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.grid import Point
from maxmargin.search.path_trials import PathTrials
from maxmargin.selection import fold_paths
from maxmargin.selection.fold_paths import Fold, FoldPaths, why_independent
from maxmargin.selection.kernel_matrices import MIN_COST_OF_KEPT_SUMS, KernelMatrices, matrix_bytes

X, Y = chessboard(200, noise=0.1, seed=0)
POINTS = [{"C": C, "gamma": 0.5} for C in (0.1, 1.0, 10.0, 1000.0)]


def paths(estimator: Any = None, X: Any = X, y: Any = Y, **options: Any) -> FoldPaths:
    fold_of = np.arange(len(y)) % 4
    folds = [Fold(np.flatnonzero(fold_of != k), np.flatnonzero(fold_of == k)) for k in range(4)]
    given = {"weights": None, "budget": 2**30, "threads": 1, "several": True, **options}
    return FoldPaths(SVC() if estimator is None else estimator, X, y, folds, **given)


class TestRule:
    @pytest.mark.parametrize(
        ("estimator", "reason"),
        [
            (LinearSVC(), "no kernel"),
            (SVC(multi_class="crammer_singer"), "all classes"),
            (SVC(probability=True), "probabilities"),
            (SVC(max_iter=10), "max_iter"),
            (SVC(solver="pairwise"), "solver"),
            (SVC(max_seconds=1.0), "max_seconds"),
            (SVC(device="cuda"), "device"),
            (SVC(gap_tol=1.0), "gap_tol"),
            (SVC(kernel=lambda a, b: a @ b.T), "function of the user"),
        ],
    )
    def test_why_models_are_trained_one_by_one(self, estimator, reason):
        assert reason in why_independent(estimator, X, Y, 2**30, 1)

    @pytest.mark.parametrize("estimator", [SVC(), SVC(multi_class="ovr"), NuSVC(), SVR(), SVC(kernel="linear")])
    def test_what_the_engine_trains(self, estimator):
        assert why_independent(estimator, X, Y, 2**30, 1) is None

    def test_a_matrix_beyond_the_budget(self):
        assert "memory" in why_independent(SVC(), X, Y, matrix_bytes(len(X)) - 1, 1)
        assert why_independent(SVC(), X, Y, matrix_bytes(len(X)), 1) is None

    @pytest.mark.parametrize("scoring", [lambda model, X, y: 0.5, "neg_log_loss"])
    def test_scores_of_more_than_values_are_independent_fits(self, scoring):
        scorer = FoldScorer.of(SVC(), X, Y, 3, scoring, 0)
        assert PathTrials.of(scorer, [(Point(1.0, 1.0), 0)], 1) is None

    @pytest.mark.parametrize("scoring", ["accuracy", "roc_auc", "f1_macro", make_scorer(roc_auc_score)])
    def test_scores_of_values_are_paths(self, scoring):
        scorer = FoldScorer.of(SVC(), X, Y, 3, scoring, 0)
        assert PathTrials.of(scorer, [(Point(1.0, 1.0), 0)], 1) is not None


class TestSolutions:
    def test_duals_are_certified(self, monkeypatch):
        """The certificate of each solution, in double precision from the data, confirms the tolerance."""
        found = []
        original = fold_paths.FoldPath.solve

        def record(self, subproblem):
            values = original(self, subproblem)
            found.append((subproblem.problem, values.dual.copy()))
            return values

        monkeypatch.setattr(fold_paths.FoldPath, "solve", record)
        assert all(model is not None for model in paths().models(1, POINTS))
        assert len(found) == len(POINTS)
        for problem, dual in found:
            assert certify(problem, dual).violation <= 1e-3

    def test_several_metrics(self):
        options = {"Cs": [0.1, 10], "gammas": [0.5, 5], "scoring": ["accuracy", "roc_auc"], "refit": "accuracy"}
        found = SVCCV(**options).fit(X, Y)
        for key, result in found.cv_results_.items():
            if key.startswith("mean_test"):
                assert np.isfinite(result).all()

    @pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "sigmoid", "precomputed"])
    def test_other_kernels(self, kernel):
        samples = X @ X.T if kernel == "precomputed" else X
        found = grid_search(samples, Y, SVC(kernel=kernel, coef0=0.1), Cs=[0.1, 1], folds=3)
        best = clone(found.best_estimator)
        scorer = FoldScorer.of(best, samples, Y, 3, None, 0)
        for fold in range(3):
            expected = scorer.trial(clone(best), found.best.point, fold).scores
            assert [t.scores for t in found.trials if (t.point, t.fold) == (found.best.point, fold)] == [expected]

    def test_sparse_samples_have_the_scores_of_dense_ones(self):
        wide = np.where(np.abs(X) > 1, X, 0.0)
        options = {"Cs": [0.1, 1, 100], "gammas": [0.1, 2]}
        dense, compressed = (grid_search(data, Y, **options) for data in (wide, sparse.csr_array(wide)))
        assert [s[:2] for s in dense.scores] == [s[:2] for s in compressed.scores]

    def test_gamma_of_the_training_samples(self):
        found = grid_search(X, Y, SVC(gamma="scale"), Cs=[1], gammas=[], folds=3)
        scorer = FoldScorer.of(SVC(), X, Y, 3, None, 0)
        for trial in found.trials:
            assert scorer.trial(SVC(), trial.point, trial.fold).scores == trial.scores

    def test_a_class_that_a_split_lacks(self):
        few = Y.astype(int).copy()
        few[:1] = 7
        found = SVCCV(Cs=[1], gammas=[1], cv=KFold(4)).fit(X, few)
        assert np.isfinite(found.best_score_)

    def test_errors_are_those_of_a_fit(self):
        with pytest.raises(ValueError, match="nu is infeasible"):
            grid_search(X, np.arange(len(X)) % 10 == 0, NuSVC(), nus=[0.9])
        with pytest.raises(ValueError, match="NaN"):
            grid_search(np.full_like(X, np.nan), Y)


class TestRepeatability:
    def test_scores_do_not_depend_on_threads(self):
        one, three = (
            [s[:3] for s in grid_search(X, Y, Cs=[1, 100, 1e4], gammas=[0.1, 1], n_jobs=n).scores] for n in (1, 3)
        )
        assert one == three

    def test_values_do_not_depend_on_threads_bit_for_bit(self):
        values = []
        for threads in (1, 2):
            engine = paths(threads=threads)
            values.append([model.decision_function(np.arange(50)[:, None]) for model in engine.models(0, POINTS)])
        np.testing.assert_array_equal(*values)


class TestLimits:
    def test_a_cancelled_engine_yields_nothing(self):
        engine = paths()
        engine.cancel()
        assert list(engine.models(0, POINTS)) == []

    def test_cancelling_ends_a_long_path(self):
        random = np.random.default_rng(0)
        samples, labels = random.normal(size=(3000, 4)), random.integers(0, 2, 3000)
        engine = paths(SVC(tol=1e-12), samples, labels)
        timer = threading.Timer(0.2, engine.cancel)
        timer.start()
        assert list(engine.models(0, [{"C": 1e7, "gamma": 1e-3}])) == []
        timer.join()

    def test_ctrl_c_in_the_callback_keeps_what_is_known(self):
        def callback(result):
            if len(result.trials) >= 12:
                raise KeyboardInterrupt

        found = grid_search(X, Y, Cs=[1, 10], gammas=[0.1, 1, 10], callback=callback)
        assert found.status == "interrupted"
        assert found.scores

    def test_a_journal_is_resumed(self, tmp_path):
        journal = tmp_path / "trials.jsonl"
        first = grid_search(X, Y, Cs=[1, 10], gammas=[0.1, 1], journal=journal, callback=lambda r: len(r.trials) >= 6)
        assert first.status == "stopped"
        resumed = grid_search(X, Y, Cs=[1, 10], gammas=[0.1, 1], journal=journal, resume=True)
        whole = grid_search(X, Y, Cs=[1, 10], gammas=[0.1, 1])
        assert [s[:3] for s in resumed.scores] == [s[:3] for s in whole.scores]


class TestKernelMatrices:
    @pytest.mark.parametrize("columns", [3, 2 * MIN_COST_OF_KEPT_SUMS])
    def test_values_and_memory(self, columns):
        samples = np.random.default_rng(0).normal(size=(60, columns)) / np.sqrt(columns)
        order, size = np.random.default_rng(1).permutation(60), matrix_bytes(60)
        from maxmargin.kernels import Gaussian, Points

        for budget in (size, 2 * size, 3 * size, 10 * size):
            matrices = KernelMatrices(samples, order, budget, 1, True)
            for gamma in (0.1, 1.0, 10.0, 0.1):
                kernel = Gaussian(gamma)
                with matrices.of(kernel) as values:
                    points = Points.wrap(samples[order])
                    np.testing.assert_allclose(values, kernel.evaluate(points, points), rtol=1e-13, atol=1e-300)
                held = [*matrices._values.values(), *matrices._sums.values(), *matrices._free]
                assert sum(one.nbytes for one in held) <= budget
