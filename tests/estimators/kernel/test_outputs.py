"""Regression of several outputs: one machine each, equal to single fits, on kernel values that are computed once."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning

from maxmargin import SVR, NuSVR, QuantileSVR, Status
from maxmargin.kernels import Gaussian
from reference.data import diabetes, waves

MODELS = [
    SVR(C=2.0),
    SVR(loss="squared_epsilon_insensitive", kernel="linear"),
    SVR(fit_intercept=False, kernel="poly", degree=2, coef0=1.0),
    NuSVR(nu=0.3),
    QuantileSVR(quantile=0.7),
]
EACH = pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.kernel}")


def three_outputs():
    X, y = diabetes()
    return X[:200], np.column_stack([y, np.sin(X[:, 0]), X[:, 2] ** 2])[:200]


@EACH
@pytest.mark.parametrize("as_sparse", [False, True])
def test_outputs_are_those_of_single_fits(model, as_sparse):
    X, Y = three_outputs()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    given = sparse.csr_matrix(X) if as_sparse else X
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    together = clone(model).fit(given, Y, sample_weight=weights)
    assert together.predict(given).shape == Y.shape
    assert together.dual_coef_.shape == (3, len(together.support_))
    assert together.intercept_.shape == together.n_iter_.shape == (3,)
    assert len(together.certificate_) == len(together.geometry_) == len(together.status_) == 3
    assert together.n_support_.tolist() == [len(together.support_)]
    for output in range(3):
        alone = clone(model).fit(given, Y[:, output], sample_weight=weights)
        np.testing.assert_allclose(together.predict(given)[:, output], alone.predict(given), atol=1e-12)
        assert together.intercept_[output] == alone.intercept_[0]
        assert together.n_iter_[output] == alone.n_iter_
        assert together.certificate_[output].dual == alone.certificate_.dual
        assert set(alone.support_) <= set(together.support_)
        if model.kernel == "linear":
            ours, theirs = (np.asarray(sparse.csr_matrix(one.coef_).todense()) for one in (together, alone))
            np.testing.assert_allclose(ours[output], theirs[0], atol=1e-12)


def test_other_kernels():
    X, Y = three_outputs()
    expected = SVR(gamma=0.1).fit(X, Y).predict(X)
    K = Gaussian(0.1)(X)
    np.testing.assert_allclose(SVR(kernel="precomputed").fit(K, Y).predict(K), expected, atol=1e-8)
    np.testing.assert_allclose(SVR(kernel=Gaussian(0.1)).fit(X, Y.tolist()).predict(X), expected, atol=1e-12)


def test_a_function_of_the_user_is_asked_once():
    X, Y = three_outputs()
    asked = []

    def kernel(A, B):
        asked.append(len(A) * len(B))
        return Gaussian(0.1)(A, B)

    SVR(kernel=kernel, solver="pairwise").fit(X, Y)
    once = sum(asked)
    for output in range(3):
        SVR(kernel=kernel, solver="pairwise").fit(X, Y[:, output])
    assert once < 0.8 * (sum(asked) - once)


@pytest.mark.parametrize(("jobs", "part"), [(1, 0.7), (2, 0.9)])
def test_large_fits_share_their_rows(jobs, part):
    X, y = waves(2200)
    X = np.hstack([X, np.random.default_rng(0).normal(scale=0.1, size=(len(X), 95))])
    Y = np.column_stack([y, X[:, 0] * X[:, 1], X[:, 2] ** 2])
    together = SVR(n_jobs=jobs).fit(X, Y)
    alone = [SVR(n_jobs=jobs).fit(X, target) for target in Y.T]
    for output, model in enumerate(alone):
        np.testing.assert_allclose(together.predict(X)[:, output], model.predict(X), atol=3e-3)
        assert together.certificate_[output].violation <= 1e-3
    evaluations = sum(machine.counters.kernel_evaluations for machine in together._models_)
    # Of two that start side by side, each computes its first block.
    assert evaluations < part * sum(model._models_[0].counters.kernel_evaluations for model in alone)


def test_a_single_column_is_a_vector():
    X, Y = three_outputs()
    expected = SVR().fit(X, Y[:, 0])
    with pytest.warns(DataConversionWarning, match="column-vector y was passed"):
        model = SVR().fit(X, Y[:, :1])
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.predict(X).shape == (len(X),)
    assert isinstance(model.n_iter_, int)
    assert not isinstance(model.certificate_, list)


def test_an_output_that_is_constant():
    X, Y = three_outputs()
    Y[:, 1] = 7.0
    model = SVR().fit(X, Y)
    np.testing.assert_allclose(model.predict(X)[:, 1], 7.0, atol=0.11)
    nothing = SVR().fit(X, np.zeros((len(X), 2)))
    assert len(nothing.support_) == 0
    np.testing.assert_array_equal(nothing.predict(X), np.zeros((len(X), 2)))


def test_warm_starts_and_pickles():
    X, Y = three_outputs()
    model = SVR(warm_start=True).fit(X, Y)
    steps = model.n_iter_.sum()
    _ = model.certificate_  # computed before it is stored
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert [one.gap for one in copy.certificate_] == [one.gap for one in model.certificate_]
    assert model.fit(X, Y).n_iter_.sum() < 0.1 * steps
    model.fit(X, Y[:, :2])  # another number of outputs: from the beginning
    np.testing.assert_array_equal(model.dual_coef_, SVR().fit(X, Y[:, :2]).dual_coef_)
    assert model.fit(X, Y[:, 0]).predict(X).shape == (len(X),)


def test_limits_and_interruptions():
    X, Y = three_outputs()
    with pytest.warns(ConvergenceWarning, match=r"SVR stopped before the tolerance in \d of 3 outputs"):
        model = SVR(C=1e3, max_iter=3).fit(X, Y)
    assert model.fit_status_ == 1
    with pytest.warns(ConvergenceWarning):
        model = SVR(C=1e3, max_seconds=0.0).fit(X, Y)
    assert set(model.status_) == {Status.MAX_SECONDS}

    def interrupt(progress):
        raise KeyboardInterrupt

    model = SVR(callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="usable"):
        model.fit(X, Y)
    assert Status.INTERRUPTED in model.status_
    assert np.isfinite(model.predict(X)).all()


def test_targets_that_are_none():
    X, Y = three_outputs()
    with pytest.raises(TypeError, match="targets must be dense"):
        SVR().fit(X, sparse.csr_matrix(Y))
    with pytest.raises(ValueError, match="NaN"):
        SVR().fit(X, np.where(Y > 1, np.nan, Y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVR().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="0 feature"):
        SVR().fit(X, Y[:, :0])
    with pytest.raises(ValueError, match="could not convert string"):
        SVR().fit(X, np.full((len(X), 2), "a"))


def test_tags():
    assert all(model.__sklearn_tags__().target_tags.multi_output for model in MODELS)
