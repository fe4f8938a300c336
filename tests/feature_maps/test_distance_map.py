"""Distances to prototypes: given, drawn from the samples, and from k-means."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from maxmargin.feature_maps import DistanceMap
from reference.data import wine


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "cosine", "chebyshev", "canberra"])
def test_distances_to_given_prototypes(metric):
    X, _ = wine()
    features = DistanceMap(X[::30], metric=metric).fit(X).transform(X)
    np.testing.assert_allclose(features, cdist(X, X[::30], metric), atol=1e-7)


def test_gaussian_features():
    X, _ = wine()
    features = DistanceMap(X[:3], gamma=0.1).fit_transform(X)
    np.testing.assert_allclose(features, np.exp(-0.1 * cdist(X, X[:3]) ** 2), atol=1e-12)
    far = DistanceMap([[0.0]], gamma=1.0).fit_transform([[1e200], [0.0]])
    np.testing.assert_array_equal(far, [[0.0], [1.0]])


def test_callable_metric():
    X, _ = wine()
    features = DistanceMap(X[:2], metric=lambda a, b: np.abs(a - b).max()).fit_transform(X)
    np.testing.assert_allclose(features, cdist(X, X[:2], "chebyshev"))


def test_samples_as_prototypes():
    X, _ = wine()
    map = DistanceMap("sample", 25, random_state=3).fit(X)
    assert len(np.unique(map.prototypes_, axis=0)) == 25
    assert all((prototype == X).all(axis=1).any() for prototype in map.prototypes_)
    np.testing.assert_array_equal(map.prototypes_, DistanceMap("sample", 25, random_state=3).fit(X).prototypes_)
    assert DistanceMap("sample", 10_000).fit(X).prototypes_.shape == X.shape


@pytest.mark.parametrize("repetitions", [1, 150])  # k-means and mini-batch k-means
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_centres_as_prototypes(repetitions, form):
    random = np.random.default_rng(0)
    centres = np.array([[0.0, 10.0], [10.0, 0.0], [-10.0, -10.0]])
    X = np.repeat(centres, 30 * repetitions, axis=0) + random.normal(size=(90 * repetitions, 2))
    map = DistanceMap(n_prototypes=3, random_state=0).fit(form(X))
    found = map.prototypes_.toarray() if sparse.issparse(map.prototypes_) else map.prototypes_
    assert cdist(centres, found).min(axis=1).max() < 1.0


def test_prototypes_are_a_copy():
    given = np.eye(2)
    map = DistanceMap(given).fit([[1.0, 2.0]])
    given[:] = 7.0
    np.testing.assert_array_equal(map.prototypes_, np.eye(2))


def test_errors():
    X, _ = wine()
    for parameters, words in [
        ({"prototypes": "median"}, "prototypes must be 'sample', 'kmeans' or an array of samples, not 'median'"),
        ({"prototypes": X[:3, :2]}, "prototypes have 2 features, but X has 13"),
        ({"prototypes": [[np.nan] * 13]}, "prototypes contains NaN"),
        ({"n_prototypes": 0}, "n_prototypes must be a whole number of at least 1"),
        ({"gamma": -1.0}, "gamma must be a number of at least 0"),
        ({"metric": "precomputed"}, "has no prototypes"),
        ({"metric": "straight"}, "'metric' parameter of pairwise_distances"),
    ]:
        with pytest.raises(ValueError, match=words):
            DistanceMap(**parameters).fit(X)
    with pytest.raises(TypeError, match="do not support sparse"):
        DistanceMap("sample", metric="canberra").fit(sparse.csr_array(X))
