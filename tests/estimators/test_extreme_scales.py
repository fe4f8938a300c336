"""Fits of extreme scales end soon, without a warning of NumPy, with a finite certificate or one clear error."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.extreme_scales import ESTIMATORS, check, cpu_limit, random_case
from tests.random_search.cases import random_case as search_case

import maxmargin
from maxmargin import (
    LSSVC,
    LSSVR,
    SVC,
    SVDD,
    SVR,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineOneClassSVM,
    OnlineSVC,
    QuantileSVR,
    RankSVC,
)
from maxmargin.kernels import Laplacian, Polynomial
from maxmargin.problems import Certificate, Status
from maxmargin.search import estimators as search_estimators

#: CPU seconds for fits that took more than 30 before, on a slow machine.
SECONDS = 20.0


def data(seed: int = 0, samples: int = 40) -> tuple[Any, Any, Any]:
    """Return samples, labels and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, 4))
    targets = X @ rng.normal(size=4) + 0.3 * rng.normal(size=samples)
    return X, np.where(targets > 0, 1, -1), targets


def fit(estimator: Any, *arguments: Any, **options: Any) -> Any:
    """Fit within a limit of CPU time; only warnings about the tolerance may occur."""
    with warnings.catch_warnings(), cpu_limit(SECONDS):
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(*arguments, **options)


def assert_finite(certificate: Certificate) -> None:
    """Assert that all numbers of a certificate are finite."""
    numbers = [certificate.primal, certificate.dual, certificate.gap, certificate.violation, certificate.squared_norm]
    assert np.isfinite(numbers).all(), certificate


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("estimator", [SVC, NuSVC, LSSVC, LinearSVC])
@pytest.mark.parametrize("weight", [1e-30, 1e30, "one", "all"])
def test_classification_with_extreme_weights_ends(estimator: Any, kernel: str, weight: Any) -> None:
    X, y, _ = data()
    weights = np.ones(len(y)) if isinstance(weight, str) else np.full(len(y), weight)
    if weight == "one":
        weights[3] = 1e30
    elif weight == "all":
        weights = 10.0 ** np.linspace(-30, 30, len(y))
    if estimator is NuSVC and isinstance(weight, str):
        pytest.skip("no nu is feasible for classes of such different weights")
    nu = {"nu": 0.1} if estimator is NuSVC else {}
    options = {} if estimator is LinearSVC else {"kernel": kernel}
    assert_finite(fit(estimator(**nu, **options), X, y, sample_weight=weights).certificate_)


def test_nu_classification_with_large_weights_and_a_fine_tolerance_ends() -> None:
    X, y, _ = data()
    model = fit(NuSVC(nu=0.1, kernel="linear", tol=1e-10), X, y, sample_weight=np.full(len(y), 1e30))
    assert_finite(model.certificate_)
    assert model.status_.converged == (model.certificate_.violation <= model.tol)


# With a ν whose totals are sums of whole weights, all variables can be at bounds, and the offsets are intervals.
@pytest.mark.parametrize("nu", [0.47, 0.83])
def test_nu_classification_with_large_weights_is_that_with_unit_weights(nu: float) -> None:
    X, y, _ = data()
    X = X + 0.5 * y[:, None]
    plain = fit(NuSVC(nu=nu, kernel="linear", tol=1e-10), X, y)
    heavy = fit(NuSVC(nu=nu, kernel="linear", tol=1e-10), X, y, sample_weight=np.full(len(y), 1e30))
    np.testing.assert_allclose(heavy.decision_function(X), plain.decision_function(X), rtol=1e-6, atol=1e-8)
    assert heavy.certificate_.dual <= heavy.certificate_.primal + 1e-8 * abs(heavy.certificate_.primal)


@pytest.mark.parametrize("estimator", [QuantileSVR, SVR, NuSVR, LSSVR, LinearSVR])
@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e30, 1e100, 1e140])
def test_regression_with_extreme_targets_has_a_finite_certificate(estimator: Any, scale: float) -> None:
    X, _, targets = data()
    assert_finite(fit(estimator(), X, scale * targets).certificate_)


@pytest.mark.parametrize("estimator", [QuantileSVR, SVR, NuSVR, LSSVR])
def test_regression_scales_with_its_targets(estimator: Any) -> None:
    X, _, targets = data()
    factor = 2.0**333
    epsilon = {"epsilon": 0.1} if estimator is SVR else {}
    plain = fit(estimator(C=0.5, kernel="linear", tol=1e-6, **epsilon), X, targets)
    epsilon = {name: factor * value for name, value in epsilon.items()}
    large = fit(estimator(C=0.5 if estimator is LSSVR else 0.5 * factor, kernel="linear", tol=1e-6 * factor, **epsilon),
                X, factor * targets)  # fmt: skip
    assert large.status_.converged
    np.testing.assert_allclose(large.predict(X), factor * plain.predict(X), rtol=1e-4)
    assert large.certificate_.relative_gap < 1e-4


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("estimator", [SVC, LSSVC, SVR, LSSVR, NuSVR, QuantileSVR, LinearSVC, LinearSVR])
@pytest.mark.parametrize("cost", [1e-300, 1e300])
def test_extreme_costs_end(estimator: Any, kernel: str, cost: float) -> None:
    X, y, targets = data()
    options = {} if estimator in (LinearSVC, LinearSVR) else {"kernel": kernel}
    labels = y if estimator in (SVC, LSSVC, LinearSVC) else targets
    model = estimator(C=cost, **options)
    try:
        certificate = fit(model, X, labels).certificate_
    except ValueError as error:
        assert "overflows float64" in str(error)  # noqa: PT017  # one of two outcomes
    else:
        assert_finite(certificate)


def test_separable_classes_at_a_huge_cost_are_a_hard_margin() -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    y = np.array([-1, -1, 1, 1])
    huge, hard = fit(SVC(C=1e300, kernel="linear"), X, y), fit(SVC(C=np.inf, kernel="linear"), X, y)
    np.testing.assert_allclose(huge.coef_, hard.coef_, rtol=1e-6)
    assert huge.status_.converged


@pytest.mark.parametrize("scale", [1e-150, 6e121, 1e145])
@pytest.mark.parametrize("estimator", [SVC, NuSVC, SVDD, OneClassSVM, LSSVC])
def test_extreme_features_end(estimator: Any, scale: float) -> None:
    X, y, _ = data()
    nu = {"nu": 0.2} if estimator in (NuSVC, SVDD, OneClassSVM) else {}
    labels = () if estimator in (SVDD, OneClassSVM) else (y,)
    model = fit(estimator(kernel="linear", **nu), scale * X, *labels)
    assert_finite(model.certificate_)
    assert np.isfinite(model.decision_function(scale * X)).all()
    assert model.geometry_ is not None


@pytest.mark.parametrize("estimator", [SVC, NuSVC, LSSVC, OneClassSVM, SVDD])
def test_features_whose_kernel_values_overflow_are_one_clear_error(estimator: Any) -> None:
    X, y, _ = data()
    nu = {"nu": 0.2} if estimator in (NuSVC, SVDD, OneClassSVM) else {}
    labels = () if estimator in (SVDD, OneClassSVM) else (y,)
    with pytest.raises(ValueError, match=r"not finite.*scale the data"):
        fit(estimator(kernel="linear", **nu), 1e160 * X, *labels)


@pytest.mark.parametrize("estimator", [LSSVR, SVR, QuantileSVR, NuSVR, LinearSVR])
def test_an_objective_that_overflows_is_one_clear_error(estimator: Any) -> None:
    X, _, targets = data()
    options: dict[str, Any] = {"C": 1e250}
    with pytest.raises(ValueError, match=r"the objective overflows float64: .*scale the data"):
        fit(estimator(**options), X, 1e200 * targets)


@pytest.mark.parametrize("estimator", [SVR, NuSVR, LinearSVR])
@pytest.mark.parametrize("scale", [1e-100, 1e100, 1e140])
def test_intervals_of_extreme_targets_are_finite(estimator: Any, scale: float) -> None:
    X, _, targets = data()
    intervals = fit(estimator(noise=True), X, scale * targets).predict_interval(X)
    assert np.isfinite(intervals).all()
    assert (intervals[:, 0] <= intervals[:, 1]).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize(("target", "weight"), [(1e149, 1e300), (1e12, 1e303), (1e308, 1.0)])
def test_linear_regression_whose_objective_overflows_is_one_clear_error(
    target: float, weight: float, loss: str, intercept: bool
) -> None:
    X, y, targets = data()
    with pytest.raises(ValueError, match="overflows float64"):
        fit(
            LinearSVR(loss=loss, fit_intercept=intercept),
            X,
            targets / np.abs(targets).max() * target,
            sample_weight=np.full(len(y), weight),
        )


def test_weights_of_linear_regression_do_not_overflow_in_the_mean_of_targets() -> None:
    X, y, targets = data()
    huge, ordinary = LinearSVR(C=2.0**-900), LinearSVR(C=1.0)
    fit(huge, X, targets + 1e10, sample_weight=np.full(len(y), 2.0**900))
    fit(ordinary, X, targets + 1e10)
    np.testing.assert_array_equal(huge.coef_, ordinary.coef_)


@pytest.mark.parametrize("estimator", [NuSVC, NuSVR])
def test_polynomials_of_huge_features_are_one_clear_error(estimator: Any) -> None:
    X, y, _ = data()
    with pytest.raises(ValueError, match="the kernel gave values that are not finite"):
        fit(estimator(kernel="poly", gamma=10.0, coef0=1.0, cache_size=0.001), 1e100 * X, y)


@pytest.mark.parametrize("scale", [1e155, 1e300])
def test_products_of_kernels_that_overflow_are_one_clear_error(scale: float) -> None:
    X, y, _ = data()
    with pytest.raises(ValueError, match="the kernel gave values that are not finite"):
        fit(SVC(kernel=Laplacian(0.5) * Polynomial(2, 0.5, 1.0)), scale * X, y)


def test_weights_of_pairs_that_overflow_are_one_clear_error() -> None:
    X, y, _ = data()
    with pytest.raises(ValueError, match="overflows or underflows float64"):
        fit(RankSVC(), X, y, sample_weight=np.full(len(y), 1e300))


def test_the_quadratic_program_of_a_dense_matrix_gives_no_warning() -> None:
    X, y, _ = data()
    assert_finite(fit(SVC(solver="quadratic_program"), X, y).certificate_)


@pytest.mark.parametrize(
    ("estimator", "supervised"), [(OnlineSVC(C=0.1), True), (OnlineOneClassSVM(nu=0.1, finishing=True), False)]
)
def test_online_certificates_that_overflow_are_infinite(estimator: Any, supervised: bool) -> None:
    X, y, _ = data()
    weights = np.where(np.arange(len(y)) % 3, 1e300, 1.0)
    fit(estimator, *((X, y) if supervised else (X,)), sample_weight=weights)
    certificate = estimator.certificate_
    assert not np.isnan([certificate.primal, certificate.dual, certificate.gap, certificate.violation]).any()
    assert not np.isnan(certificate.slack).any()
    assert not np.isnan(certificate.residual).any()


def test_a_tolerance_below_rounding_ends_soon() -> None:
    rng = np.random.default_rng(107)
    X = rng.normal(size=(50, 3)) * np.array([1e8, 1.0, 1e-8])
    y = np.where(X[:, 1] > 0, 1, -1)
    model = fit(NuSVC(nu=0.1, kernel="linear"), X, y)
    assert model.status_.converged == (model.certificate_.violation <= model.tol)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_random_extreme_fits(name: str) -> None:
    for seed in range(25):
        case = random_case(seed, name)
        try:
            check(case)
        except Exception as error:
            error.add_note(f"{case}")
            raise


def test_cases_cover_all_estimators() -> None:
    public = {name for name in maxmargin.__all__ if hasattr(getattr(maxmargin, name), "fit")}
    without = {"ActiveLearner", "KernelRFE", "StructuredSVC", "TransductiveSVC"}  # of other problems than a dual one
    assert public - without - {*search_estimators.__all__} == set(ESTIMATORS)


@pytest.mark.parametrize(
    ("estimator", "scale"),
    [
        (LinearSVC(C=1e6, loss="hinge", solver="dual_coordinate_ascent"), 1e3),
        (SVC(C=1e8, kernel="linear", loss="squared_hinge", fit_intercept=False, solver="platt"), 1e4),
        (SVC(C=1e8, kernel="linear", solver="gradient_projection"), 1e4),
        (SVC(C=1e8, kernel="linear", solver="decomposition"), 1e4),
    ],
    ids=lambda value: getattr(value, "solver", None),
)
def test_solvers_by_name_end_where_they_converge_slowly(estimator, scale):
    X, y, _ = data(samples=15)
    with pytest.warns(ConvergenceWarning, match="converges too slowly on these data; use solver='auto'"):
        model = estimator.fit(X * scale, np.where(np.arange(len(y)) % 4 == 0, -y, y))
    assert model.status_ is Status.SLOW
    assert_finite(model.certificate_)


def test_max_iter_replaces_the_limit_of_a_slow_solver():
    X, y, _ = data()
    model = LinearSVC(C=1e6, loss="hinge", solver="dual_coordinate_ascent", max_iter=40_000)
    with pytest.warns(ConvergenceWarning, match="limit on iterations"):
        model.fit(X * 1e3, np.where(np.arange(len(y)) % 7 == 0, -y, y))
    assert model.n_iter_ == 40_000


def test_a_tiny_cache_holds_the_kernel_values_of_few_samples():
    X, y, _ = data(samples=200)
    tiny, large = SVC(C=100, cache_size=1e-6).fit(X, y), SVC(C=100).fit(X, y)
    np.testing.assert_array_equal(tiny.dual_coef_, large.dual_coef_)
    assert tiny._models_[0].counters == replace(large._models_[0].counters, seconds=tiny._models_[0].counters.seconds)


def test_hard_margins_of_tiny_distances():
    X, y, _ = data()
    X = 4e-100 * X
    with pytest.raises(ValueError, match="no hard margin"):
        SVC(C=np.inf, gamma=1e-3, solver="chunking").fit(X, y)


def test_singular_equations_of_rankings():
    random = np.random.default_rng(0)
    X = np.repeat(np.abs(random.normal(size=(5, 6))) * 3e3, 2, axis=0)
    y = np.arange(10) % 4
    model = fit(RankSVC(C=1e12, kernel="chi_squared", tol=0.1), X, y)
    assert_finite(model.certificate_)


def test_dual_vectors_that_overflow_warn_of_nothing():
    case = search_case(9200, 178, name="SVR")
    with pytest.raises(ValueError, match="the kernel is indefinite"):
        fit(case.estimator, case.X, case.y, sample_weight=case.sample_weight)
    X, _, targets = data(samples=28)
    with pytest.raises(ValueError, match="overflow"):
        fit(LinearSVR(C=1e100, epsilon=0.1, loss="squared_epsilon_insensitive"), X[:17], 1e304 * targets[:17])
