"""An upper bound on bᵀKb from Nyström features: K is at most K̂ plus what the residuals of single samples add.

With the projection P on the span of the features, K = K̂ + R, where R_ij is the inner product of what P leaves of Φ(x_i)
and Φ(x_j). So R is positive semi-definite with the residuals r on its diagonal, and

    bᵀKb = ‖P Σ b_i Φ(x_i)‖² + bᵀRb ≤ ‖Σ b_i φ(x_i)‖² + (Σ |b_i| √r_i)².

No kernel values between samples are needed. The features are evaluated in float64. Their rounding errors, and that the
columns of the factor F are orthonormal in feature space up to rounding only, are in the bound: with G = Fᵀ K_ZZ F and
η ≥ ‖G − I‖, a computed φ with ‖φ − Fᵀ k_Z(x)‖ ≤ δ has

    r ≤ k(x, x) − (1 − η)‖φ‖² + 2‖φ‖ δ,   ‖P Φ(x) − F φ‖ ≤ (η‖φ‖ + δ) / √(1 − η).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin._typing import Floats
from maxmargin.deadline import check_deadline
from maxmargin.kernels.points import Points
from maxmargin.models.landmark_features import LandmarkFeatures
from maxmargin.precision import UNIT_ROUNDOFF
from maxmargin.resources import blas_thread_limit

#: Samples whose features are evaluated at a time.
ROWS_AT_ONCE = 4096

#: Factor on the bound for the rounding errors of its own sums of positive numbers.
SAFETY = 1.0 + 1e-8


@np.errstate(over="ignore", invalid="ignore")  # what overflows makes the bound infinite
def bound_quadratic_form(features: LandmarkFeatures, points: Points, vector: Floats) -> float:
    """Return an upper bound on bᵀKb, infinite if the features are too inaccurate for one."""
    used = np.flatnonzero(vector)
    precise = replace(features, factor=features.factor.astype(np.float64))
    skew = _distance_from_orthonormal(precise)
    if not skew < 0.5:
        return np.inf
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


def _distance_from_orthonormal(features: LandmarkFeatures) -> float:
    """Return a bound on ‖Fᵀ K_ZZ F − I‖."""
    kernel, landmarks, factor = features.kernel, features.landmarks, features.factor
    values = kernel.evaluate(landmarks, landmarks)
    with blas_thread_limit(features.threads):
        gram = factor.T @ (values @ factor)
    errors = kernel.error_bound(landmarks, landmarks, np.ones(len(landmarks)))
    magnitudes = kernel.magnitudes(landmarks)
    lost = float(errors.sum()) + 2 * (len(landmarks) + 16) * UNIT_ROUNDOFF * float(magnitudes @ magnitudes)
    size = float(np.linalg.norm(factor))
    return float(np.linalg.norm(gram - np.eye(features.rank))) + size * size * lost
