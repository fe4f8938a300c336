"""Linear estimators on blocks of rows at extreme scales: finite bounds or one clear error, and no warning of NumPy."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import LinearSVC, LinearSVR, blocks
from maxmargin.machines.linear import block_data
from maxmargin.training.proximal_centres import ProximalCentres

CLEAR = "overflows float64|not finite"


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """Start from few rows, so that passes have something to do."""
    monkeypatch.setattr(block_data, "SAMPLE_VALUES", 60)
    monkeypatch.setattr(block_data, "MIN_SAMPLE_ROWS", 10)


def fitted(seed):
    """Return a fit whose features, targets, costs or weights are extreme; None if it was refused by a clear error."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    extreme = set(rng.choice(["X", "y", "C", "weight", "columns"], size=rng.integers(1, 4)))
    X = rng.normal(size=(n, int(rng.integers(1, 8))))
    X *= 10.0 ** rng.uniform(-150, 150) if "X" in extreme else 1.0
    X *= 10.0 ** rng.uniform(-8, 8, X.shape[1]) if "columns" in extreme else 1.0
    C = 10.0 ** (rng.uniform(-150, 150) if "C" in extreme else rng.uniform(-3, 3))
    weights = 10.0 ** rng.uniform(-150, 150) * rng.random(n) if "weight" in extreme else None
    target = rng.normal(size=n) * (10.0 ** rng.uniform(-150, 150) if "y" in extreme else 1.0)
    squared = "squared_" if rng.random() < 0.5 else ""
    estimator, y = (
        (LinearSVC(C=C, loss=f"{squared}hinge"), (X[:, 0] > np.median(X[:, 0])).astype(int)),
        (LinearSVR(C=C, epsilon=0.1 * np.abs(target).mean(), loss=f"{squared}epsilon_insensitive"), target),
    )[seed % 2]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return estimator.fit(blocks.open(X, y, weights, block_rows=int(rng.integers(1, n + 1))))
    except ValueError as error:
        if any(part in str(error) for part in CLEAR.split("|")):
            return None
        raise


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_bounds_are_finite_or_the_fit_is_refused(first):
    found = [model.certificate_ for model in map(fitted, range(first, first + 20)) if model is not None]
    assert len(found) > 12
    for certificate in found:
        assert 0.0 <= certificate.dual <= certificate.primal < np.inf


def test_an_objective_that_overflows():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    with pytest.raises(ValueError, match="objective overflows float64; scale the data"):
        LinearSVR(C=1e200).fit(blocks.open(X, np.array([1e150, -1e150, 1e150, -1e150]), block_rows=2))


def test_responses_that_single_precision_cannot_represent():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning):
        certificate = LinearSVC(loss="hinge", C=1e60).fit(blocks.open(1e-30 * X, y, block_rows=7)).certificate_
    assert 0 < certificate.dual < certificate.primal < 60 * 1e60


def test_centres_are_finite():
    centres = ProximalCentres(3)
    centres._arrays[0] = [np.zeros(3, np.float32), np.zeros(3, np.float32)]
    centres.keep(0, slice(0, 3), np.array([1e300, -1e300, 2.0]))
    np.testing.assert_array_equal(centres._arrays[0][1], np.array([1, -1, 0]) * np.finfo(np.float32).max + [0, 0, 2])
