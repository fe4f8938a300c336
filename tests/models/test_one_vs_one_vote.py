"""One-vs-one voting: decision values, ties, scores and weights, against LIBSVM's and scikit-learn's rules."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import svm
from sklearn.utils.multiclass import _ovr_decision_function

from maxmargin import SVC
from maxmargin.kernels import FunctionKernel, Gaussian, Linear, Points
from maxmargin.models import ComputedKernelBlocks, OneVsOneVote, PrecomputedKernelBlocks


def vote(classes):
    return OneVsOneVote(np.empty((classes - 1, 0)), np.zeros(classes * (classes - 1) // 2), np.zeros(classes, int))


def some_model(counts, seed=0):
    random = np.random.default_rng(seed)
    classes, total = len(counts), sum(counts)
    coefficients = random.normal(size=(classes - 1, total))
    return OneVsOneVote(coefficients, random.normal(size=classes * (classes - 1) // 2), np.array(counts))


def textbook_decisions(model, values):
    """Decision values by LIBSVM's loop over pairs, for kernel values of samples and support vectors."""
    starts = np.concatenate([[0], np.cumsum(model.counts)])
    columns = []
    for p, (a, b) in enumerate(combinations(range(model.classes), 2)):
        decision = np.full(len(values), model.offsets[p])
        for s in range(starts[a], starts[a + 1]):
            decision += model.coefficients[b - 1, s] * values[:, s]
        for s in range(starts[b], starts[b + 1]):
            decision += model.coefficients[a, s] * values[:, s]
        columns.append(decision)
    return np.column_stack(columns)


def libsvm_vote(decisions, classes):
    """LIBSVM's svm_predict_values: a vote for the first class if the value is above 0, the first maximum wins."""
    votes = [0] * classes
    for p, (a, b) in enumerate(combinations(range(classes), 2)):
        votes[a if decisions[p] > 0 else b] += 1
    return votes.index(max(votes))


class TestTies:
    def test_a_cycle_goes_to_the_lowest_class(self):
        # 0 beats 1, 1 beats 2, 2 beats 0: one vote each.
        assert vote(3).predicted_class(np.array([[5.0, -1.0, 0.1]])) == [0]
        # The reversed cycle, and a large decision value of another class makes no difference.
        assert vote(3).predicted_class(np.array([[-0.1, 9.0, -9.0]])) == [0]

    def test_two_of_four_classes_tie(self):
        # Pairs (0,1) (0,2) (0,3) (1,2) (1,3) (2,3): classes 1 and 3 have two votes each, 0 and 2 one.
        decisions = np.array([[-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]])
        assert vote(4).predicted_class(decisions) == [1]

    def test_a_decision_value_of_zero_is_a_vote_for_the_second_class(self):
        assert vote(2).predicted_class(np.array([[0.0], [-0.0], [1e-300], [-1e-300]])).tolist() == [1, 1, 0, 1]
        assert vote(3).predicted_class(np.zeros((1, 3))) == [2]

    @settings(max_examples=200, deadline=None)
    @given(st.integers(2, 5).flatmap(lambda k: st.tuples(
        st.just(k), st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]),
                             min_size=k * (k - 1) // 2, max_size=k * (k - 1) // 2))))  # fmt: skip
    def test_equals_libsvm_for_any_values(self, case):
        classes, decisions = case
        assert vote(classes).predicted_class(np.array([decisions])) == [libsvm_vote(decisions, classes)]

    @pytest.mark.parametrize("break_ties", [False, True])
    def test_ties_of_a_fitted_model_are_those_of_scikit_learn(self, break_ties):
        random = np.random.default_rng(6)  # classes that overlap: a quarter of the grid is a cycle of votes
        X, y = random.normal(size=(30, 2)), np.arange(30) % 3
        grid = np.stack(np.meshgrid(np.linspace(-3, 3, 61), np.linspace(-3, 3, 61)), axis=-1).reshape(-1, 2)
        options = {"C": 10.0, "gamma": 1.0}
        decisions = SVC(**options, decision_function_shape="ovo").fit(X, y).decision_function(grid)
        clear = np.abs(decisions).min(axis=1) > 1e-3  # the signs do not depend on rounding
        first, second, third = (decisions > 0).T
        cycles = clear & (first == third) & (first != second)
        assert cycles.sum() > 100
        mine = SVC(**options, break_ties=break_ties).fit(X, y).predict(grid)
        theirs = svm.SVC(**options, break_ties=break_ties, tol=1e-9).fit(X, y).predict(grid)
        np.testing.assert_array_equal(mine[clear], theirs[clear])
        assert set(mine[cycles]) == ({0, 1, 2} if break_ties else {0})


class TestScores:
    def test_equal_scikit_learn(self):
        random = np.random.default_rng(0)
        for classes in (3, 4, 6):
            decisions = random.normal(size=(50, classes * (classes - 1) // 2)) * 3.0
            decisions[::7] = 0.0
            expected = _ovr_decision_function(decisions < 0, -decisions, classes)
            np.testing.assert_allclose(vote(classes).scores(decisions), expected, rtol=1e-14)

    def test_votes_dominate_and_decision_values_break_ties(self):
        decisions = np.array([[5.0, -1.0, 0.1], [1.0, 1.0, 1e9]])
        scores = vote(3).scores(decisions)
        assert scores[0].argmax() == 0
        np.testing.assert_array_equal(np.floor(scores[0] + 0.5), [1, 1, 1])
        assert scores[1].argmax() == 0  # two votes outweigh any decision value
        assert vote(3).scores(np.array([[0.1, -5.0, 1.0]])).argmax() == 2  # a tie, broken by the decision values


class TestDecisionValues:
    @pytest.mark.parametrize("counts", [(3, 4), (2, 3, 4), (1, 0, 2, 3), (0, 0, 5)])
    def test_equal_the_loop_over_pairs(self, counts):
        random = np.random.default_rng(1)
        support, X = random.normal(size=(sum(counts), 3)), random.normal(size=(17, 3))
        model = some_model(counts)
        values = Gaussian(0.3)(X, support)
        expected = textbook_decisions(model, values)
        for blocks in (
            ComputedKernelBlocks(Gaussian(0.3), Points(X), Points(support)),
            ComputedKernelBlocks(FunctionKernel(Gaussian(0.3)), Points(X), Points(support)),
            PrecomputedKernelBlocks(values, np.arange(sum(counts))),
        ):
            np.testing.assert_allclose(model.decision_values(blocks, 2), expected, atol=1e-12)

    def test_without_support_vectors_they_are_the_offsets(self):
        model = some_model((0, 0, 0))
        blocks = ComputedKernelBlocks(Linear(), Points(np.ones((4, 2))), Points(np.empty((0, 2))))
        np.testing.assert_array_equal(model.decision_values(blocks, 1), np.tile(model.offsets, (4, 1)))

    def test_weights_of_a_linear_kernel(self):
        random = np.random.default_rng(2)
        for counts in ((3, 4), (2, 3, 4)):
            support, X = random.normal(size=(sum(counts), 5)), random.normal(size=(11, 5))
            model = some_model(counts)
            expected = textbook_decisions(model, X @ support.T)
            np.testing.assert_allclose(X @ model.weights(support).T + model.offsets, expected, atol=1e-12)


def test_many_classes_are_decided_in_parts(monkeypatch):
    """Votes and scores of slices of the samples are those of all samples at once."""
    X = np.random.default_rng(0).normal(size=(120, 3))
    model = SVC().fit(X, np.arange(120) % 12)
    expected = model.predict(X), model.decision_function(X)
    ties = model.set_params(break_ties=True).predict(X)
    monkeypatch.setattr("maxmargin.models.kernel_blocks.BLOCK_BYTES", 8 * 120 * 7)
    assert np.array_equal(model.predict(X), ties)
    assert np.array_equal(model.set_params(break_ties=False).predict(X), expected[0])
    np.testing.assert_allclose(model.decision_function(X), expected[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("classes", [3, 4, 9])
def test_scores_are_summed_in_the_order_of_the_pairs(classes):
    decisions = (
        np.random.default_rng(classes).normal(size=(20, classes * (classes - 1) // 2)) * 10.0 ** np.arange(20)[:, None]
    )
    votes, confidence = np.zeros((20, classes)), np.zeros((20, classes))
    for p, (a, b) in enumerate(combinations(range(classes), 2)):
        confidence[:, a] += decisions[:, p]
        confidence[:, b] -= decisions[:, p]
        votes[:, a] += decisions[:, p] >= 0
        votes[:, b] += decisions[:, p] < 0
    expected = votes + confidence / (3.0 * (np.abs(confidence) + 1.0))
    np.testing.assert_array_equal(vote(classes).scores(decisions), expected)
