"""Scores of paths on shared kernel matrices are those of independent fits at the same tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from maxmargin import SVC, SVR, NuSVC, NuSVR, OneClassSVM, OneClassSVMCV
from maxmargin.search.fold_scoring import FoldScorer
from maxmargin.search.grid import Point
from maxmargin.search.novelty_score import BackgroundScore
from maxmargin.search.path_trials import PathTrials
from maxmargin.selection.fold_paths import Fold, FoldPaths, why_independent


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


@pytest.mark.parametrize("seed", range(6))
def test_novelty_detectors_are_those_of_independent_fits(seed: int) -> None:
    """At held-out samples and at others, with weights, duplicates and sparse samples."""
    random = np.random.default_rng(seed)
    X: Any = random.normal(size=(150, 3))
    X[102:132] = X[:30]  # in the same fold: held-out duplicates of support vectors would be on the boundary
    weights = np.where(np.arange(150) % 7, random.uniform(0.5, 2.0, 150), 0.0) if seed % 2 else None
    if seed >= 4:
        X = sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    others = BackgroundScore(X, samples=80).background
    folds = [Fold(np.flatnonzero(np.arange(150) % 3 != k), np.flatnonzero(np.arange(150) % 3 == k)) for k in range(3)]
    estimator = OneClassSVM(tol=1e-8)
    engine = FoldPaths(estimator, X, None, folds, weights, 2**30, 1, True, others)
    compared = 0
    for fold, (train, test) in enumerate(folds):
        for gamma in (0.05, 2.0):
            for nu in (0.02, 0.3, 1.0):
                model = next(engine.models(fold, [{"gamma": gamma, "nu": nu}]))
                if model is None:
                    continue
                compared += 1
                fitted = clone(estimator).set_params(gamma=gamma, nu=nu)
                fitted.fit(X[train], sample_weight=None if weights is None else weights[train])
                for held, samples in ((test[:, None], X[test]), (others, others)):
                    expected, found = fitted.decision_function(samples), model.decision_function(held)
                    np.testing.assert_allclose(found, expected, atol=1e-6)
                    clear = np.abs(expected) > 1e-6
                    np.testing.assert_array_equal(model.predict(held)[clear], fitted.predict(samples)[clear])
    assert compared >= (15 if seed < 4 else 5)  # of sparse samples, many are zero: held-out ones are on the boundary


def test_searches_for_novelty_detectors_are_trained_together() -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    scorer, estimator = BackgroundScore(X), OneClassSVM()
    assert "other samples" in why_independent(estimator, X, None, 2**30, 1, scorer.background.shape[0])
    assert why_independent(estimator, X, None, 2**30, 1, 200) is None
    assert "support vectors" in why_independent(estimator, np.ones((3000, 2)), None, 2**30, 1)
    assert "probabilities" in why_independent(OneClassSVM(probability=True), X, None, 2**30, 1)
    labels = np.where(np.abs(X[:, 0]) < 1.5, 1, -1)
    search = OneClassSVMCV(nus=[0.1, 0.3], gammas=[0.1, 1.0]).fit(X, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
