from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.formulation_contract import FormulationContract
from maxmargin.formulations import pairwise_ranking
from maxmargin.kernels import Gaussian, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.solvers import BlockSolver, PairwiseSolver, StoppingRule

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(24, 3))
TARGETS, QUERIES = RANDOM.integers(0, 4, 24).astype(float), RANDOM.integers(0, 3, 24)
FIRST, SECOND = pairwise_ranking.list_pairs(TARGETS, QUERIES)
COSTS = RANDOM.uniform(0.1, 2.0, len(FIRST))


class TestRanking(FormulationContract):
    def pose(self):
        return pairwise_ranking.pose(KernelMatrix(Gaussian(0.5), Points(X)), FIRST, SECOND, COSTS)

    def textbook_primal(self, product, offset, squared_norm):
        return 0.5 * squared_norm + (COSTS * np.maximum(0.0, 1.0 - product)).sum()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=12))
def test_pairs_equal_those_of_a_double_loop(samples):
    queries, targets = (np.array(values) for values in zip(*samples, strict=True))
    expected = {
        (i, j)
        for i, j in product(range(len(samples)), repeat=2)
        if queries[i] == queries[j] and targets[i] > targets[j]
    }
    first, second = pairwise_ranking.list_pairs(targets.astype(float), queries)
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == sorted(expected)
    assert pairwise_ranking.count_pairs(targets.astype(float), queries) == len(expected)


def test_geometry_and_scores():
    problem = TestRanking().pose()
    dual = PairwiseSolver().solve(problem).dual
    certificate = certify(problem, dual)
    rows = np.arange(100, 124)
    geometry = pairwise_ranking.read(problem, dual, certificate, rows)
    scores = Gaussian(0.5)(X) @ pairwise_ranking.expand(problem, dual, certificate.offset).coefficients
    lead = scores[geometry.pairs[:, 0] - 100] - scores[geometry.pairs[:, 1] - 100]
    np.testing.assert_allclose(geometry.slack, np.maximum(0.0, 1.0 - lead), atol=1e-12)
    np.testing.assert_allclose(lead[geometry.free], 1.0, atol=1e-9)
    assert (lead[geometry.bounded] < 1 + 1e-9).all()
    assert (lead[geometry.non_support] > 1 - 1e-9).all()
    assert len(geometry.free) + len(geometry.bounded) + len(geometry.non_support) == len(FIRST)
    assert geometry.margin == pytest.approx(1 / np.sqrt(geometry.squared_norm))


def test_the_block_solver_solves_rankings():
    Z = np.random.default_rng(1).normal(size=(60, 4))
    pairs = pairwise_ranking.list_pairs(np.sin(Z).sum(axis=1), np.zeros(60, dtype=np.int64))
    problem = pairwise_ranking.pose(KernelMatrix(Gaussian(0.2), Points(Z)), *pairs, np.full(len(pairs[0]), 0.1))
    rule = StoppingRule(violation=1e-4)
    values = [
        certify(problem, solver.solve(problem).dual)
        for solver in (BlockSolver(stopping=rule), BlockSolver(working_set=100, stopping=rule, nested_above=500),
                       BlockSolver(working_set=300, cache_bytes=0, stopping=rule), PairwiseSolver(stopping=rule))
    ]  # fmt: skip
    for certificate in values:
        assert certificate.violation <= 1e-4
        assert certificate.dual == pytest.approx(values[-1].dual, rel=1e-5)
