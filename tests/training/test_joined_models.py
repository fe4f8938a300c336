"""Models of problems that were posed as one: made when they are read, the same as those of single problems."""

import pickle
import tracemalloc
from copy import deepcopy

import numpy as np
import pytest

from maxmargin import SVC, load, save
from maxmargin.problems import Status
from maxmargin.training.joined_models import JoinedModels


def many_classes(classes=40, members=3, features=4):
    random = np.random.default_rng(7)
    y = np.repeat(np.arange(classes), members)
    return random.normal(size=(len(y), features)) + 0.1 * y[:, None], y


@pytest.fixture(params=[{}, {"loss": "squared_hinge"}, {"fit_intercept": False}, {"max_iter": 1}], ids=str)
def model(request):
    X, y = many_classes()
    return SVC(**request.param), X, y


@pytest.mark.filterwarnings("ignore:.*stopped before the tolerance")
def test_arrays_are_those_of_the_models(model):
    model, X, y = model
    models = model.fit(X, y)._models_
    assert isinstance(models, JoinedModels)
    assert len(models) == len(models[:]) == 780
    np.testing.assert_array_equal(models.samples, np.concatenate([one.samples for one in models]))
    np.testing.assert_array_equal(models.coefficients, np.concatenate([one.expansion.coefficients for one in models]))
    np.testing.assert_array_equal(model.intercept_, [one.expansion.offset for one in models])
    np.testing.assert_array_equal(model.n_iter_, [one.counters.iterations for one in models])
    assert model.status_ == [one.status for one in models]
    assert model.fit_status_ == int(any(status is not Status.CONVERGED for status in model.status_))


@pytest.mark.parametrize("pair", [(0, 1), (3, 17), (38, 39)])
def test_a_model_is_that_of_its_pair_alone(pair):
    X, y = many_classes()
    models, number = SVC(tol=1e-8).fit(X, y)._models_, 0
    for number, classes in enumerate(zip(*np.triu_indices(40, 1), strict=True)):  # noqa: B007
        if classes == pair:
            break
    rows = np.isin(y, pair)
    alone = SVC(tol=1e-8, gamma=1 / (X.shape[1] * X.var())).fit(X[rows], y[rows])
    np.testing.assert_array_equal(models[number].samples, np.flatnonzero(rows))
    np.testing.assert_allclose(models[number].expansion.coefficients, -alone._models_[0].dual, atol=1e-7)
    certificate = models[number].certificate
    assert certificate.violation <= 1e-8
    assert certificate.dual == pytest.approx(alone.certificate_.dual, rel=1e-9)
    assert models[number] is models[number]
    assert models[number - 780] is models[number]


def test_models_are_made_when_they_are_read():
    X, y = many_classes()
    models = SVC().fit(X, y)._models_
    assert not models._read
    assert models[5] is models[5]
    assert list(models._read) == [5]
    with pytest.raises(IndexError):
        models[780]


def test_kernel_values_of_the_fit_are_released():
    X, y = many_classes(3, 600)
    SVC().fit(X, y)
    tracemalloc.start()
    model = SVC().fit(X, y)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 0.1 * 8 * len(X) ** 2
    assert model._models_[-1].certificate.violation <= 1e-3


def test_copies_pickles_and_files(tmp_path):
    X, y = many_classes(6)
    model = SVC().fit(X, y)
    save(model, tmp_path / "model")
    for other in (deepcopy(model), pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
        assert len(other._models_) == 15
        assert other.status_ == model.status_
        np.testing.assert_array_equal(other._models_[3].dual, model._models_[3].dual)
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
