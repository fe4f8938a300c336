"""The scale of the noise of a regression, and the probabilities of novelty detection."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from maxmargin import SVR, NuSVR, OneClassSVM
from maxmargin.machines.calibration.cross_validation import stratified_folds
from reference import libsvm
from reference.data import iris, waves


class TestRegression:
    def test_the_scale_of_the_noise_is_libsvms(self):
        random = np.random.default_rng(0)
        X = random.normal(size=(300, 2))
        y = np.sin(2 * X).sum(axis=1) + random.laplace(scale=0.3, size=300)
        for model, options in (
            (SVR(C=2.0, epsilon=0.1, gamma=0.5), "-s 3 -c 2 -p 0.1"),
            (NuSVR(C=2.0, nu=0.4, gamma=0.5), "-s 4 -c 2 -n 0.4"),
        ):
            theirs = [libsvm.train(X, y, f"{options} -g 0.5 -b 1").get_svr_probability() for _ in range(5)]
            assert model.set_params(noise=True).fit(X, y).noise_scale_ == pytest.approx(np.mean(theirs), rel=0.08)

    @pytest.mark.parametrize(
        "model",
        [SVR(C=5.0), NuSVR(C=5.0), SVR(C=5.0, loss="squared_epsilon_insensitive"), SVR(C=5.0, solver="pairwise")],
        ids=str,
    )
    def test_errors_are_those_of_models_of_their_own(self, model):
        X, y = waves(700)
        folds = stratified_folds([np.arange(700)], 700, 0)
        errors = np.empty(700)
        for fold in range(5):
            held = folds == fold
            alone = clone(model).set_params(gamma=1 / (5 * X.var())).fit(X[~held], y[~held])
            errors[held] = y[held] - alone.predict(X[held])
        size = np.abs(errors)
        expected = size[size <= 5 * np.sqrt(2) * size.mean()].mean()
        found = clone(model).set_params(noise=True).fit(X, y).noise_scale_
        assert found == pytest.approx(expected, rel=0.01)

    def test_intervals(self):
        X, y = waves(1500)
        new, of_new = X[1000:], y[1000:]
        model = SVR(C=5.0, noise=True).fit(X[:1000], y[:1000])
        for coverage in (0.0, 0.5, 0.9):
            low, high = model.predict_interval(new, coverage).T
            np.testing.assert_allclose(0.5 * (low + high), model.predict(new))
            assert np.mean((low <= of_new) & (of_new <= high)) == pytest.approx(coverage, abs=0.12)

    def test_interface(self):
        X, y = waves(100)
        model = SVR()
        with pytest.raises(AttributeError, match="has no attribute 'predict_interval'") as error:
            _ = model.predict_interval
        assert str(error.value.__cause__) == "predict_interval is not available when noise=False"
        with pytest.raises(NotFittedError, match="fitted with noise=False"):
            model.fit(X, y).set_params(noise=True).predict_interval(X)
        assert not hasattr(model, "noise_scale_")
        model.fit(X, y)
        for coverage in (1.0, -0.1, "all"):
            with pytest.raises(ValueError, match="coverage must be a number of at least 0"):
                model.predict_interval(X, coverage)
        assert not hasattr(model.set_params(noise=False).fit(X, y), "noise_scale_")
        with pytest.raises(ValueError, match="noise must be True or False"):
            SVR(noise=1).fit(X, y)
        assert SVR(noise=True).fit([[0.0]], [2.0]).predict_interval([[0.0]]).shape == (1, 2)
        weights = np.where(np.arange(100) < 60, 1.0, 0.0)
        some = SVR(noise=True, gamma=0.2).fit(X, y, weights).noise_scale_
        assert some == pytest.approx(SVR(noise=True, gamma=0.2).fit(X[:60], y[:60]).noise_scale_, rel=1e-6)


class TestNovelty:
    @pytest.mark.parametrize("n", [60, 2600])
    @pytest.mark.parametrize("nu", [0.02, 0.5, 1.0])
    def test_predict_is_the_more_probable_answer(self, nu, n):
        X = np.random.default_rng(0).normal(size=(n, 3))
        model = OneClassSVM(nu=nu, probability=True).fit(X)
        new = np.vstack([X, 4 * X])
        found = model.predict_proba(new)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.predict(new) == 1, found[:, 0] >= 0.5)
        order = np.argsort(model.decision_function(new))
        assert (np.diff(found[order, 0]) >= 0).all()
        assert model.density_marks_.shape == (11,)

    def test_interface(self):
        X, _ = iris()
        model = OneClassSVM().fit(X)
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "density_marks_")
        with pytest.raises(NotFittedError, match="fitted with probability=False"):
            model.set_params(probability=True).predict_proba(X)
        copy = pickle.loads(pickle.dumps(model.fit(X)))
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        counts = np.random.default_rng(0).integers(0, 3, len(X))
        weighted = OneClassSVM(gamma=0.5, probability=True).fit(X, sample_weight=counts)
        repeated = OneClassSVM(gamma=0.5, probability=True).fit(np.repeat(X, counts, axis=0))
        np.testing.assert_allclose(weighted.density_marks_, repeated.density_marks_, atol=1e-6)
        with pytest.raises(ValueError, match="probability must be True or False"):
            OneClassSVM(probability=2).fit(X)
