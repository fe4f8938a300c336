"""Votes by sample, without the decision values of all pairs: the same as from those."""

import numpy as np
import pytest

from maxmargin import SVC, _native
from maxmargin.models import OneVsOneVote
from maxmargin.models.kernel_blocks import PrecomputedKernelBlocks


def vote(classes, seed=0, rows=17):
    random = np.random.default_rng(seed)
    counts = random.integers(0, 4, classes)
    counts[0] = 2
    model = OneVsOneVote(
        random.normal(size=(classes - 1, counts.sum())), random.normal(size=classes * (classes - 1) // 2), counts
    )
    return model, PrecomputedKernelBlocks(random.uniform(size=(rows, counts.sum())), np.arange(counts.sum()))


@pytest.mark.parametrize("classes", [3, 4, 9, 30])
@pytest.mark.parametrize("threads", [1, 2])
def test_classes_and_scores_are_those_of_the_decision_values(classes, threads):
    model, blocks = vote(classes, classes)
    decisions = model.decision_values(blocks, 1)
    np.testing.assert_array_equal(model.classes_of(blocks, threads), model.predicted_class(decisions))
    np.testing.assert_allclose(model.scores_of(blocks, threads), model.scores(decisions), rtol=1e-12)


def test_a_value_of_zero_votes_for_the_second_class_in_predict_and_for_the_first_in_scores():
    model, blocks = vote(3)
    model = OneVsOneVote(np.zeros_like(model.coefficients), np.zeros(3), model.counts)
    decisions = np.zeros((17, 3))
    np.testing.assert_array_equal(model.classes_of(blocks, 1), model.predicted_class(decisions))
    np.testing.assert_array_equal(model.scores_of(blocks, 1), model.scores(decisions))


def test_a_model_without_support_vectors():
    model = OneVsOneVote(np.empty((2, 0)), np.array([1.0, -2.0, 3.0]), np.zeros(3, dtype=np.int32))
    blocks = PrecomputedKernelBlocks(np.empty((4, 0)), np.arange(0))
    np.testing.assert_array_equal(model.classes_of(blocks, 1), model.predicted_class(model.decision_values(blocks, 1)))


def test_overflow_is_an_error_that_names_the_sample():
    model, blocks = vote(4)
    values = blocks.values.copy()
    values[5] = 1e308
    coefficients = np.full_like(model.coefficients, 10.0)
    large = OneVsOneVote(coefficients, model.offsets, model.counts)
    with pytest.raises(ValueError, match="decision value of sample 5 exceeds the range"):
        large.classes_of(PrecomputedKernelBlocks(values, blocks.support), 1)


def test_arguments_are_checked():
    model, blocks = vote(4)
    block, columns = blocks.block(slice(0, 2)), np.ascontiguousarray(model.coefficients.T)
    edges, out = np.concatenate([[0], np.cumsum(model.counts)]).astype(np.int64), [np.empty((2, 4)), np.empty((2, 4))]
    assert _native.one_vs_one_votes(block, columns, edges, model.offsets, True, 1e300, *out)
    for broken in (edges[::-1].copy(), edges[:-1].copy(), edges + 1):
        with pytest.raises(ValueError, match="edges|offset|shape|votes"):
            _native.one_vs_one_votes(block, columns, broken, model.offsets, True, 1e300, *out)
    with pytest.raises(ValueError, match="offset"):
        _native.one_vs_one_votes(block, columns, edges, model.offsets[1:].copy(), True, 1e300, *out)


def test_many_classes_of_few_samples():
    """The case of hundreds of classes: predictions by votes in place, scores from all decision values."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(240, 6)), np.repeat(np.arange(80), 3)
    model = SVC(gamma=0.2).fit(X, y)
    pairs = SVC(gamma=0.2, decision_function_shape="ovo").fit(X, y)
    decisions = pairs.decision_function(X)
    assert decisions.shape == (240, 3160)
    np.testing.assert_array_equal(model.predict(X), y[::3][model._model().predicted_class(decisions)])
    np.testing.assert_allclose(model.decision_function(X), model._model().scores(decisions), rtol=1e-9)
    by_pipeline = SVC(gamma=0.2, solver="pairwise").fit(X, y)  # one problem after the other
    np.testing.assert_allclose(model.dual_coef_, by_pipeline.dual_coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, by_pipeline.intercept_, atol=1e-6)
    assert [trained.counters.kernel_evaluations for trained in model._models_] == [36] * 3160
    assert model.certificate_[-1].violation <= 1e-3
