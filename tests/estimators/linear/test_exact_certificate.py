"""Bounds on the exact kernel optimum from a machine on landmarks: they contain it, and say where they come from."""

import pickle
from io import BytesIO

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, KernelApproximationSVC, load, save
from maxmargin.datasets import chessboard
from maxmargin.kernels import Gaussian, Linear
from maxmargin.training import exact_certificate
from reference.data import wine


def assert_contains(bounds, exact):
    """The interval contains the optimum, which itself is known up to its own interval."""
    assert bounds.dual <= exact.primal
    assert exact.dual <= bounds.primal <= bounds.model_primal
    assert bounds.gap >= bounds.primal - bounds.dual >= -1e-9 * abs(bounds.primal)
    assert bounds.relative_gap >= 0.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-6, 0.1, 10.0, 1e5])
@pytest.mark.parametrize("landmarks", [1, 10, 400])
def test_costs_and_landmarks(loss, C, landmarks):
    X, y = chessboard(400, noise=0.05)
    exact = SVC(C=C, gamma=2.0, loss=loss, tol=1e-8, max_seconds=20).fit(X, y).certificate_
    model = KernelApproximationSVC(
        C, gamma=2.0, loss=loss, n_components=landmarks, certify="exact", random_state=0, tol=1e-2
    ).fit(X, y)
    bounds = model.exact_certificate_
    assert_contains(bounds, exact)
    assert bounds.dual > 0
    if landmarks == 400 and C <= 10.0:  # features in single precision are too coarse for a larger one
        assert bounds.relative_gap < 0.05


@pytest.mark.parametrize(
    "kernel", ["linear", "poly", "laplacian", "chi_squared", 0.5 * Gaussian(0.1) + Linear(), lambda X, Z: X @ Z.T]
)
def test_kernels_of_random_problems_with_weights_and_repeated_rows(kernel):
    random = np.random.default_rng(1)
    for _ in range(3):
        X = np.abs(random.standard_normal((120, 4)))
        X = np.vstack([X, X[:40]])
        y = (X[:, 0] + 0.5 * random.standard_normal(160) > 0.7).astype(int)
        weights = random.choice([0.0, 0.5, 1.0, 3.0], 160)
        options = {"kernel": kernel, "coef0": 1.0, "class_weight": {0: 1.0, 1: 2.0}}
        exact = SVC(C=2.0, tol=1e-8, **options).fit(X, y, weights).certificate_
        model = KernelApproximationSVC(2.0, n_components=int(random.integers(2, 100)), certify="exact", **options)
        model.set_params(random_state=0).fit(X, y, weights)
        assert_contains(model.exact_certificate_, exact)


def test_sparse_samples():
    X, y = wine()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    rows = y < 2
    exact = SVC(gamma=0.1, tol=1e-8).fit(X[rows], y[rows]).certificate_
    for samples in (sparse.csr_array(X[rows]), X[rows].astype(np.float32)):
        model = KernelApproximationSVC(gamma=0.1, n_components=20, certify="exact", random_state=0)
        bounds = model.fit(samples, y[rows]).exact_certificate_
        assert bounds.dual <= exact.primal * (1 + 1e-6)  # single precision changes the samples
        assert bounds.primal >= exact.dual * (1 - 1e-6)


def test_one_certificate_for_each_class():
    X, y = wine()
    factors = {0: 2.0, 1: 1.0, 2: 0.5}
    model = KernelApproximationSVC(
        gamma=0.05, n_components=60, class_weight=factors, certify="exact", random_state=0
    ).fit(X, y)
    assert len(model.exact_certificate_) == 3
    for number, bounds in enumerate(model.exact_certificate_):
        own = {0: 1.0, 1: factors[number]}  # the factor of a class is that of its samples alone
        exact = SVC(gamma=0.05, class_weight=own, tol=1e-8).fit(X, y == number).certificate_
        assert_contains(bounds, exact)
        assert bounds.relative_gap < 0.05


def test_the_function_of_the_model_is_what_its_primal_value_is_of():
    X, y = chessboard(500, noise=0.05)
    model = KernelApproximationSVC(3.0, gamma=2.0, n_components=40, certify="exact", random_state=0).fit(X, y)
    coefficients = model.dual_coef_[0]
    slack = np.maximum(0.0, 1.0 - np.where(y == model.classes_[1], 1.0, -1.0) * model.decision_function(X))
    primal = 0.5 * coefficients @ Gaussian(2.0)(model.landmarks_) @ coefficients + 3.0 * slack.sum()
    assert model.exact_certificate_.model_primal == pytest.approx(primal, rel=1e-9)
    assert model.exact_certificate_.model_primal >= primal * (1 - 1e-12)


@pytest.mark.parametrize("full", [True, False])
def test_groups_of_support_vectors(monkeypatch, full):
    """Few groups, a random part of the support vectors, and no products with all samples."""
    X, y = chessboard(3000, noise=0.2)
    monkeypatch.setattr(exact_certificate, "MAX_CERTIFICATE_WORK", 0)
    monkeypatch.setattr("maxmargin.training.adapted_dual.MAX_GROUPS", 60)
    if not full:
        monkeypatch.setattr("maxmargin.training.adapted_dual.MAX_WORK", 1e6)
        monkeypatch.setattr("maxmargin.training.adapted_dual.LOW_VALUE", 2.0)
    exact = SVC(gamma=2.0, tol=1e-6).fit(X, y).certificate_
    model = KernelApproximationSVC(gamma=2.0, n_components=30, certify="exact", random_state=0).fit(X, y)
    bounds = model.exact_certificate_
    assert_contains(bounds, exact)
    assert bounds.primal == bounds.model_primal
    assert "support vectors" in bounds.dual_from
    assert bounds.dual > (0.3 if full else 0.02) * exact.dual


def test_later_and_from_a_file():
    X, y = chessboard(600, noise=0.1)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 600)
    model = KernelApproximationSVC(gamma=2.0, n_components=50, certify="exact", random_state=0)
    fitted = clone(model).fit(X, y, weights)
    later = clone(model).set_params(certify=None).fit(X, y, weights)
    assert not hasattr(later, "exact_certificate_")
    np.testing.assert_array_equal(later.decision_function(X), fitted.decision_function(X))
    assert later.certify_exact(X, y, weights) == fitted.exact_certificate_
    file = BytesIO()
    save(fitted, file)
    stored = load(BytesIO(file.getvalue()))
    assert stored.exact_certificate_ == fitted.exact_certificate_
    assert stored.certify_exact(X, y, weights) == fitted.exact_certificate_
    assert pickle.loads(pickle.dumps(fitted)).exact_certificate_ == fitted.exact_certificate_
    assert not hasattr(fitted.set_params(certify=None).fit(X, y), "exact_certificate_")


def test_threads_do_not_matter_and_the_text_says_what_is_known():
    X, y = chessboard(1500, noise=0.1)
    one, two = (
        KernelApproximationSVC(gamma=2.0, n_components=50, certify="exact", random_state=0, n_jobs=jobs).fit(X, y)
        for jobs in (1, 2)
    )
    assert one.exact_certificate_.dual == pytest.approx(two.exact_certificate_.dual, rel=1e-6)
    text = str(one.exact_certificate_)
    assert text.startswith("exact optimum between")
    assert "support vectors" in text
    assert "relative gap" in text


def test_there_are_bounds_when_time_runs_out():
    X, y = chessboard(2000, noise=0.1)
    model = KernelApproximationSVC(gamma=2.0, n_components=50, certify="exact", random_state=0, max_seconds=1e-9)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    bounds = model.exact_certificate_
    assert bounds.dual == 0.0
    assert bounds.primal == pytest.approx(2 * min((y == label).sum() for label in model.classes_), rel=1e-6)
    assert bounds.model_primal == np.inf
    assert model.predict(X).shape == y.shape


def test_a_limit_that_is_not_reached_changes_nothing():
    X, y = chessboard(800, noise=0.1)
    model = KernelApproximationSVC(gamma=2.0, n_components=50, certify="exact", random_state=0)
    limited = clone(model).set_params(max_seconds=1000).fit(X, y)
    assert limited.exact_certificate_ == clone(model).fit(X, y).exact_certificate_


def test_residuals_where_there_is_no_time_for_kernel_values(monkeypatch):
    def no_time(*arguments):
        raise exact_certificate.TimeLimitReachedError

    X, y = chessboard(400, noise=0.05)
    exact = SVC(gamma=0.5, tol=1e-8).fit(X, y).certificate_
    monkeypatch.setattr(exact_certificate, "adapted_dual", no_time)
    for landmarks in (10, 400):
        model = KernelApproximationSVC(gamma=0.5, n_components=landmarks, certify="exact", random_state=0)
        bounds = model.set_params(max_seconds=100).fit(X, y).exact_certificate_
        assert_contains(bounds, exact)
        assert bounds.dual_from == "residuals of the landmark features"
    assert bounds.dual > 0.5 * exact.dual


def test_an_indefinite_kernel_has_no_bounds():
    random = np.random.default_rng(0)
    X = random.standard_normal((100, 3))
    y = (random.random(100) < 0.5).astype(int)
    model = KernelApproximationSVC(kernel=lambda X, Z: -Gaussian(1.0)(X, Z) + 0.5 * X @ Z.T, n_components=30)
    bounds = model.set_params(certify="exact", random_state=0).fit(X, y).exact_certificate_
    assert bounds.dual == -np.inf
    assert bounds.relative_gap == np.inf
    assert "indefinite" in str(bounds)


def test_errors():
    X, y = wine()
    for wrong in ("both", True, 1):
        with pytest.raises(ValueError, match="certify must be None or 'exact', not"):
            KernelApproximationSVC(certify=wrong).fit(X, y)
    model = KernelApproximationSVC(n_components=20).fit(X, y)
    with pytest.raises(ValueError, match="trained on 178 samples, but there are 170"):
        model.certify_exact(X[:170], y[:170])
    with pytest.raises(ValueError, match="not fitted"):
        KernelApproximationSVC().certify_exact(X, y)
