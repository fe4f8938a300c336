"""The concordance index against the double loop over all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.models.concordance import concordance


def by_double_loop(scores, targets, queries, weights):
    concordant = total = 0.0
    for i in range(len(scores)):
        for j in range(len(scores)):
            if queries[i] == queries[j] and targets[i] > targets[j]:
                total += weights[i] * weights[j]
                concordant += weights[i] * weights[j] * (float(scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
    return concordant, total


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([-1.0, 0.0, 0.5, 0.5, 2.0]),
            st.integers(0, 3),
            st.integers(0, 2),
            st.sampled_from([0.0, 0.5, 1.0, 3.0]),
        ),
        min_size=1,
        max_size=15,
    )
)
def test_equals_the_double_loop(rows):
    scores, targets, queries, weights = (np.array(column) for column in zip(*rows, strict=True))
    found = concordance(scores, targets.astype(float), queries, weights)
    assert found == pytest.approx(by_double_loop(scores, targets, queries, weights))


def test_perfect_reversed_and_tied_scores():
    targets, queries, weights = np.array([0.0, 1.0, 2.0, 2.0]), np.zeros(4, dtype=np.int64), np.ones(4)
    assert concordance(targets, targets, queries, weights) == (5.0, 5.0)
    assert concordance(-targets, targets, queries, weights) == (0.0, 5.0)
    assert concordance(np.zeros(4), targets, queries, weights) == (2.5, 5.0)


def test_equal_targets_make_no_pairs():
    assert concordance(np.arange(3.0), np.ones(3), np.zeros(3, dtype=np.int64), np.ones(3)) == (0.0, 0.0)


def test_many_samples_against_kendall():
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(0)
    targets, n = random.permutation(2000).astype(float), 2000
    scores = targets + random.normal(scale=400.0, size=n)
    concordant, total = concordance(scores, targets, np.zeros(n, dtype=np.int64), np.ones(n))
    assert total == n * (n - 1) / 2
    assert 2 * concordant / total - 1 == pytest.approx(stats.kendalltau(scores, targets).statistic)
