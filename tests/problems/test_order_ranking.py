"""Rankings without a list of pairs: sums, responses and certificates compared with matrices of all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import _native
from maxmargin.formulations import pairwise_ranking
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import certify
from maxmargin.problems.order_ranking import OrderRanking
from reference import ranking


def example(n=60, queries=3, levels=5, seed=0, digits=None):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    targets = random.integers(0, levels, n).astype(float)
    query, weights = random.integers(0, queries, n), random.uniform(0.2, 2.0, n)
    scores = random.normal(size=n)
    scores = scores if digits is None else np.round(scores, digits)
    return OrderRanking(KernelMatrix(Linear(), Points(X)), targets, query, weights, 0.7), scores


SAMPLE = st.tuples(st.integers(0, 2), st.integers(0, 3), st.sampled_from([-2.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 3.0]))


@given(st.lists(SAMPLE, min_size=1, max_size=14), st.sampled_from([-0.5, 0.5, 1.0]), st.booleans())
def test_sums_and_extremes_equal_those_of_all_pairs(samples, low, compensated):
    query, targets, scores = (np.array(values, dtype=float) for values in zip(*samples, strict=True))
    problem = OrderRanking(None, targets, query.astype(np.int64), np.ones(len(samples)), 1.0)
    values = np.column_stack([np.arange(1.0, len(samples) + 1), np.arange(len(samples)) % 3])
    window = problem.at(scores, 0.0)
    found = []
    for as_first in (True, False):
        inner, between = np.empty_like(values), np.empty_like(values)
        _native.partner_sums(window._samples, values, low, 1.0, as_first, compensated, inner, between)
        found += [inner, between]
    pairs = ranking.above(targets, query)
    for one, expected in zip(found, ranking.partner_sums(pairs, scores, values, low, 1.0), strict=True):
        np.testing.assert_allclose(one, expected, atol=1e-12)
    other = np.cos(np.arange(len(samples)))
    least, most = _native.pair_extremes(window._samples, other, low, 1.0)
    assert (least, most) == pytest.approx(ranking.pair_extremes(pairs, scores, other, low, 1.0))


@pytest.mark.parametrize("width", [2.0, 0.3, 1e-4, 1e-9])
@pytest.mark.parametrize("digits", [None, 1])
def test_responses_and_derivative_equal_those_of_all_pairs(width, digits):
    problem, scores = example(digits=digits)
    window = problem.at(scores, width)
    costs = problem.cost * problem.weights[:, None] * problem.weights
    pairs = ranking.above(problem.targets, problem.queries)
    expected = ranking.responses(pairs, scores, costs, width)
    np.testing.assert_allclose(window.coefficients, expected.sum(axis=1) - expected.sum(axis=0), atol=1e-5)
    assert window.total == pytest.approx(expected.sum(), rel=1e-7)
    free = np.where((expected > 0) & (expected < costs), costs / width, 0.0)
    free = free + free.T
    laplacian = np.diag(free.sum(axis=1)) - free
    values = np.random.default_rng(1).normal(size=(len(scores), 3))
    if digits is None:  # with equal differences, a pair at the edge of the window is free or not by rounding
        np.testing.assert_allclose(window.laplacian_product(values), laplacian @ values, atol=1e-9 / width)
        assert window.window_counts() == (np.count_nonzero(free) // 2, np.count_nonzero(expected == costs * pairs) -
                                          np.count_nonzero(~pairs))  # fmt: skip
    losses = np.where(pairs, costs * np.maximum(0.0, 1.0 - (scores[:, None] - scores)), 0.0)
    np.testing.assert_allclose(problem.loss(scores), losses.sum(axis=1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("width", [1.0, 0.05])
def test_certificate_is_that_of_the_listed_pairs(width):
    problem, scores = example()
    first, second = pairwise_ranking.list_pairs(problem.targets, problem.queries)
    costs = problem.cost * problem.weights[first] * problem.weights[second]
    listed = pairwise_ranking.pose(problem.matrix, first, second, costs)
    dual = costs * np.clip((1.0 - (scores[first] - scores[second])) / width, 0.0, 1.0)
    expected, found = certify(listed, dual), problem.at(scores, width).certify()
    for name in ("primal", "dual", "gap", "violation", "squared_norm"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    by_first = np.bincount(first, weights=expected.residual, minlength=len(scores))
    np.testing.assert_allclose(found.residual, by_first, atol=1e-9)
    assert found.residual.sum() == pytest.approx(found.gap)


def test_arguments_are_checked():
    arrays = {"order": np.arange(3), "starts": np.array([0, 3]), "level": np.zeros(3, np.int32), "scores": np.zeros(3)}
    out = np.empty((3, 1))

    def call(**changes):
        samples = _native.OrderArrays(**{**arrays, **changes})
        _native.partner_sums(samples, np.ones((3, 1)), 0.5, 1.0, True, False, None, out)

    call()
    for changes, message in (
        ({"order": np.array([0, 1, 3])}, "out of range"),
        ({"starts": np.array([0, 2])}, "end with the number of samples"),
        ({"starts": np.array([0, 4, 3])}, "must not decrease|out of range"),
        ({"level": np.array([0, 1, 3], np.int32)}, "level is out of range"),
        ({"scores": np.zeros(2)}, "one length"),
    ):
        with pytest.raises(ValueError, match=message):
            call(**changes)
