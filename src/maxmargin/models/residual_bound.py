"""An upper bound on bᵀKb from Nyström features: K is at most K̂ plus what the residuals of single samples add.

With the projection P on the span of the features, K = K̂ + R, where R_ij is the inner product of what P leaves of Φ(x_i)
and Φ(x_j). So R is positive semi-definite with the residuals r on its diagonal, and

    bᵀKb = ‖P Σ b_i Φ(x_i)‖² + bᵀRb ≤ ‖Σ b_i φ(x_i)‖² + (Σ |b_i| √r_i)².

No kernel values between samples are needed. The bound holds for any features; these are in float64, and of the
eigenvectors of K_ZZ with large eigenvalues only, so that rounding errors are small. They are in the bound, as well as
that the columns of the factor F are orthonormal in feature space up to rounding only: with G = Fᵀ K_ZZ F and
η ≥ ‖G − I‖, a computed φ with ‖φ − Fᵀ k_Z(x)‖ ≤ δ has

    r ≤ k(x, x) − (1 − η)‖φ‖² + 2‖φ‖ δ,   ‖P Φ(x) − F φ‖ ≤ (η‖φ‖ + δ) / √(1 − η).
"""

from __future__ import annotations

import numpy as np

from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline, require_seconds
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points
from maxmargin.models.landmark_features import EIGENVECTOR_SECONDS, LandmarkFeatures, inverse_root
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.resources import blas_thread_limit

#: Smallest eigenvalue that is kept, relative to the largest: what the others add to the residuals is negligible, the
#: rounding errors of their features would not be.
EIGENVALUE_CUTOFF = 1e-8

#: Samples whose features are evaluated at a time.
ROWS_AT_ONCE = 4096

#: Factor on the bound for the rounding errors of its own sums of positive numbers.
SAFETY = 1.0 + 1e-8


@np.errstate(over="ignore", invalid="ignore")  # what overflows makes the bound infinite
def bound_quadratic_form(kernel: Kernel, landmarks: Points, points: Points, vector: Floats, threads: int = 1) -> float:
    """Return an upper bound on bᵀKb, infinite if the features are too inaccurate for one.

    It raises `TimeLimitReachedError` if there is hardly time for the eigenvectors.
    """
    require_seconds(4 * EIGENVECTOR_SECONDS * len(landmarks) ** 3)
    values = kernel.evaluate(landmarks, landmarks)
    with blas_thread_limit(threads):
        precise = LandmarkFeatures(kernel, landmarks, inverse_root(values, EIGENVALUE_CUTOFF), threads)
        skew = _distance_from_orthonormal(precise, values)
    if not skew < 0.5:
        return np.inf
    used = np.flatnonzero(vector)
    samples, weights = points.take(used), vector[used]
    total, length, drift, residual = np.zeros(precise.rank), 0.0, 0.0, 0.0
    for start in range(0, len(used), ROWS_AT_ONCE):
        check_deadline()
        part = slice(start, min(start + ROWS_AT_ONCE, len(used)))
        rows, own = samples.take(part), weights[part]
        phi, magnitude = precise(rows), np.abs(own)
        error, norms = _feature_errors(precise, rows), np.sqrt(np.einsum("ij,ij->i", phi, phi))
        total += own @ phi
        length += float(magnitude @ norms)
        drift += float(magnitude @ (skew * norms + error)) / np.sqrt(1.0 - skew)
        residual += float(magnitude @ np.sqrt(_residuals(precise, rows, norms, error, skew)))
    rounding = (len(used) + 16) * UNIT_ROUNDOFF * length
    projected = float(np.sqrt((1.0 + skew) * (total @ total))) + rounding + drift
    bound = SAFETY * (projected**2 + residual**2)
    return bound if np.isfinite(bound) else np.inf


def _residuals(features: LandmarkFeatures, rows: Points, norms: Floats, error: Floats, skew: float) -> Floats:
    """Return upper bounds on the squared distances of samples from the span of the features."""
    diagonal = features.kernel.diagonal(rows)
    rounding = (features.rank + 16) * UNIT_ROUNDOFF * (np.abs(diagonal) + norms**2)
    rounding = rounding + features.kernel.diagonal_error(rows)
    return np.maximum(diagonal - (1.0 - skew) * norms**2 + 2.0 * norms * error + rounding, 0.0)


def _feature_errors(features: LandmarkFeatures, rows: Points) -> Floats:
    """Return bounds on ‖φ − Fᵀ k_Z(x)‖, where φ are the computed features."""
    kernel, landmarks = features.kernel, features.landmarks
    values = kernel.magnitudes(rows) * float(np.linalg.norm(kernel.magnitudes(landmarks)))
    errors = kernel.error_bound(rows, landmarks, np.ones(len(landmarks)))
    size = float(np.linalg.norm(features.factor))
    return np.asarray(size * (errors + (len(landmarks) + 16) * UNIT_ROUNDOFF * values))


def _distance_from_orthonormal(features: LandmarkFeatures, values: Floats) -> float:
    """Return a bound on ‖Fᵀ K_ZZ F − I‖, with `values` the computed K_ZZ."""
    kernel, landmarks, factor = features.kernel, features.landmarks, features.factor
    gram, size = factor.T @ (values @ factor), float(np.linalg.norm(factor))
    # The spectral norm of the symmetric matrix of errors is at most its largest sum of a row.
    errors = float(kernel.error_bound(landmarks, landmarks, np.ones(len(landmarks))).max())
    rounding = 2 * (len(landmarks) + 16) * UNIT_ROUNDOFF * float(np.linalg.norm(values))
    return float(np.linalg.norm(gram - np.eye(features.rank))) + size * size * (errors + rounding)
