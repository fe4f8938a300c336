"""Conformal prediction with MAPIE: every classifier and regressor, and the coverage that it guarantees."""

import numpy as np
import pytest
from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
from mapie.regression import ConformalizedQuantileRegressor, CrossConformalRegressor, SplitConformalRegressor
from sklearn.calibration import CalibratedClassifierCV

from maxmargin import (
    LSSVC,
    LSSVR,
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    KernelApproximationSVC,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    NuSVC,
    NuSVR,
    OnlineSVC,
    QuantileSVR,
    TransductiveSVC,
)

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (900, 2))
Y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=900)
LABELS = np.digitize(Y, [-0.2, 0.6])
TRAINING, ASIDE, NEW = slice(0, 150), slice(150, 450), slice(450, None)

#: The coverage wanted, and four standard deviations of that of the samples put aside and of the new ones.
WANTED, MARGIN = 0.85, 0.11

SEARCH = {"Cs": [1.0], "cv": 3}
REGRESSORS = [
    SVR(),
    NuSVR(),
    LSSVR(),
    QuantileSVR(),
    LinearSVR(),
    SVRCV(gammas=[0.5], epsilons=[0.1], **SEARCH),
    LinearSVRCV(**SEARCH),
]
CLASSIFIERS = [
    SVC(probability=True),
    NuSVC(nu=0.3, probability=True),
    LinearSVC(probability=True),
    KernelApproximationSVC(n_components=30, probability=True, random_state=0),
    *(CalibratedClassifierCV(one) for one in (SVCCV(gammas=[0.5], **SEARCH), LinearSVCCV(**SEARCH))),
    *(CalibratedClassifierCV(one) for one in (LSSVC(), TransductiveSVC(), OnlineSVC(random_state=0))),
]


def name(model):
    return type(getattr(model, "estimator", None) or model).__name__


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
def test_intervals(model):
    model.fit(X[TRAINING], Y[TRAINING])
    split = SplitConformalRegressor(model, confidence_level=WANTED, prefit=True).conformalize(X[ASIDE], Y[ASIDE])
    points, bounds = split.predict_interval(X[NEW])
    np.testing.assert_array_equal(points, model.predict(X[NEW]))
    inside = (bounds[:, 0, 0] <= Y[NEW]) & (Y[NEW] <= bounds[:, 1, 0])
    assert abs(inside.mean() - WANTED) < MARGIN


@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
def test_sets_of_classes(model):
    model.fit(X[TRAINING], LABELS[TRAINING])
    split = SplitConformalClassifier(model, confidence_level=WANTED, prefit=True).conformalize(X[ASIDE], LABELS[ASIDE])
    points, sets = split.predict_set(X[NEW])
    np.testing.assert_array_equal(points, model.classes_[model.predict_proba(X[NEW]).argmax(axis=1)])
    assert abs(sets[np.arange(len(sets)), LABELS[NEW], 0].mean() - WANTED) < MARGIN


def test_cross_conformal_prediction_clones_the_machines():
    regression = CrossConformalRegressor(SVR(), confidence_level=WANTED, cv=3)
    bounds = regression.fit_conformalize(X[TRAINING], Y[TRAINING]).predict_interval(X[NEW])[1]
    assert ((bounds[:, 0, 0] <= Y[NEW]) & (Y[NEW] <= bounds[:, 1, 0])).mean() > WANTED - MARGIN
    classification = CrossConformalClassifier(SVC(probability=True), confidence_level=WANTED, cv=3)
    sets = classification.fit_conformalize(X[TRAINING], LABELS[TRAINING]).predict_set(X[NEW])[1]
    assert sets[np.arange(len(sets)), LABELS[NEW], 0].mean() > WANTED - MARGIN


def test_quantiles_as_bounds():
    levels = ((1 - WANTED) / 2, (1 + WANTED) / 2, 0.5)
    models = [QuantileSVR(quantile=level, C=10.0).fit(X[TRAINING], Y[TRAINING]) for level in levels]
    quantiles = ConformalizedQuantileRegressor(models, confidence_level=WANTED, prefit=True)
    bounds = quantiles.conformalize(X[ASIDE], Y[ASIDE]).predict_interval(X[NEW])[1]
    assert abs(((bounds[:, 0, 0] <= Y[NEW]) & (Y[NEW] <= bounds[:, 1, 0])).mean() - WANTED) < MARGIN
