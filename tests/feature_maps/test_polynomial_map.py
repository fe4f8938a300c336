"""Weighted monomials: inner products equal the polynomial kernel, and linear SVC on them equals kernel SVC."""

from math import comb

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import polynomial_kernel

from maxmargin import SVC
from maxmargin.feature_maps import PolynomialMap
from reference.data import iris


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_inner_products_are_the_kernel(degree, coef0, form):
    X = np.random.default_rng(0).normal(size=(12, 4))
    X[np.abs(X) < 0.3] = 0.0
    map = PolynomialMap(degree, 0.3, coef0).fit(form(X))
    features = map.transform(form(X))
    assert sparse.issparse(features) == sparse.issparse(form(X))
    product = features @ features.T
    product = product.toarray() if sparse.issparse(product) else product
    np.testing.assert_allclose(product, polynomial_kernel(X, X, degree, 0.3, coef0), rtol=1e-12, atol=1e-12)
    expected = comb(4 + degree, degree) if coef0 else comb(3 + degree, degree)
    assert features.shape[1] == map.n_output_features_ == len(map.get_feature_names_out()) == expected


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.2])
def test_linear_svc_on_the_features_equals_the_kernel_svc(gamma):
    X, y = iris()
    X, y = X[50:], y[50:]
    features = PolynomialMap(gamma=gamma, coef0=1.0).fit_transform(X)
    linear = SVC(kernel="linear", tol=1e-8).fit(features, y)
    exact = SVC(kernel="poly", gamma=gamma, coef0=1.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(linear.certificate_.primal, exact.certificate_.primal, rtol=1e-9)
    np.testing.assert_allclose(linear.decision_function(features), exact.decision_function(X), atol=1e-6)


def test_feature_names_and_weights():
    map = PolynomialMap(2, 1.0, 1.0).fit([[1.0, 2.0]])
    assert list(map.get_feature_names_out()) == ["1", "x0", "x1", "x0^2", "x0 x1", "x1^2"]
    np.testing.assert_allclose(map.transform([[3.0, 5.0]]), [np.sqrt([1, 2 * 9, 2 * 25, 81, 2 * 225, 625])])


def test_too_many_features_are_an_error_before_allocation():
    with pytest.raises(ValueError, match=r"the weights of 8,416,958,750,200 features need .* GiB.*kernel='poly'"):
        PolynomialMap(5, coef0=0.0).fit(np.ones((3, 1000)) + np.arange(1000))


def test_too_many_samples_are_an_error_before_allocation(monkeypatch):
    monkeypatch.setattr("maxmargin.feature_maps.polynomial_map.usable_memory", lambda: 2**20)
    map = PolynomialMap(2).fit(np.ones((3, 50)))
    with pytest.raises(ValueError, match="500 samples of 1,275 features"):
        map.transform(np.ones((500, 50)))
    with pytest.raises(ValueError, match="500 sparse samples of 1,275 features"):
        map.transform(sparse.csr_array(np.ones((500, 50))))
    assert map.transform(sparse.eye_array(50, format="csr")).nnz == 50


def test_errors():
    for parameters, words in [
        ({"degree": 0}, "degree must be a whole number of at least 1"),
        ({"degree": 2.5}, "degree must be"),
        ({"coef0": -1.0}, "coef0 must be a number of at least 0"),
        ({"gamma": "auto_scale"}, "gamma must be one of"),
    ]:
        with pytest.raises(ValueError, match=words):
            PolynomialMap(**parameters).fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="not finite.*scale the data"):
        PolynomialMap(3, 1.0).fit([[1.0, 2.0]]).transform([[1e150, 1.0]])
