"""The folds of small problems of two classes, all at once."""

import numpy as np
import pytest

from maxmargin import SVC, SVR
from maxmargin.formulations import c_classification
from maxmargin.kernels import Gaussian, Points
from maxmargin.machines.calibration import small_folds
from maxmargin.machines.calibration.fold import hold_out
from maxmargin.machines.calibration.small_folds import SmallFolds, restored_sums
from maxmargin.matrices import KernelMatrix
from maxmargin.problems.gradient_extremes import interval_midpoint, offset_bounds
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.training import Session

#: Of folds on their own, and of all at once: with the smaller one some take 10,000 steps, the most that are allowed, on
#: some computers and not on others.
TOLERANCE, TOLERANCE_TOGETHER = 1e-6, 1e-5


def two_classes(n=300, seed=0):
    random = np.random.default_rng(seed)
    signs = np.where(random.random(n) < 0.4, 1.0, -1.0)
    return random.normal(size=(n, 3)) + 0.7 * signs[:, None], signs


def posed(fit_intercept=True, cost=1.0):
    X, signs = two_classes()
    matrix = KernelMatrix(Gaussian(0.5), Points(X))
    return c_classification.pose(matrix, signs, np.full(len(X), cost), fit_intercept)


def one_by_one(problem, folds):
    """Decision values by folds that are solved from scratch, in double precision."""
    values = np.empty(problem.size)
    for fold in np.unique(folds):
        part = hold_out(problem, folds == fold, 1.0)
        solution = PairwiseSolver(stopping=StoppingRule(violation=TOLERANCE)).solve(part)
        gradient = part.gradient(solution.dual)
        offset = interval_midpoint(*offset_bounds(part, solution.dual, gradient))
        found = problem.linear - gradient + (offset[0] if problem.groups else 0.0)
        values[folds == fold] = found[folds == fold]
    return values


class TestFolds:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("cost", [0.1, 10.0])
    @pytest.mark.parametrize("count", [30, 150, 300])
    def test_values_are_those_of_folds_on_their_own(self, fit_intercept, cost, count):
        problem = posed(fit_intercept, cost)
        solution = PairwiseSolver(stopping=StoppingRule(violation=TOLERANCE)).solve(problem)
        gradient = problem.gradient(solution.dual)
        folds = np.arange(problem.size) % 5
        together = SmallFolds(problem, solution.dual, gradient, folds, 1)
        distance = np.where(solution.dual == 0, np.abs(gradient), 0.0)
        assert together.solve(np.sort(np.argsort(distance)[:count]), TOLERANCE_TOGETHER, Session())
        found = together.values(c_classification)
        np.testing.assert_allclose(found, one_by_one(problem, folds), atol=2e-4)

    @pytest.mark.parametrize("classes", [2, 4])
    def test_probabilities_are_the_same_without_them(self, classes, monkeypatch):
        random = np.random.default_rng(0)
        y = np.concatenate([np.zeros(1200, dtype=int), 1 + np.arange(900) % (classes - 1)])
        X = random.normal(size=(len(y), 3)) + y[:, None]
        used = []
        applicable = small_folds.applicable
        monkeypatch.setattr(small_folds, "applicable", lambda *given: used.append(applicable(*given)) or used[-1])
        together = SVC(probability=True).fit(X, y)
        assert (classes == 2) != any(used)  # two classes of 2,100 samples are too large
        monkeypatch.setattr(small_folds, "applicable", lambda *given: False)
        alone = SVC(probability=True).fit(X, y)
        np.testing.assert_allclose(together.predict_proba(X), alone.predict_proba(X), atol=3e-3)

    def test_threads_change_no_bit(self):
        X = two_classes(2500)[0]
        y = np.arange(len(X)) % 3
        X = X + y[:, None]
        one, two = (SVC(probability=True, n_jobs=jobs).fit(X, y) for jobs in (1, 3))
        np.testing.assert_array_equal(one.probA_, two.probA_)
        np.testing.assert_array_equal(one.probB_, two.probB_)


class TestRestoredSums:
    def test_by_hand(self):
        gradient = np.array([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0], [1.0, 3.0, 2.0]])
        lower, upper = np.full((3, 3), -2.0), np.full((3, 3), 1.0)
        steps = restored_sums(np.array([1.5, -3.0, 0.0]), gradient, lower, upper)
        np.testing.assert_array_equal(steps, [[0.0, 1.0, 0.5], [-2.0, 0.0, -1.0], [0.0, 0.0, 0.0]])

    def test_bounds_that_do_not_allow_it(self):
        assert restored_sums(np.array([4.0]), np.ones((1, 3)), -np.ones((1, 3)), np.ones((1, 3))) is None


def test_kernel_values_beyond_single_precision():
    X = 1e150 * np.random.default_rng(0).random((6, 2))
    smallest = lambda A, B: np.minimum(A[:, None], B[None]).sum(axis=2)  # noqa: E731
    model = SVR(kernel=smallest, C=1e-12, epsilon=0.5, noise=True, selection="most_violating_pair")
    assert model.fit(X, np.full(6, -3.7)).noise_scale_ == 0.5
