"""``gammas="ard"`` of the estimators that choose their parameters."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, cross_val_score

import maxmargin
from maxmargin import SVC, SVCCV, SVRCV, OneClassSVMCV
from maxmargin.plotting import ScoreGridDisplay
from maxmargin.search.gradient_search_result import GradientSearchResult
from maxmargin.search.search_progress import format_gradients

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(200, 6))
Y = np.where(X[:, 1] * X[:, 4] > 0, "yes", "no")
FOLDS = KFold(4, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def model():
    names = [f"feature {j}" for j in range(6)]
    return SVCCV(gammas="ard", cv=FOLDS).fit(pd.DataFrame(X, columns=names), Y)


def test_the_better_of_one_gamma_and_several_is_taken(model):
    assert model.gradient_search_.status == "complete"
    assert set(model.gradient_search_.relevant[:2]) == {1, 4}
    assert model.gradient_search_.feature_names[1] == "feature 1"
    np.testing.assert_array_equal(model.best_params_["gamma"], model.gradient_search_.best_params["gamma"])
    np.testing.assert_array_equal(model.best_estimator_.gamma, model.best_params_["gamma"])
    common, by_feature = model.cv_results_["mean_test_score"]
    assert common < by_feature == model.best_score_
    estimator = SVC(**model.best_params_)
    np.testing.assert_allclose(cross_val_score(estimator, X, Y, cv=FOLDS).mean(), model.best_score_)
    assert model.certificate_.violation < 1e-3
    assert len(pd.DataFrame(model.cv_results_)) == 2
    assert "of 6 features" in str(model.search_.best.point)
    assert "evaluations" in format_gradients(model.gradient_search_)


def test_files_pickles_and_clones(model):
    table = pd.DataFrame(X, columns=model.feature_names_in_)
    file = io.BytesIO()
    maxmargin.save(model, file)
    file.seek(0)
    for copy in (maxmargin.load(file), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict(table), model.predict(table))
    assert clone(model).gammas == "ard"


def test_regression():
    y = np.sin(2 * X[:, 0]) + X[:, 3] ** 2
    found = SVRCV(gammas="ard", cv=FOLDS).fit(X[:150], y[:150], sample_weight=np.full(150, 2.0))
    assert set(found.gradient_search_.relevant[:2]) == {0, 3}
    assert set(found.best_params_) == {"C", "gamma", "epsilon"}
    assert found.score(X[150:], y[150:]) > 0.8


def test_limits_and_callbacks():
    with pytest.warns(ConvergenceWarning, match="steps along gradients because the callback"):
        stopped = SVCCV(gammas="ard", callback=_stops_after(4)).fit(X, Y)
    assert len(stopped.gradient_search_.common) == 4
    assert len(stopped.cv_results_["params"]) == 1
    assert stopped.best_params_["C"] == stopped.gradient_search_.best.C

    def interrupt(result):
        raise KeyboardInterrupt

    model = SVCCV(gammas="ard", callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="see gradient_search_"):
        model.fit(X, Y)
    assert len(model.gradient_search_.common) == 1
    with pytest.raises(ValueError, match="give it more time"):
        SVCCV(gammas="ard", max_seconds=1e-9).fit(X, Y)


def _stops_after(count):
    return lambda result: isinstance(result, GradientSearchResult) and len(result.common) >= count


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SVCCV(gammas="ard", Cs=[1.0, 2.0]), "leave out Cs"),
        (lambda: SVRCV(gammas="ard", epsilons=[0.1]), "leave out epsilons"),
        (lambda: SVCCV(gammas="ard", cv="loo"), "needs splits"),
        (lambda: SVCCV(gammas="ard", refine=1), "refine=0"),
        (lambda: SVCCV(gammas="ard", checkpoint="x"), "checkpoint=None"),
        (lambda: SVCCV(gammas="ard", kernel="poly"), "kernels rbf"),
        (lambda: SVCCV(gammas="each"), "or 'ard', not 'each'"),
        (lambda: OneClassSVMCV(gammas="ard"), "only SVCCV and SVRCV"),
    ],
)
def test_what_is_not_searched_by_gradients_raises(make, message):
    with pytest.raises(ValueError, match=message):
        make().fit(X, Y if isinstance(make(), SVCCV) else X[:, 0])


def test_there_is_no_grid_to_draw(model):
    for draw in (ScoreGridDisplay.from_estimator, lambda found: ScoreGridDisplay.from_search(found.search_)):
        with pytest.raises(ValueError, match="FeatureRelevanceDisplay"):
            draw(model)
