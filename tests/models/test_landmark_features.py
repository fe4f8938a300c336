"""Nyström features: the kernel at the landmarks, dependent landmarks, precision, expansion, errors."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import FunctionKernel, Gaussian, Laplacian, Linear, Points, Polynomial
from maxmargin.models import LandmarkFeatures, landmark_features

RANDOM = np.random.default_rng(0)
X, LANDMARKS = RANDOM.normal(size=(60, 5)), RANDOM.normal(size=(20, 5))


def nystroem(kernel, X, Z, cutoff=1e-13):
    """k_Z(x)ᵀ K_ZZ⁺ k_Z(x'), by the pseudo-inverse."""
    across = kernel(X, Z)
    return across @ np.linalg.pinv(kernel(Z), rcond=cutoff, hermitian=True) @ across.T


KERNELS = [Gaussian(0.2), Laplacian(0.1), Polynomial(2, 0.3, 1.0), FunctionKernel(Gaussian(0.2))]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize("threads", [1, 2])
def test_inner_products_are_the_nystroem_approximation(kernel, threads):
    features = LandmarkFeatures.of(kernel, Points(LANDMARKS), threads)
    assert features.rank == 20
    phi = features(Points(X)).astype(np.float64)
    tolerance = 2e-4 if features.factor.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(phi @ phi.T, nystroem(kernel, X, LANDMARKS), rtol=tolerance, atol=tolerance)
    at_landmarks = features(Points(LANDMARKS)).astype(np.float64)
    np.testing.assert_allclose(at_landmarks @ at_landmarks.T, kernel(LANDMARKS), rtol=tolerance, atol=tolerance)


def test_precision_is_float32_for_native_kernels_and_float64_for_functions():
    assert LandmarkFeatures.of(Gaussian(0.2), Points(LANDMARKS)).factor.dtype == np.float32
    assert LandmarkFeatures.of(FunctionKernel(Gaussian(0.2)), Points(LANDMARKS)).factor.dtype == np.float64
    tiny = LandmarkFeatures.of(Linear(), Points(LANDMARKS[:5] * 1e-14))  # values that underflow in float32
    assert tiny.factor.dtype == np.float64
    phi = tiny(Points(X * 1e-14))
    np.testing.assert_allclose(phi @ phi.T, 1e-28 * X @ X.T, rtol=1e-6, atol=1e-34)


def test_dependent_landmarks_have_fewer_features():
    repeated = np.vstack([LANDMARKS[:6], LANDMARKS[:6]])
    features = LandmarkFeatures.of(FunctionKernel(Gaussian(0.2)), Points(repeated))
    assert features.rank == 6
    phi = features(Points(X))
    np.testing.assert_allclose(phi @ phi.T, nystroem(Gaussian(0.2), X, LANDMARKS[:6]), atol=1e-9)
    assert LandmarkFeatures.of(Linear(), Points(LANDMARKS)).rank == 5  # as many as dimensions


def test_residual_is_the_distance_from_the_span_of_the_landmarks():
    features = LandmarkFeatures.of(FunctionKernel(Gaussian(0.2)), Points(LANDMARKS))
    residual = features.residual(Points(X))
    np.testing.assert_allclose(residual, 1.0 - np.diag(nystroem(Gaussian(0.2), X, LANDMARKS)), atol=1e-9)
    assert residual.min() > 0
    np.testing.assert_allclose(features.residual(Points(LANDMARKS)), 0.0, atol=1e-9)


@pytest.mark.parametrize("landmarks", [LANDMARKS, np.vstack([LANDMARKS[:6], LANDMARKS[:6]])])
def test_a_linear_function_of_features_is_a_kernel_expansion(landmarks):
    kernel = FunctionKernel(Gaussian(0.2))
    features = LandmarkFeatures.of(kernel, Points(landmarks))
    weights = RANDOM.normal(size=(2, features.rank))
    expected = features(Points(X)) @ weights.T
    np.testing.assert_allclose(kernel(X, landmarks) @ features.expand(weights).T, expected, atol=1e-6)
    np.testing.assert_allclose(kernel(X, landmarks) @ features.expand(weights[0]), expected[:, 0], atol=1e-6)


@pytest.mark.parametrize("landmarks", [LANDMARKS, np.vstack([LANDMARKS[:6], LANDMARKS[:6]])])
def test_batches_give_equal_features_and_report_progress(landmarks, monkeypatch):
    features = LandmarkFeatures.of(Gaussian(0.2), Points(landmarks))
    expected = features(Points(X))
    monkeypatch.setattr(landmark_features, "BLOCK_BYTES", 7 * len(landmarks) * features.factor.itemsize)
    out = np.full_like(expected, np.nan)
    assert list(features.fill(Points(X), out)) == [7, 14, 21, 28, 35, 42, 49, 56, 60]
    np.testing.assert_allclose(out, expected, atol=1e-5)


def test_sparse_and_float32_samples():
    zeros = np.where(np.abs(X) > 0.8, X, 0.0)
    features = LandmarkFeatures.of(Gaussian(0.2), Points(LANDMARKS))
    expected = features(Points(zeros))
    np.testing.assert_allclose(features(Points(sparse.csr_array(zeros))), expected, atol=1e-4)
    np.testing.assert_allclose(features(Points(zeros.astype(np.float32))), expected, atol=1e-4)


def test_samples_beyond_the_range_of_float32_are_evaluated_in_float64():
    far = X.copy()
    far[3] = 1e39  # infinite in float32
    found = LandmarkFeatures.of(Gaussian(0.2), Points(LANDMARKS))(Points(far))
    np.testing.assert_array_equal(found[3], 0.0)
    np.testing.assert_allclose(
        found[:3], LandmarkFeatures.of(Gaussian(0.2), Points(LANDMARKS))(Points(X))[:3], atol=1e-4
    )


def test_distant_samples_have_no_subnormal_features():
    found = LandmarkFeatures.of(Gaussian(0.2), Points(LANDMARKS))(Points(np.linspace(0, 40, 400)[:, None] * np.ones(5)))
    tiny = np.finfo(np.float32).tiny
    assert not ((found != 0) & (np.abs(found) < tiny)).any()


def test_errors():
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        LandmarkFeatures.of(FunctionKernel(lambda A, B: -(A @ B.T)), Points(LANDMARKS))
    with pytest.raises(ValueError, match="not finite"):
        LandmarkFeatures.of(Polynomial(9, 1.0), Points(LANDMARKS * 1e60))
    with pytest.raises(ValueError, match="not finite"):  # sums of the values, of which each is
        LandmarkFeatures.of(Linear(), Points(np.full((20, 1), 1.2e154)))
    with pytest.raises(ValueError, match="not finite"):
        LandmarkFeatures.of(FunctionKernel(lambda A, B: np.where(A[:, :1] > 1e3, np.nan, A @ B.T)), Points(LANDMARKS))(
            Points(np.full((1, 5), 1e4))
        )
