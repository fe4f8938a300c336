"""Estimators that choose their parameters on a cluster have the scores and the model of those in threads."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold

import maxmargin
from maxmargin import dask
from maxmargin.datasets import chessboard

X, Y = chessboard(300, noise=0.1)
TOLERANCE = 1e-3
MODELS = [
    dask.SVCCV(Cs=[1, 10], gammas=[0.1, 1], cv=3, refine=1),
    dask.SVCCV(Cs=[1, 10], gammas=[1], cv=[(np.arange(20), np.arange(20, 40))], scoring=["accuracy", "f1"], refit="f1"),
    dask.SVRCV(Cs=[1, 10], gammas=[1], epsilons=[0.1], cv=3),
    dask.OneClassSVMCV(nus=[0.1], gammas=[0.1, 1], cv=3),
    dask.LinearSVCCV(Cs=[0.1, 10], cv=3),
    dask.LinearSVRCV(Cs=[0.1, 10], epsilons=[0.0, 0.1], cv=3),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_same_results_as_in_threads(client, model):
    found = clone(model).fit(X, Y, client=client)
    local = getattr(maxmargin, type(model).__name__)(**model.get_params()).fit(X, Y)
    assert list(found.cv_results_) == list(local.cv_results_)
    for name in found.cv_results_:
        if "test" in name:
            # In threads, folds may be trained together: scores of regressions differ within the tolerance.
            np.testing.assert_allclose(found.cv_results_[name], local.cv_results_[name], rtol=0, atol=TOLERANCE)
    assert found.best_params_ == local.best_params_
    np.testing.assert_array_equal(found.predict(X), local.predict(X))
    assert found.certificate_ is not None


def test_leave_one_out_weights_and_groups(client):
    options = {"Cs": [1, 10], "gammas": [1], "cv": "loo"}
    weights = np.where(np.arange(40) % 5, 1.0, 2.0)
    found = dask.SVCCV(**options).fit(X[:40], Y[:40], sample_weight=weights, client=client)
    assert found.best_score_ == maxmargin.SVCCV(**options).fit(X[:40], Y[:40], sample_weight=weights).best_score_
    options["cv"] = GroupKFold(3)
    groups = np.arange(300) % 4
    found = dask.SVCCV(**options).fit(X, Y, client=client, groups=groups)
    assert found.best_score_ == maxmargin.SVCCV(**options).fit(X, Y, groups=groups).best_score_


def test_failed_trials_and_limits(client):
    splits = [(np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)), (np.arange(0, 300, 2), np.arange(1, 300, 2))]
    model = dask.SVCCV(Cs=[1, 10], gammas=[1], cv=splits, error_score=0.0)
    with pytest.warns(match="2 of 4 trials of SVCCV failed"):
        model.fit(X, Y, client=client)
    assert model.cv_results_["split0_test_score"].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="only one class"):
        clone(model).set_params(error_score="raise").fit(X, Y, client=client)
    stopped = dask.SVCCV(Cs=[1, 10], gammas=[0.1, 1], callback=lambda result: len(result.trials) >= 10)
    with pytest.warns(ConvergenceWarning, match="the callback asked to stop"):
        stopped.fit(X, Y, client=client)
    assert np.isfinite(stopped.best_score_)


def test_collections_must_be_computed(client):
    with pytest.raises(ValueError, match="X must be in memory, not a Dask collection"):
        dask.SVCCV().fit(da.from_array(X), Y, client=client)
    with pytest.raises(ValueError, match="requires y"):
        dask.SVCCV().fit(X, client=client)
