"""scikit-learn's checks, properties shared by all feature maps, and scikit-learn's own maps with our estimators."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import SVC, SVR
from maxmargin.feature_maps import DistanceMap, FunctionMap, NystroemMap, PolarCoordinates, PolynomialMap
from reference.data import iris, wine

MAPS = [
    DistanceMap(n_prototypes=4, random_state=0),
    DistanceMap("sample", 4, gamma=0.05, random_state=0),
    FunctionMap(np.tanh),
    NystroemMap(n_components=20, random_state=0),
    NystroemMap("poly", degree=2, n_components=20, landmarks="kmeans", random_state=0),
    PolarCoordinates(),
    PolarCoordinates("mean"),
    PolynomialMap(degree=2),
    PolynomialMap(degree=2, coef0=1.0),
]
EACH_MAP = pytest.mark.parametrize("map", MAPS, ids=str)


@parametrize_with_checks([map for map in MAPS if getattr(map, "landmarks", None) != "kmeans"])
def test_sklearn_checks(estimator, check):
    check(estimator)


@EACH_MAP
def test_feature_names_and_data_frames(map):
    X, _ = iris()
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    fitted = clone(map).set_output(transform="pandas").fit(frame)
    features = fitted.transform(frame)
    assert isinstance(features, pd.DataFrame)
    assert list(features.columns) == list(fitted.get_feature_names_out())
    assert len(set(features.columns)) == features.shape[1]
    np.testing.assert_array_equal(clone(map).fit(X).transform(X), features.to_numpy())
    assert fitted.n_features_in_ == 4
    assert list(fitted.feature_names_in_) == names
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(frame[names[::-1]])


@EACH_MAP
def test_unpickled_map_gives_the_same_features(map):
    X, _ = wine()
    fitted = clone(map).fit(X[:100])
    features = fitted.transform(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), features)
    # Features of a sample do not depend on the other samples, except for the order of summation in matrix products.
    np.testing.assert_allclose(fitted.transform(X[:7]), features[:7], atol=1e-5)


@EACH_MAP
def test_float32_is_preserved(map):
    X, _ = iris()
    single, double = clone(map).fit(X.astype(np.float32)), clone(map).fit(X)
    features = single.transform(X.astype(np.float32))
    assert features.dtype == np.float32
    if not isinstance(map, NystroemMap):  # whose features are float32 in any case
        assert double.transform(X).dtype == np.float64
    np.testing.assert_allclose(features, double.transform(X), atol=2e-3)


@EACH_MAP
def test_sparse_and_dense_agree_or_sparse_is_rejected(map):
    X, _ = iris()
    X[np.abs(X) < 0.5] = 0.0
    for container in (sparse.csr_matrix, sparse.csc_array):
        if not get_tags(map).input_tags.sparse:
            with pytest.raises(TypeError, match="Sparse data was passed.*dense data is required"):
                clone(map).fit(container(X))
            continue
        features = clone(map).fit(container(X)).transform(container(X))
        features = features.toarray() if sparse.issparse(features) else features
        np.testing.assert_allclose(features, clone(map).fit(X).transform(X), atol=1e-4)


@EACH_MAP
def test_invalid_samples(map):
    X, _ = iris()
    with pytest.raises(ValueError, match="NaN"):
        clone(map).fit(np.where(X > 2, np.nan, X))
    fitted = clone(map).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        fitted.transform(np.where(X > 2, np.inf, X))
    with pytest.raises(ValueError, match="3 features, but .* is expecting 4"):
        fitted.transform(X[:, :3])


@EACH_MAP
def test_pipeline_with_linear_svc(map):
    X, y = wine()
    pipeline = make_pipeline(clone(map), SVC(kernel="linear", C=10)).fit(X, y)
    assert pipeline.score(X, y) > 0.6
    assert all(certificate.violation < 1e-3 for certificate in pipeline[-1].certificate_)


SKLEARN_MAPS = [Nystroem(gamma=0.05, n_components=50, random_state=0), RBFSampler(gamma=0.05, random_state=0)]


@pytest.mark.parametrize("map", SKLEARN_MAPS, ids=str)
def test_sklearn_maps_with_our_estimators(map):
    X, y = wine()
    search = GridSearchCV(make_pipeline(map, SVC(kernel="linear")), {"svc__C": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    values = make_pipeline(clone(map), SVR(kernel="linear")).fit(X, y.astype(float)).predict(X)
    assert np.abs(values - y).mean() < 0.3
