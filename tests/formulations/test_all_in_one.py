"""All-in-one formulations against their textbook primals, a generic solver, and each other."""

import numpy as np
import pytest

from contracts.formulation_contract import FormulationContract
from maxmargin.formulations import all_in_one, c_classification, crammer_singer, weston_watkins
from maxmargin.kernels import Gaussian, Linear, Points
from maxmargin.matrices import BiasAugmentedMatrix, KernelMatrix, PrecomputedMatrix
from maxmargin.problems import certify, feasible_start
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule

RANDOM = np.random.default_rng(5)
CLASSES = 4
LABELS = np.arange(36) % CLASSES
X = RANDOM.normal(size=(36, 2)) + np.array([[0, 0], [2, 0], [0, 2], [2, 2]])[LABELS] * 0.6
COSTS = RANDOM.uniform(0.2, 3.0, 36)
BOTH = pytest.mark.parametrize("formulation", [weston_watkins, crammer_singer], ids=["ww", "cs"])


def matrix():
    return KernelMatrix(Gaussian(0.5), Points(X))


def slack_table(product):
    """1 − (w_y·Φ(x) − w_c·Φ(x)) of every sample and class, −∞ for its own."""
    decision = product.reshape(len(LABELS), -1)
    short = 1.0 - decision[np.arange(len(LABELS)), LABELS][:, None] + decision
    short[np.arange(len(LABELS)), LABELS] = -np.inf
    return short


def sum_of_slacks(product):
    return (COSTS * np.maximum(0.0, slack_table(product)).sum(axis=1)).sum()


def largest_slack(product):
    return (COSTS * np.maximum(0.0, slack_table(product)).max(axis=1)).sum()


class TestWestonWatkins(FormulationContract):
    fit_intercept = True

    def pose(self):
        return weston_watkins.pose(matrix(), LABELS, CLASSES, COSTS, self.fit_intercept)

    def textbook_primal(self, product, offset, squared_norm):
        return 0.5 * squared_norm + sum_of_slacks(product)


class TestWestonWatkinsWithoutBias(TestWestonWatkins):
    fit_intercept = False


class TestCrammerSinger(FormulationContract):
    fit_intercept = True

    def pose(self):
        return crammer_singer.pose(matrix(), LABELS, CLASSES, COSTS, self.fit_intercept)

    def textbook_primal(self, product, offset, squared_norm):
        return 0.5 * squared_norm + largest_slack(product)


class TestCrammerSingerWithoutBias(TestCrammerSinger):
    fit_intercept = False


@BOTH
def test_group_offsets_are_optimal(formulation):
    problem = formulation.pose(matrix(), LABELS, CLASSES, COSTS)
    dual = feasible_start(problem, RANDOM.normal(size=problem.size))
    certificate = certify(problem, dual)
    gradient = problem.gradient(dual)
    for move in (-0.3, -1e-3, 1e-3, 0.3):
        slack = gradient - np.repeat(certificate.offset + move, CLASSES)
        loss = np.where(slack > 0, problem.upper, problem.lower) * slack
        assert (0.5 * certificate.squared_norm + loss.sum()) >= certificate.primal - 1e-9


@BOTH
def test_weights_and_biases_of_all_classes_sum_to_zero(formulation):
    problem = formulation.pose(matrix(), LABELS, CLASSES, COSTS)
    dual = PairwiseSolver().solve(problem).dual
    found = formulation.expand(problem, dual, certify(problem, dual).offset)
    assert found.coefficients.shape == (36, CLASSES)
    np.testing.assert_allclose(found.coefficients.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.offset, found.coefficients.sum(axis=0), atol=1e-12)
    assert np.abs(found.offset).max() > 1e-3
    without = formulation.pose(matrix(), LABELS, CLASSES, COSTS, False)
    np.testing.assert_array_equal(formulation.expand(without, dual, np.zeros(36)).offset, 0.0)


@BOTH
def test_two_classes_equal_a_binary_problem_of_twice_the_cost(formulation):
    """w_1 = −w_0 = w/2 makes ½ Σ ‖w_c‖² = ¼ ‖w‖²."""
    labels, signs = LABELS % 2, np.where(LABELS % 2, 1.0, -1.0)
    problem = formulation.pose(matrix(), labels, 2, COSTS)
    dual = PairwiseSolver().solve(problem).dual
    binary = c_classification.pose(BiasAugmentedMatrix(matrix()), signs, 2 * COSTS, fit_intercept=False)
    expected = PairwiseSolver().solve(binary).dual
    np.testing.assert_allclose(np.diff(dual.reshape(-1, 2)).ravel(), expected, atol=1e-8)
    assert certify(problem, dual).dual == pytest.approx(0.5 * certify(binary, expected).dual)


@BOTH
def test_geometry(formulation):
    problem = formulation.pose(matrix(), LABELS, CLASSES, COSTS)
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)
    rows = np.arange(100, 136)
    geometry = formulation.read(problem, dual, certificate, rows)
    assert sorted([*geometry.free, *geometry.bounded, *geometry.non_support]) == rows.tolist()
    expected = np.maximum(0.0, slack_table(problem.matrix.matvec(dual)))
    np.testing.assert_allclose(geometry.slack, expected, atol=1e-9)
    assert geometry.slack[geometry.non_support - 100].max() < 1e-9
    loss = geometry.slack.sum(axis=1) if formulation is weston_watkins else geometry.slack.max(axis=1)
    assert 0.5 * geometry.squared_norm + (COSTS * loss).sum() == pytest.approx(certificate.primal, rel=1e-9)
    table = all_in_one.by_class(problem, dual)
    assert (np.abs(table[geometry.free - 100]).sum(axis=1) > 0).all()


HARD = {
    "duplicates with different labels": (np.vstack([X, X]), np.concatenate([LABELS, (LABELS + 1) % CLASSES]), 1.0),
    "a class with one sample": (X, np.where(np.arange(36) == 7, 3, LABELS % 3), 5.0),
    "tiny costs": (X, LABELS, 1e-8),
    "huge costs": (X, LABELS, 1e6),
    "one sample of each class": (X[:4], LABELS[:4], 10.0),
    "all the same": (np.ones((12, 2)), LABELS[:12], 1.0),
    "unscaled columns": (X * [1.0, 1e3] + [2000.0, 0.0], LABELS, 1e-4),
}


@BOTH
@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("solver", [PairwiseSolver, BlockSolver])
def test_hard_cases(formulation, name, solver):
    samples, labels, cost = HARD[name]
    kernel = Linear() if "columns" in name else Gaussian(0.5)
    base = KernelMatrix(kernel, Points(np.ascontiguousarray(samples)))
    problem = formulation.pose(base, labels, CLASSES, np.full(len(labels), cost))
    solution = solver(stopping=StoppingRule(violation=1e-5)).solve(problem)
    certificate = certify(problem, solution.dual)
    assert solution.status.converged
    assert certificate.violation <= 1.1e-5
    assert certificate.infeasibility <= 1e-9 * (1.0 + cost)
    assert certificate.gap <= 1e-2 * max(1.0, abs(certificate.dual))


@BOTH
@pytest.mark.parametrize("working_set", [50, 300])
@pytest.mark.parametrize("cache_bytes", [0, 2**24])
def test_blocks_of_many_groups(formulation, working_set, cache_bytes):
    """More variables than fit into a working set, which consists of the groups with the largest violations."""
    Z = np.random.default_rng(0).normal(size=(150, 90))
    labels = np.argmax(Z[:, :4], axis=1)
    problem = formulation.pose(KernelMatrix(Gaussian(0.01), Points(Z)), labels, 4, np.full(150, 1.0))
    rule = StoppingRule(violation=1e-4)
    found = BlockSolver(working_set=working_set, cache_bytes=cache_bytes, stopping=rule).solve(problem)
    expected = PairwiseSolver(stopping=rule).solve(problem)
    assert found.status.converged
    assert certify(problem, found.dual).violation <= 1e-4
    assert certify(problem, found.dual).dual == pytest.approx(certify(problem, expected.dual).dual, rel=1e-5)


def test_gap_stopping_rule():
    problem = weston_watkins.pose(PrecomputedMatrix(Gaussian(0.5)(X)), LABELS, CLASSES, COSTS)
    for solver in (PairwiseSolver, BlockSolver):
        rule = StoppingRule(violation=1e-12, gap=1.0)
        solution = solver(stopping=rule).solve(problem)
        assert solution.status.converged
        assert 1e-9 < certify(problem, solution.dual).gap <= 1.0


def test_variables_at_a_bound_up_to_rounding_are_set_to_it():
    problem = crammer_singer.pose(matrix(), LABELS, CLASSES, np.full(36, 2.0))
    dual = np.zeros(problem.size)
    dual[0:4] = 2.0 - 4e-16, -2.0 + 4e-16, 1e-17, -1e-17  # own class, other class, and two that should be 0
    dual[4:8] = 1e-16, -1e-16, 0.0, 0.0
    found = crammer_singer.expand(problem, dual, np.zeros(36)).coefficients
    np.testing.assert_array_equal(found[0], [2.0, -2.0, 0.0, 0.0])
    np.testing.assert_array_equal(found[1:], 0.0)
    geometry = crammer_singer.read(problem, dual, certify(problem, dual), np.arange(36))
    assert geometry.bounded.tolist() == [0]
    assert geometry.free.tolist() == []
