"""The status of a fit agrees with its certificate, also where the tolerance is close to rounding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LSSVC, LSSVR, SVC, SVR, LinearSVR, NuSVR, QuantileSVR


def random_fit(estimator: Any, seed: int) -> Any:
    """Return a fit of a random kernel, cost and tolerance down to 1e-10, on data of a random scale."""
    rng = np.random.default_rng(seed)
    samples, features = int(rng.integers(10, 80)), int(rng.integers(1, 6))
    X = rng.normal(size=(samples, features)) * 10.0 ** rng.uniform(-2, 3)
    targets = X @ rng.normal(size=features) + rng.normal(size=samples) * rng.choice([0.0, 0.1, 1.0])
    kernel, cost = str(rng.choice(["linear", "rbf", "poly"])), float(10.0 ** rng.uniform(-2, 8))
    model = estimator(kernel=kernel, C=cost, tol=float(rng.choice([1e-3, 1e-6, 1e-10])))
    y = targets if estimator in (SVR, LSSVR) else np.where(targets > np.median(targets), 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


@pytest.mark.parametrize("estimator", [LSSVC, LSSVR, SVC, SVR])
def test_status_follows_from_the_violation_of_the_certificate(estimator: Any) -> None:
    for seed in range(20, 50):
        model = random_fit(estimator, seed)
        certificate = model.certificate_
        assert model.status_.converged == (certificate.violation <= model.tol), (seed, model, certificate)
        assert not certificate.indefinite, (seed, model, certificate)


@pytest.mark.parametrize(
    "model",
    [LinearSVR(), LinearSVR(loss="squared_epsilon_insensitive", C=100.0), SVR(kernel="linear", epsilon=0.0, C=100.0),
     LSSVR(kernel="linear", C=1e4), QuantileSVR(kernel="linear", C=100.0), NuSVR(kernel="linear", C=100.0)],
    ids=repr,
)  # fmt: skip
def test_exactly_linear_targets_converge_without_a_warning(model: Any) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        samples, features = int(rng.integers(5, 200)), int(rng.integers(1, 8))
        X = rng.normal(size=(samples, features)) * 10.0 ** rng.uniform(-1, 2)
        assert model.fit(X, X @ rng.normal(size=features) + rng.choice([0.0, 1.0, 10.0])).status_.converged


def test_a_linear_kernel_at_a_large_cost_is_not_called_indefinite() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3)) * 100.0
        y = np.where(X[:, 0] + 100.0 * rng.normal(size=60) > 0, 1, -1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            certificate = SVC(kernel="linear", C=1e8).fit(X, y).certificate_
        assert not certificate.indefinite, certificate
        assert "indefinite" not in str(certificate)
