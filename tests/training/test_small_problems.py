"""Small problems whose kernel values have large rounding errors are not called converged."""

import warnings

import numpy as np
import pytest

from maxmargin import SVC, SVDD, SVR, OneClassSVM
from maxmargin.problems import Status


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
