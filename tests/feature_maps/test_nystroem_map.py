"""Nyström approximation: exact with all samples as landmarks, agreement with scikit-learn, memory."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_info

from maxmargin import SVC
from maxmargin.feature_maps import NystroemMap
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Polynomial
from maxmargin.models import LandmarkFeatures
from reference.data import wine

KERNELS = {
    "rbf": Gaussian(0.1),
    "laplacian": Laplacian(0.1),
    "chi_squared": ChiSquared(0.1),
    "linear": Linear(),
    "poly": Polynomial(3, 0.1, 1.0),
}


def overlap(A, B):
    return np.minimum(A[:, None, :], B[None, :, :]).sum(axis=2)


def histograms(n=150, d=40):
    X = np.random.default_rng(0).gamma(0.3, size=(n, d))
    X[X < 0.2] = 0.0
    return X


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_samples_as_landmarks_give_the_kernel(kernel, form):
    X = histograms()
    map = NystroemMap(kernel, 0.1, coef0=1.0, n_components=len(X)).fit(form(X))
    features = map.transform(form(X)).astype(float)
    exact = KERNELS[kernel](X)
    np.testing.assert_allclose(features @ features.T, exact, atol=2e-4 * np.abs(exact).max())
    assert abs(map.approximation_error_) < 1e-4 * np.diag(exact).mean()
    assert map.rank_ == features.shape[1] == (40 if kernel == "linear" else 150)


@pytest.mark.parametrize("kernel", [overlap, 0.5 * Gaussian(0.1) + Linear()], ids=["function", "sum"])
def test_custom_kernels_give_float64_features(kernel):
    X = histograms()
    features = NystroemMap(kernel, n_components=len(X)).fit_transform(X)
    assert features.dtype == np.float64
    exact = kernel(X, X)
    np.testing.assert_allclose(features @ features.T, exact, atol=1e-6 * exact.max())


@pytest.mark.parametrize("gamma", [0.001, 0.05, 2.0, 100.0])
def test_agrees_with_sklearn_on_the_same_landmarks(gamma):
    X, _ = wine()
    theirs = Nystroem(gamma=gamma, n_components=60, random_state=0).fit(X)
    ours = NystroemMap(gamma=gamma, landmarks=theirs.components_).fit(X)
    left, right = ours.transform(X).astype(float), theirs.transform(X)
    np.testing.assert_allclose(left @ left.T, right @ right.T, atol=2e-3 if gamma < 0.01 else 2e-5)
    missing = 1.0 - np.square(right).sum(axis=1).mean()
    assert ours.approximation_error_ == pytest.approx(missing, abs=2e-4)


@pytest.mark.parametrize("landmarks", ["sample", "kmeans"])
def test_error_decreases_with_more_landmarks(landmarks):
    X, _ = wine()
    errors = [
        NystroemMap(n_components=n, landmarks=landmarks, random_state=0).fit(X).approximation_error_
        for n in (5, 20, 80, 160)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.3
    assert errors[-1] < 0.05


def test_approximation_error_is_the_mean_trace():
    X = np.random.default_rng(0).normal(size=(900, 3))
    map = NystroemMap(n_components=20, random_state=0).fit(X)
    features = map.transform(X).astype(float)
    trace = 1.0 - np.square(features).sum(axis=1).mean()
    assert map.approximation_error_ == pytest.approx(trace, abs=1e-6)
    assert trace > 0.01


def test_k_means_landmarks_have_a_smaller_error():
    X = np.random.default_rng(0).normal(size=(2000, 4))
    drawn, found = (
        NystroemMap(n_components=50, landmarks=landmarks, random_state=0).fit(X).approximation_error_
        for landmarks in ("sample", "kmeans")
    )
    assert found < 0.95 * drawn


def test_duplicate_landmarks():
    X, _ = wine()
    once, thrice = NystroemMap(landmarks=X[:40]).fit(X), NystroemMap(landmarks=np.tile(X[:40], (3, 1))).fit(X)
    assert thrice.landmarks_.shape[0] == 120
    assert thrice.rank_ == once.rank_ == 40
    left, right = once.transform(X), thrice.transform(X)
    np.testing.assert_allclose(left @ left.T, right @ right.T, atol=1e-5)


def test_indefinite_kernel_is_projected_to_its_positive_part():
    X, _ = wine()
    map = NystroemMap("sigmoid", 0.5, coef0=-1.0, n_components=len(X)).fit(X)
    features = map.transform(X).astype(float)
    eigenvalues, vectors = np.linalg.eigh(np.tanh(0.5 * X @ X.T - 1.0))
    assert (eigenvalues < -1.0).any()
    positive = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    np.testing.assert_allclose(features @ features.T, positive, atol=1e-2)


def test_zero_kernel_matrix_is_an_error():
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        NystroemMap("linear").fit(np.zeros((5, 2)))


@pytest.mark.parametrize("scale", [1e-8, 1e-14, 1e5])
def test_scale_invariance(scale):
    X, _ = wine()
    features = NystroemMap("linear", n_components=len(X)).fit_transform(scale * X).astype(float)
    np.testing.assert_allclose(features @ features.T / scale**2, X @ X.T, atol=1e-4 * (X @ X.T).max())


def test_distant_and_huge_samples():
    X, _ = wine()
    map = NystroemMap(gamma=0.05, landmarks=X[:50]).fit(X)
    far = X * np.array([1.0, 30.0, 1e4, 1e16, 1e40])[:, None, None]
    expected = Gaussian(0.05)(far.reshape(-1, 13), X[:50]) @ map._factor_.astype(float)
    np.testing.assert_allclose(map.transform(far.reshape(-1, 13)), expected, atol=2e-5)
    with pytest.raises(ValueError, match="not finite; scale the data"):
        NystroemMap("poly", 1.0, landmarks=X[:50]).fit(X).transform(1e100 * X)


def test_no_subnormal_features():
    X = np.linspace(0.0, 200.0, 50)[:, None]
    features = NystroemMap(gamma=1.0, n_components=50).fit_transform(X)
    stored = np.abs(features[features != 0])
    assert stored.min() > np.finfo(np.float32).tiny
    np.testing.assert_allclose(features @ features.T, Gaussian(1.0)(X), atol=1e-6)


def test_memory_use_is_that_of_the_features():
    X = np.random.default_rng(0).normal(size=(60_000, 5)).astype(np.float32)
    map = NystroemMap(n_components=200, gamma=2.0, random_state=0).fit(X)
    tracemalloc.start()
    features = map.transform(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert features.nbytes == 60_000 * 200 * 4
    assert peak < features.nbytes + 2**25


def test_features_do_not_depend_on_threads():
    X = np.random.default_rng(0).normal(size=(3000, 5))
    alone, together = (NystroemMap(n_components=80, n_jobs=n, random_state=0).fit_transform(X) for n in (1, 2))
    np.testing.assert_allclose(alone, together, atol=1e-5)


def test_blas_thread_limit_during_transform():
    seen = []

    def recording_kernel(A, B):
        seen.append(max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"))
        return A @ B.T

    X, _ = wine()
    map = NystroemMap(recording_kernel, n_components=20, n_jobs=1).fit(X)
    seen.clear()
    before = threadpool_info()
    map.transform(X)
    assert set(seen) == {1}
    assert threadpool_info() == before


def test_linear_svc_on_all_features_equals_the_kernel_svc():
    X, y = wine()
    X, y = X[:130], y[:130]
    pipeline = make_pipeline(NystroemMap(n_components=130, gamma=0.05), SVC(kernel="linear", C=10, tol=1e-6)).fit(X, y)
    exact = SVC(gamma=0.05, C=10, tol=1e-6).fit(X, y)
    assert pipeline[-1].certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-4)
    np.testing.assert_allclose(pipeline.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_linear_function_of_features_is_a_kernel_expansion():
    X, _ = wine()
    features = LandmarkFeatures.of(Gaussian(0.05), _points(X[:40]))
    weights = np.random.default_rng(0).normal(size=(3, 40))
    expected = features(_points(X)) @ weights.T
    np.testing.assert_allclose(Gaussian(0.05)(X, X[:40]) @ features.expand(weights).T, expected, atol=1e-3)


def _points(X):
    from maxmargin.kernels import Points

    return Points(X)


def test_random_state_makes_landmarks_reproducible():
    X, _ = wine()
    map = NystroemMap(n_components=30, random_state=5)
    np.testing.assert_array_equal(clone(map).fit_transform(X), clone(map).fit_transform(X))
    assert not np.array_equal(clone(map).fit(X).landmarks_, clone(map).set_params(random_state=6).fit(X).landmarks_)


def test_errors():
    X, _ = wine()
    for parameters, words in [
        ({"kernel": "precomputed"}, "no precomputed kernel"),
        ({"kernel": "gauss"}, "unknown kernel 'gauss'"),
        ({"kernel": "chi_squared"}, "every feature must be at least 0"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"landmarks": "all"}, "landmarks must be 'sample', 'kmeans' or an array"),
        ({"landmarks": X[:, :2]}, "landmarks have 2 features, but X has 13"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "not finite"),
    ]:
        with pytest.raises(ValueError, match=words):
            NystroemMap(**parameters).fit(X)
    map = NystroemMap("chi_squared").fit(np.abs(X))
    with pytest.raises(ValueError, match="every feature must be at least 0"):
        map.transform(X)
