"""Models of structured outputs: maximisers against the enumeration of all outputs."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from maxmargin.models import ChainModel, MultiLabelModel


def best_of_all(model, outputs, weights, x, y=None):
    """Return the largest score, with the loss if there is a right output, by enumeration."""
    return max(weights @ model.features(x, other) + (0.0 if y is None else model.loss(y, other)) for other in outputs)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_maximum_over_all_chains(seed, ends, make):
    random = np.random.default_rng(seed)
    X = [make(random.normal(size=(length, 3))) for length in (4, 1, 5)]
    labels = np.array(["a", "b", "c"])
    y = [labels[[0, 1, 2, 1]], labels[[2]], labels[random.integers(3, size=5)]]
    model = ChainModel(ends=ends)
    model.prepare(X, y)
    weights = random.normal(size=model.n_features)
    assert model.n_features == 3 * 3 + 9 + (6 if ends else 0)
    for x, right in zip(X, y, strict=True):
        outputs = [labels[list(codes)] for codes in product(range(3), repeat=x.shape[0])]
        found = model.predict(weights, x)
        assert weights @ model.features(x, found) == pytest.approx(best_of_all(model, outputs, weights, x))
        worst = model.most_violated(weights, x, right)
        value = weights @ model.features(x, worst) + model.loss(right, worst)
        assert value == pytest.approx(best_of_all(model, outputs, weights, x, right))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("edges", ["tree", "independent", [(3, 1), (1, 0)]])
def test_maximum_over_all_sets_of_labels(seed, edges):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(20, 3)), random.integers(2, size=(20, 5))
    model = MultiLabelModel(edges)
    model.prepare(X, y)
    weights = random.normal(size=model.n_features)
    outputs = [np.array(states) for states in product((0, 1), repeat=5)]
    for x, right in zip(X[:4], y, strict=False):
        found = model.predict(weights, x)
        assert weights @ model.features(x, found) == pytest.approx(best_of_all(model, outputs, weights, x))
        worst = model.most_violated(weights, x, right)
        value = weights @ model.features(x, worst) + model.loss(right, worst)
        assert value == pytest.approx(best_of_all(model, outputs, weights, x, right))


def test_tree_joins_labels_that_depend_on_each_other():
    random = np.random.default_rng(0)
    first, third = random.integers(2, size=(2, 500))
    labels = np.column_stack([first, third, np.where(random.random(500) < 0.9, first, 1 - first)])
    model = MultiLabelModel()
    model.prepare(random.normal(size=(500, 2)), labels)
    assert {frozenset(edge) for edge in model.edges_.tolist()} >= {frozenset((0, 2))}
    assert len(model.edges_) == 2


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(0, 1), (1, 2), (2, 0)], "forest"),
        ([(0, 9)], "from 0 to 2"),
        ("star", "'tree', 'independent'"),
        ([(1, 1)], "forest"),
    ],
)
def test_edges_that_are_no_forest(edges, message):
    with pytest.raises(ValueError, match=message):
        MultiLabelModel(edges).prepare(np.ones((2, 1)), np.array([[0, 1, 0], [1, 0, 0]]))


def test_labels_that_are_no_sets():
    with pytest.raises(ValueError, match="0 or 1"):
        MultiLabelModel().prepare(np.ones((2, 1)), np.array([[0, 2], [1, 0]]))
    with pytest.raises(ValueError, match="shape"):
        MultiLabelModel().prepare(np.ones((2, 1)), np.array([0, 1]))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_samples_that_are_not_finite(value):
    chain, labels = ChainModel(), MultiLabelModel()
    chain.prepare([np.ones((2, 3))], [[0, 1]])
    labels.prepare(np.ones((2, 3)), [[0, 1], [1, 0]])
    for model, sample in ((chain, np.full((2, 3), value)), (labels, np.full(3, value))):
        with pytest.raises(ValueError, match="missing values"):
            model.predict(np.ones(model.n_features), sample)


def test_sequences_of_different_shapes():
    with pytest.raises(ValueError, match="one label for each element"):
        ChainModel().prepare([np.ones((2, 3))], [[0]])
    with pytest.raises(ValueError, match="same number of features"):
        ChainModel().prepare([np.ones((2, 3)), np.ones((1, 2))], [[0, 1], [0]])
    with pytest.raises(ValueError, match="at least two different labels"):
        ChainModel().prepare([np.ones((2, 3))], [[0, 0]])
