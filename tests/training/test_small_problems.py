"""Small problems: rounding errors of kernel values, and pairs of classes that are posed as one problem."""

import warnings

import numpy as np
import pytest

from maxmargin import SVC, SVDD, SVR, OneClassSVM
from maxmargin.problems import Status
from maxmargin.training.small_problems import SmallProblemTraining


def large_samples(scale):
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 5))
    return X * scale, np.where(X[:, 0] + random.normal(size=30) > 0, 1, -1)


@pytest.mark.parametrize("estimator", [SVC, SVR, OneClassSVM, SVDD])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e7, 1e10, 1e150, 1e300])
def test_rounding_of_sigmoid_kernels(estimator, scale):
    X, y = large_samples(scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", ".*before the tolerance.*")
        model = estimator(kernel="sigmoid", gamma=0.1).fit(X, y)
    assert np.isfinite(model.certificate_.rounding)
    assert (model.status_ is Status.CONVERGED) == (model.certificate_.violation <= model.tol)
    assert model.status_ is Status.CONVERGED or scale > 1e4


def test_overflow_of_the_diagonal_is_a_clear_error():
    X, _ = large_samples(1e200)
    with pytest.raises(ValueError, match="not finite"):
        SVDD(kernel="poly", degree=3).fit(X)


@pytest.mark.parametrize(
    "parameters", [{}, {"fit_intercept": False}, {"loss": "squared_hinge"}, {"class_weight": "balanced"}]
)
@pytest.mark.parametrize("n_samples", [300, 2500])
def test_pairs_posed_as_one_have_the_same_bits(parameters, n_samples, monkeypatch):
    random = np.random.default_rng(0)
    y = random.integers(5, size=n_samples)
    X = random.normal(size=(n_samples, 4)) + y[:, None]
    posed, of_joined = [], SmallProblemTraining.of_joined
    monkeypatch.setattr(
        SmallProblemTraining, "of_joined", lambda *arguments: posed.append(of_joined(*arguments)) or posed[-1]
    )
    together = SVC(**parameters).fit(X, y)
    assert len(posed) == 1
    monkeypatch.setattr(SmallProblemTraining, "of_joined", lambda *arguments: None)
    alone = SVC(**parameters).fit(X, y)
    np.testing.assert_array_equal(together.dual_coef_, alone.dual_coef_)
    np.testing.assert_array_equal(together.intercept_, alone.intercept_)
    assert [str(one) for one in together.certificate_] == [str(one) for one in alone.certificate_]
