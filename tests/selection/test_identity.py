"""Scores of paths on shared kernel matrices are those of independent fits at the same tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import SVC, SVR, NuSVC, NuSVR
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.grid import Point
from maxmargin.search.path_trials import PathTrials


def paths_of(estimator: Any, X: Any, y: Any, points: list[Point], folds: int = 3, weights: Any = None) -> PathTrials:
    scorer = FoldScorer.of(estimator, X, y, folds, None, 0)
    if weights is not None:
        scorer.fit_arguments["sample_weight"] = weights
    found = PathTrials.of(scorer, [(point, fold) for point in points for fold in range(folds)], 1)
    assert found is not None
    return found


def compare(estimator: Any, X: Any, y: Any, points: list[Point], folds: int = 3, weights: Any = None) -> int:
    """Compare the values of all held-out samples with those of independent fits; return the number of models."""
    trials = paths_of(estimator, X, y, points, folds, weights)
    compared = 0
    for path in trials.paths:
        models = trials._engine.models(path[0][1], [point.parameters for point, _ in path])
        for (point, fold), model in zip(path, models, strict=True):
            if model is None:
                continue
            compared += 1
            check_model(trials.scorer, model, point, fold)
    return compared


def check_model(scorer: FoldScorer, model: Any, point: Point, fold: int) -> None:
    fitted = clone(scorer.estimator).set_params(**point.parameters)
    scorer.trained(fitted, fold)
    X, _ = scorer.split_data(fold)[1]
    held = scorer.splits[fold].test[:, None]
    certificates = fitted.certificate_ if isinstance(fitted.certificate_, list) else [fitted.certificate_]
    # ‖w − w*‖ ≤ √(2 gap) for both, and the tolerance of the offset.
    uncertain = 2.0 * max(np.sqrt(2.0 * max(one.gap, 0.0) + one.rounding) for one in certificates) + 4e-3
    if isinstance(scorer.estimator, SVR | NuSVR):
        difference = model.predict(held) - fitted.predict(X)
        interval = float(np.ptp(certificates[0].offset_interval, axis=1).max(initial=0.0))  # all of it is optimal
        assert np.abs(difference).max() <= uncertain + interval
        assert np.ptp(difference) <= uncertain
        return
    expected, own = np.atleast_2d(fitted.decision_function(X)), np.atleast_2d(model.decision_function(held))
    differ = model.predict(held) != fitted.predict(X)
    if len(fitted.classes_) == 2:
        np.testing.assert_allclose(own, expected, atol=uncertain)
        assert (np.abs(expected[0][differ]) <= uncertain).all()
    else:
        assert differ.mean() <= 0.05  # votes of several values


def draw(seed: int) -> tuple[Any, Any, Any, Any, list[Point]]:
    """Return an estimator, data, weights and points of a random problem."""
    random = np.random.default_rng(seed)
    classes, size = int(random.integers(2, 6)), int(random.integers(20, 160))
    X = random.normal(size=(size, int(random.integers(1, 8)))) * 10.0 ** random.integers(-1, 2)
    y = random.integers(0, classes, size)
    X += 0.7 * y[:, None] * X.std()
    y[: 4 * classes] = np.arange(4 * classes) % classes
    if seed % 3 == 0:  # duplicates, some with other labels
        X[size // 2 : size // 2 + size // 4] = X[: size // 4]
    weights = random.uniform(0.1, 3.0, size) if seed % 4 == 0 else None
    options = {"class_weight": "balanced" if seed % 5 == 0 else None, "multi_class": "ovr" if seed % 7 == 0 else "ovo"}
    estimator = SVC(**options, fit_intercept=seed % 6 != 0, loss="squared_hinge" if seed % 11 == 0 else "hinge")
    scale = 1.0 / max(X.var() * X.shape[1], 1e-3)
    Cs = sorted(10.0 ** random.uniform(-4, 5, 4))
    gammas = scale * 10.0 ** random.uniform(-2, 2, 2)
    return estimator, X, y, weights, [Point(float(C), float(gamma)) for C in Cs for gamma in gammas]


@pytest.mark.parametrize("seed", range(50))
def test_random_classifications_are_those_of_independent_fits(seed: int) -> None:
    estimator, X, y, weights, points = draw(seed)
    assert compare(estimator, X, y, points, weights=weights) >= 0.9 * len(points) * 3


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", [SVR, NuSVR])
def test_random_regressions_are_those_of_independent_fits(kind: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    X = random.normal(size=(60, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * random.normal(size=60)
    weights = random.uniform(0.5, 2.0, 60) if seed % 2 else None
    points = [Point(C, gamma) for C in (0.1, 1.0, 10.0) for gamma in (0.05, 1.0)]
    assert compare(kind(fit_intercept=kind is NuSVR or seed % 3 > 0), X, y, points, weights=weights) == 18


@pytest.mark.parametrize("seed", range(4))
def test_nu_classifications_are_those_of_independent_fits(seed: int) -> None:
    random = np.random.default_rng(seed)
    y = np.arange(90) % (2 + seed % 2)
    X = random.normal(size=(90, 3)) + 0.8 * y[:, None]
    points = [Point(None, gamma, None, nu) for nu in (0.1, 0.4) for gamma in (0.05, 1.0)]
    assert compare(NuSVC(), X, y, points) == 12


def test_nu_regressions_without_bounded_variables_are_those_of_independent_fits() -> None:
    """Their sums of dual variables grow with C, also where no bound holds."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.1 * random.normal(size=60)
    points = [Point(C, gamma) for C in (1.0, 1e3, 1e5, 1e6) for gamma in (0.1, 10.0)]
    assert compare(NuSVR(nu=0.1, tol=1e-6), X, y, points) == 24
