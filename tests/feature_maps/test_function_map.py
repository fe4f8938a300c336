"""Features from functions and fitted estimators."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder

from maxmargin.feature_maps import FunctionMap
from reference.data import wine


def test_features_equal_the_output():
    X, y = wine()
    clusters = KMeans(3, n_init=1, random_state=0).fit(X)  # has both methods; transform takes precedence
    np.testing.assert_array_equal(FunctionMap(clusters).fit_transform(X), clusters.transform(X))
    ridge = Ridge().fit(X, y)
    np.testing.assert_array_equal(FunctionMap(ridge).fit_transform(X).ravel(), ridge.predict(X))
    reduced = PCA(2).fit(X)
    np.testing.assert_array_equal(FunctionMap(reduced.transform).fit_transform(X), reduced.transform(X))
    whole = OneHotEncoder().fit(np.rint(X[:, :2]))
    features = FunctionMap(whole).fit_transform(np.rint(X[:, :2]))
    assert sparse.issparse(features)
    assert (features != whole.transform(np.rint(X[:, :2]))).nnz == 0
    assert FunctionMap(lambda X: X > 0).fit_transform(X).dtype == np.float64


def test_errors():
    X, _ = wine()
    for map, words in [
        (FunctionMap(), "function must be callable, a torch module or have"),
        (FunctionMap(np.tanh, layer="1"), "layer='1' requires a torch module"),
        (FunctionMap(np.tanh, batch_size=0), "batch_size must be"),
        (FunctionMap(lambda X: X.sum()), r"shape \(\) for 1 samples"),
        (FunctionMap(lambda X: np.array(["a"])), "must return real numbers"),
        (FunctionMap(lambda X: X * np.inf), "not finite"),
    ]:
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=words):
            map.fit(X)
    with pytest.raises(ValueError, match="returned 178 features for 178 samples, but 1 in fit"):
        FunctionMap(lambda X: X @ X.T).fit(X).transform(X)
