"""A few samples that stand for all, given, drawn at random or the centres of k-means, and the features they give."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from maxmargin import _sparse as sparse
from maxmargin._typing import Floats, Indices
from maxmargin.deadline import until_deadline
from maxmargin.kernels import Kernel, Points, make_kernel
from maxmargin.kernels.radial import RadialKernel
from maxmargin.machines.devices import choose_device
from maxmargin.machines.validation.parameters import check_count, check_number
from maxmargin.machines.validation.samples import check_random_state
from maxmargin.machines.validation.training_data import Labels, refuse_array, resolve_gamma
from maxmargin.models import LandmarkFeatures
from maxmargin.resources import thread_count

#: Training samples of k-means per centre; more change the centres little.
ROWS_PER_CENTRE = 50

#: From this many samples on, k-means uses mini-batches.
MANY = 10_000

#: The number of landmarks if there is no time for more.
LANDMARKS_WITHOUT_TIME = 100

#: Feature columns that are brought back to the order of the samples at a time.
COLUMNS_REORDERED_AT_ONCE = 64

#: Training samples on which the approximation error is estimated.
MEASURED = 1000


def fit_landmarks(
    estimator: Any, X: Any, weights: Floats, random: np.random.RandomState, few: bool = False
) -> tuple[LandmarkFeatures, float]:
    """Return the features that an estimator asks for, and the mean of what they miss of k(x, x).

    Its parameters are kernel, gamma, degree, coef0, n_components, landmarks, n_jobs and, if it has that, device. The
    weights of samples count where gamma is "scale". With `few`, for want of time, there are at most
    `LANDMARKS_WITHOUT_TIME`, without k-means.
    """
    count = check_count("n_components", estimator.n_components, 1)
    kernel = _make_kernel(estimator, X, weights)
    chosen = "sample" if few and isinstance(estimator.landmarks, str) else estimator.landmarks
    count = min(count, LANDMARKS_WITHOUT_TIME) if few else count
    landmarks = choose_landmarks("landmarks", chosen, X, count, random, _factors(kernel))
    landmarks = landmarks[:LANDMARKS_WITHOUT_TIME] if few else landmarks
    device = choose_device(getattr(estimator, "device", "cpu"), kernel, X)
    features = LandmarkFeatures.of(kernel, Points(landmarks), thread_count(estimator.n_jobs), device)
    measured = Points(X).take(draw(X.shape[0], MEASURED, random))
    return features, float(features.residual(measured).mean())


def features_until(
    deadline: float | None, features: LandmarkFeatures, X: Any, labels: Labels, random: np.random.RandomState
) -> tuple[Any, Indices]:
    """Return the features of all samples, or of those computed by the deadline; and their rows.

    They are computed in random order, with a sample of every class among the first, so that any prefix can be trained
    on. The order does not depend on the deadline: a limit that is not reached does not change the fit.
    """
    points = Points(X)
    first = np.array([members[0] for members in labels.members])
    order = np.concatenate([first, random.permutation(np.setdiff1d(np.arange(len(points)), first))])
    features.kernel.check(points)
    out, done = np.empty((len(points), features.rank), dtype=features.factor.dtype), 0
    for done in features.fill(points.take(order), out):  # at least one block
        if deadline is not None and done >= len(first) and perf_counter() >= deadline:
            break
    if done < len(points):
        return out[:done], order[:done]
    place = np.argsort(order)
    for start in range(0, features.rank, COLUMNS_REORDERED_AT_ONCE):  # not a copy of all features
        part = out[:, start : start + COLUMNS_REORDERED_AT_ONCE]
        part[...] = part[place]
    return out, np.arange(len(points))


def _make_kernel(estimator: Any, X: Any, weights: Floats) -> Kernel:
    degree = check_count("degree", estimator.degree, 0)
    coef0 = check_number("coef0", estimator.coef0)
    named = isinstance(estimator.kernel, str)
    if named and estimator.kernel == "precomputed":
        raise ValueError(
            f"landmarks are samples: {type(estimator).__name__} takes no precomputed kernel, but a function k(X, Z)"
        )
    if not named:
        refuse_array(estimator.gamma, estimator.kernel)
    gamma = resolve_gamma(estimator.gamma, X, weights) if named else 0.0
    return make_kernel(estimator.kernel, gamma, coef0, degree)


def _factors(kernel: Kernel) -> Floats | None:
    """Return the factors of the features that make all their γ equal to 1; None if γ is one number."""
    gammas = kernel.formula.gammas if isinstance(kernel, RadialKernel) else None
    return None if gammas is None else gammas.factors


def choose_landmarks(
    name: str, landmarks: Any, X: Any, count: int, random_state: Any, factors: Floats | None = None
) -> Any:
    """Return at most `count` rows, dense or sparse as `X` is, and in its precision.

    `landmarks` is "sample" (rows of `X` without repetition; all if there are no more), "kmeans", or the rows
    themselves, however many; `name` is what the user calls them. With `factors` of the features, k-means minimises
    distances of samples that are multiplied by them.
    """
    if not isinstance(landmarks, str):
        return _given(name, landmarks, X)
    if landmarks not in ("sample", "kmeans"):
        raise ValueError(f"{name} must be 'sample', 'kmeans' or an array of samples, not {landmarks!r}")
    random = check_random_state(random_state)
    if landmarks == "sample":
        return X[draw(X.shape[0], count, random)]
    rows = X[draw(X.shape[0], max(MANY, ROWS_PER_CENTRE * count), random)]
    if factors is None:
        centres = _centres(rows, min(count, X.shape[0]), random).astype(X.dtype, copy=False)
    else:
        centres = _centres_of_scaled(rows, factors, min(count, X.shape[0]), random).astype(X.dtype)
    return sparse.csr_array(centres) if sparse.issparse(X) else centres


def draw(samples: int, count: int, random: np.random.RandomState) -> Any:
    """Return up to `count` different row numbers in order."""
    if samples <= count:
        return np.arange(samples)
    return np.sort(random.choice(samples, count, replace=False))


def _given(name: str, landmarks: Any, X: Any) -> Any:
    from sklearn.utils import check_array  # they come from a user, who has loaded it

    rows = check_array(landmarks, accept_sparse="csr", dtype=X.dtype, order="C", input_name=name)
    if rows.shape[1] != X.shape[1]:
        raise ValueError(f"{name} have {rows.shape[1]} features, but X has {X.shape[1]}")
    if sparse.issparse(X):
        return sparse.csr_array(rows)
    rows = rows.toarray() if sparse.issparse(rows) else rows
    return rows.copy() if np.shares_memory(rows, landmarks) else rows


def _centres_of_scaled(rows: Any, factors: Floats, count: int, random: np.random.RandomState) -> Any:
    scaled = sparse.csr_array(rows.multiply(factors)) if sparse.issparse(rows) else rows * factors
    centres = _centres(scaled, count, random)
    return np.divide(centres, factors, out=np.zeros_like(centres), where=factors > 0)


def _centres(rows: Any, count: int, random: np.random.RandomState) -> Any:
    from sklearn.cluster import KMeans, MiniBatchKMeans  # they take a moment to load

    check_count("number of centres", count, 1)
    kind = KMeans if rows.shape[0] < MANY else MiniBatchKMeans
    clustering = kind(count, n_init=1, random_state=random)
    return until_deadline(lambda: clustering.fit(rows)).cluster_centers_
