"""Generators: properties of their definitions, and reproducibility by seed."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm

from maxmargin import datasets
from maxmargin.cli.data import generators

NAMES = generators()


def test_list_of_generators():
    assert NAMES == [
        "bananas", "chessboard", "documents", "friedman1", "outliers", "ranked_queries", "ringnorm", "rings", "sinc",
        "spirals", "two_gaussians", "twonorm", "waveform", "xor",
    ]  # fmt: skip


def same(left, right):
    return all(
        (a != b).nnz == 0 if sparse.issparse(a) else np.array_equal(a, b) for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
class TestAllGenerators:
    def test_seeds(self, name):
        make = getattr(datasets, name)
        assert same(make(40, seed=3), make(40, seed=3))
        assert not same(make(40, seed=3), make(40, seed=4))

    @pytest.mark.parametrize("count", [1, 2, 17])
    def test_sizes(self, name, count):
        X, y, *query = getattr(datasets, name)(n_samples=count)
        assert X.shape[0] == len(y) == count
        assert all(len(values) == count for values in query)
        assert np.isfinite(X.data if sparse.issparse(X) else X).all()
        assert np.isfinite(y).all()

    def test_no_samples(self, name):
        with pytest.raises(ValueError, match="at least one sample"):
            getattr(datasets, name)(0)

    def test_invalid_arguments(self, name):
        make = getattr(datasets, name)
        for parameter in set(inspect.signature(make).parameters) - {"n_samples", "seed"}:
            with pytest.raises(ValueError, match="need|must be"):
                make(10, **{parameter: -1})


def error_rate(rule, y):
    return np.mean(rule != y)


class TestDefinitions:
    def test_bayes_error_of_two_gaussians(self):
        for distance in (0.5, 2.0):
            X, y = datasets.two_gaussians(40_000, n_features=3, distance=distance)
            assert error_rate(X[:, 0] > 0, y) == pytest.approx(norm.cdf(-distance / 2), abs=0.01)
            assert y.mean() == 0.5

    def test_bayes_error_of_twonorm(self):
        X, y = datasets.twonorm(40_000)
        assert error_rate(X.sum(axis=1) > 0, y) == pytest.approx(norm.cdf(-2), abs=0.003)

    def test_bayes_error_of_ringnorm(self):
        X, y = datasets.ringnorm(40_000)
        wide = -((X / 2) ** 2).sum(axis=1) / 2 - 20 * np.log(2)
        narrow = -((X - 2 / np.sqrt(20)) ** 2).sum(axis=1) / 2
        assert error_rate(narrow > wide, y) == pytest.approx(0.013, abs=0.002)

    def test_bayes_error_of_waveform(self):
        X, y = datasets.waveform(20_000)
        clean, classes = datasets.waveform(3_000, noise=0.0, seed=1)
        # the density of a class is the mean of Gaussians around its samples without noise
        distances = (X[:2000, None] ** 2).sum(axis=-1) - 2 * X[:2000] @ clean.T + (clean**2).sum(axis=1)
        density = np.exp(-distances / 2 + distances.min(axis=1, keepdims=True) / 2)
        rule = np.argmax([density[:, classes == label].mean(axis=1) for label in range(3)], axis=0)
        assert error_rate(rule, y[:2000]) == pytest.approx(0.14, abs=0.025)

    def test_rings_and_spirals_without_noise(self):
        X, y = datasets.rings(300, n_rings=3, noise=0.0)
        radius = np.hypot(*X.T)
        assert np.allclose(radius, np.rint(radius))
        assert np.array_equal((np.rint(radius) - 1) % 2, y)
        X, y = datasets.spirals(300, turns=2)
        radius, angle = np.hypot(*X.T), np.arctan2(X[:, 1], X[:, 0])
        turned = np.mod(angle - 4 * np.pi * radius - np.pi * y, 2 * np.pi)
        assert np.allclose(np.minimum(turned, 2 * np.pi - turned), 0, atol=1e-6)

    def test_flipped_labels(self):
        for make in (datasets.chessboard, datasets.xor):
            assert np.mean(make(20_000)[1] != make(20_000, noise=0.2)[1]) == pytest.approx(0.2, abs=0.01)

    def test_documents_are_counts(self):
        X, y = datasets.documents(200, n_features=500, length=30)
        assert (X.sum(axis=1) == 30).all()
        assert X.has_canonical_format
        assert set(y) == {0, 1}
        means = [np.asarray(X[y == topic].mean(axis=0)).ravel() for topic in (0, 1)]
        assert np.abs(means[0][:20] - means[1][:20]).max() > 0.2  # frequent words distinguish the topics

    def test_regression(self):
        X, y = datasets.sinc(500, noise=0.0)
        assert np.allclose(y * X[:, 0], np.sin(X[:, 0]))
        X, y = datasets.friedman1(2000, noise=0.0)
        again = datasets.friedman1(2000, noise=2.0)[1]
        assert np.std(again - y) == pytest.approx(2, rel=0.1)
        assert X.shape == (2000, 10)

    def test_queries(self):
        X, y, query = datasets.ranked_queries(107, per_query=10, noise=0.0)
        assert np.bincount(query)[1:].tolist() == [10] * 10 + [7]
        weights = np.linalg.lstsq(
            np.vstack([X[query == q] - X[query == q].mean(axis=0) for q in range(1, 12)]),
            np.concatenate([y[query == q] - y[query == q].mean() for q in range(1, 12)]),
            rcond=None,
        )[0]
        ordered = []
        for q in range(1, 11):
            rows = query == q
            assert sorted(y[rows]) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
            score = X[rows] @ weights
            ordered += [score[i] > score[j] for i in range(10) for j in range(10) if y[rows][i] > y[rows][j]]
        assert np.mean(ordered) > 0.97  # a linear function ranks within queries

    def test_outliers(self):
        X, y = datasets.outliers(1000, contamination=0.1)
        assert np.sum(y == -1) == 100
        near = np.abs(np.abs(X) - 2).max(axis=1) < 2.5
        assert near[y == 1].all()
        assert not near[y == -1].all()
