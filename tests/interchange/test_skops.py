"""skops, which stores models without pickle: our estimators are the only types of ours that a user must trust."""

import copy
import pickle

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin
from maxmargin import estimators, feature_maps, kernels, solvers
from maxmargin.storage.plain_state import PlainState

RANDOM = np.random.default_rng(0)
X = RANDOM.random((40, 3))
Y = np.arange(40) % 3

OPTIONS = {"KernelApproximationSVC": {"n_components": 8, "random_state": 0}}
ESTIMATORS = [getattr(estimators, name)(**OPTIONS.get(name, {})) for name in estimators.__all__]
VARIANTS = [
    maxmargin.SVC(probability=True, kernel=0.5 * kernels.Gaussian(1.0) + kernels.Linear()),
    maxmargin.SVC(multi_class="ovr"),
    maxmargin.SVC(solver=solvers.BlockSolver(working_set=16), class_weight={0: 1.0, 1: 2.0, 2: 1.0}),
    maxmargin.SVR(noise=True),
    maxmargin.LinearSVC(probability=True),
    feature_maps.NystroemMap(n_components=5, random_state=0),
    feature_maps.PolynomialMap(),
]


def round_trip(model):
    data = skops.io.dumps(model)
    untrusted = skops.io.get_untrusted_types(data=data)
    return skops.io.loads(data, trusted=untrusted), untrusted


def name_of(model):
    return f"{type(model).__module__}.{type(model).__name__}"


@pytest.mark.parametrize("model", [*ESTIMATORS, *VARIANTS], ids=str)
@pytest.mark.parametrize("certified", [False, True])
def test_only_estimators_are_untrusted(model, certified):
    model = clone(model).fit(X, Y)
    certificate = str(model.certificate_) if certified and hasattr(model, "certificate_") else None
    found, untrusted = round_trip(model)
    assert untrusted == [name_of(model)]
    for method in ("predict", "decision_function", "predict_proba", "predict_interval", "transform"):
        if hasattr(model, method):
            np.testing.assert_array_equal(getattr(found, method)(X), getattr(model, method)(X))
    assert certificate is None or str(found.certificate_) == certificate


def test_pipelines_and_searches():
    pipeline = make_pipeline(StandardScaler(), maxmargin.SVC()).fit(X, Y)
    found, untrusted = round_trip(pipeline)
    assert untrusted == ["maxmargin.estimators.kernel.SVC"]
    np.testing.assert_array_equal(found.decision_function(X), pipeline.decision_function(X))
    search = maxmargin.SVCCV(Cs=2, gammas=2, cv=3).fit(X, Y)
    found, untrusted = round_trip(search)
    ours = [name for name in untrusted if name.startswith("maxmargin")]
    assert ours == ["maxmargin.estimators.kernel.SVC", "maxmargin.search.estimators.svc_cv.SVCCV"]
    np.testing.assert_array_equal(found.predict(X), search.predict(X))


def test_streams_go_on():
    model = maxmargin.OnlineSVC().fit(X[:20], Y[:20])
    found, _ = round_trip(model)
    for one in (model, found):
        one.partial_fit(X[20:], Y[20:])
    np.testing.assert_array_equal(found.decision_function(X), model.decision_function(X))


def test_pickle_and_copy_keep_the_attributes():
    model = maxmargin.SVC(kernel=kernels.Gaussian(1.0)).fit(X, Y)
    assert copy.copy(model)._models_ is model._models_
    assert b"plain state" not in pickle.dumps(model)
    assert copy.deepcopy(model).certificate_ is not None
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


class Tagged(maxmargin.SVC):
    """An estimator of a user whose state has more, or less."""

    def __getstate__(self):
        return super().__getstate__() | {"tag": 1}

    def __setstate__(self, state):
        self.tag = state.pop("tag")
        super().__setstate__(state)


def test_states_of_subclasses():
    model = Tagged().fit(X, Y)
    for found in (pickle.loads(pickle.dumps(model)), copy.copy(model)):
        assert found.tag == 1
        np.testing.assert_array_equal(found.predict(X), model.predict(X))


class Holder(PlainState, BaseEstimator):
    """An estimator with any attributes."""


def test_values():
    one = kernels.Gaussian(2.0)
    model = Holder()
    others = [np.dtype("f4"), maxmargin.Status.STOPPED, np.arange(3), {"dict": 1}]
    model.values = [one, (one, {"a": one, 3: None}), *others]
    found = Holder.__new__(Holder)
    found.__setstate__(model.__getstate__())
    first, (second, table), *rest = found.values
    assert first is second is table["a"]
    assert first == one
    assert str(rest) == str(others)
    for name in ("os.system", "kernels.nothing", "storage.plain_state.import_module"):
        with pytest.raises((ValueError, ImportError)):
            found.__setstate__({"plain state": {"class": name, "state": None}})
