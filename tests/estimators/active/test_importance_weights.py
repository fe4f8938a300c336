"""Importance weights for covariate shift."""

import numpy as np
import pytest

from maxmargin import SVC, LinearSVC, importance_weights
from maxmargin.estimators.active.importance_weights import density_ratio


def normal(mean, spread, n, seed):
    return np.random.default_rng(seed).normal(mean, spread, (n, 1))


def exact_ratio(x):
    """Return the density of N(0.5, 0.5) over that of N(0, 1)."""
    return np.exp(0.5 * x**2 - 0.5 * (x - 0.5) ** 2 / 0.25) / 0.5


@pytest.mark.parametrize("neighbors", [1, 3, 10])
@pytest.mark.parametrize("dimension", [1, 3])
def test_equals_the_definition(neighbors, dimension):
    random = np.random.default_rng(0)
    train, test = random.integers(0, 6, (60, dimension)) * 1.0, random.integers(0, 6, (80, dimension)) * 1.0
    found = importance_weights(train, test, neighbors)
    for x, weight in zip(train, found, strict=True):
        to_train, to_test = (np.sqrt(((samples - x) ** 2).sum(axis=1)) for samples in (train, test))
        radius = np.sort(to_train)[neighbors] * (1 + 1e-12)  # after itself
        others = (np.sum(to_train <= radius) - 1) / 59
        assert weight == pytest.approx(np.mean(to_test <= radius) / others)


def test_estimate_improves_with_more_samples():
    errors = []
    for n in (200, 1500):
        train, test = normal(0, 1, n, 0), normal(0.5, 0.5, n, 1)
        weights = importance_weights(train, test)
        errors.append(np.sqrt(np.mean((weights - exact_ratio(train.ravel())) ** 2)))
        assert weights.mean() == pytest.approx(1.0, abs=0.15)
    assert errors[1] < errors[0]
    assert errors[1] < 0.25


def test_cross_validation_is_close_to_the_best_number():
    train, test = normal(0, 1, 1000, 2), normal(0.5, 0.5, 1000, 3)

    def error(weights):
        return np.mean((weights - exact_ratio(train.ravel())) ** 2)

    tried = [error(density_ratio(train, train, test, k, own=1)) for k in (1, 4, 16, 64, 256)]
    assert error(importance_weights(train, test)) < 2 * min(tried)
    assert tried[0] > 10 * min(tried)
    assert tried[-1] > 2 * min(tried)


def test_equal_distributions_have_weights_near_one():
    train, test = normal(0, 1, 1000, 0), normal(0, 1, 1000, 1)
    weights = importance_weights(train, test)
    assert np.mean(np.abs(weights - 1)) < 0.25


def shifted(seed, n=800):
    """Return training samples mostly from the left and test samples mostly from the right of a curved boundary."""
    random = np.random.default_rng(seed)

    def samples(centre):
        X = np.column_stack([random.normal(centre, 0.8, n), random.uniform(-2, 2, n)])
        return X, (X[:, 1] + 0.1 * random.normal(size=n) > np.abs(X[:, 0]) - 0.7).astype(int)

    return *samples(-0.6), *samples(0.6)


def test_weights_improve_accuracy_under_covariate_shift():
    gained = {"linear": [], "gaussian": []}
    for seed in range(6):
        X, y, X_test, y_test = shifted(seed)
        weights = importance_weights(X, X_test)
        models = {"linear": LinearSVC(loss="hinge"), "gaussian": SVC(gamma=0.02)}
        for name, model in models.items():
            plain = model.fit(X, y).score(X_test, y_test)
            gained[name].append(model.fit(X, y, sample_weight=weights).score(X_test, y_test) - plain)
    for gains in gained.values():  # models too simple for the whole boundary fit the part with test samples
        assert min(gains) > 0.03
        assert np.mean(gains) > 0.06


def test_weights_without_a_shift():
    for seed in range(3):
        X, y, *_ = shifted(seed)
        X_test, y_test = X[400:], y[400:]
        X, y = X[:400], y[:400]
        weighted = SVC().fit(X, y, sample_weight=importance_weights(X, X_test)).score(X_test, y_test)
        assert weighted > SVC().fit(X, y).score(X_test, y_test) - 0.02


def test_hard_cases():
    ones = np.ones((5, 2))
    np.testing.assert_allclose(importance_weights(ones, ones, 2), 1.0)
    np.testing.assert_allclose(importance_weights([[0.0], [1.0]], [[1.0], [2.5]], n_neighbors=1), [0.5, 0.5])
    assert importance_weights(np.arange(10.0)[:, None], [[4.0], [5.0]], n_neighbors=[2, 4]).sum() > 0
    first, again = (importance_weights(normal(0, 1, 50, 0), normal(1, 1, 50, 1)) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_error_messages():
    X, Z = normal(0, 1, 20, 0), normal(0, 1, 20, 1)
    for arguments, sentence in [
        ((X, Z, 0), "at least 1"),
        ((X, Z, 20), "between 1 and the number of other training samples, 19"),
        ((X, Z, []), "between 1"),
        ((X, Z, "many"), "'auto'"),
        ((X, np.ones((3, 2))), "1 features, but X_test has 2"),
        ((X, X + 1e6, 3), "do not overlap"),
        ((np.where(X > 1, np.nan, X), Z), "NaN"),
        ((X, [[0.0]]), "two test samples"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            importance_weights(*arguments)
