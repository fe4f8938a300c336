"""Dense data that are mostly zeros are compressed by linear estimators, and the models stay the same."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LinearSVC, LinearSVR
from maxmargin.machines.validation import training_data
from maxmargin.machines.validation.training_data import without_zeros


def mostly_zeros(part, dtype=np.float64, size=(1200, 900)):
    random = np.random.default_rng(0)
    X = random.normal(size=size) * (random.uniform(size=size) < part)
    X[7] = 0.0
    X[-1, -1] = -0.0
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_numbers(dtype):
    X = mostly_zeros(0.1, dtype)
    found = without_zeros(X)
    expected = sparse.csr_array(X)
    assert (found.dtype, found.shape) == (dtype, X.shape)
    assert found.indices.dtype == found.indptr.dtype == np.int32
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert sum(getattr(found, name).nbytes for name in ("data", "indices", "indptr")) < X.nbytes / 2


def test_all_others_stay_as_they_are():
    few, dense, compressed = mostly_zeros(0.1, size=(100, 100)), mostly_zeros(0.5), sparse.csr_array(mostly_zeros(0.1))
    looks_sparse = mostly_zeros(0.1)
    looks_sparse[1 : training_data.ROWS_TESTED_FOR_ZEROS : 2] = (
        1.0  # rows that are looked at first may all be the others
    )
    looks_sparse[::2] = 0.0
    for X in (few, dense, compressed):
        assert without_zeros(X) is X
    found = without_zeros(looks_sparse)
    assert found is looks_sparse or (found != looks_sparse).nnz == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_models_are_those_of_the_dense_rows(order, monkeypatch):
    X = np.asarray(mostly_zeros(0.1), order=order)
    signs = np.sign(X[:, :5].sum(axis=1) + 0.01)
    machines = [(LinearSVC, signs, {"C": 0.1}), (LinearSVR, X[:, 0] + 1.0, {}), (LinearSVC, signs, {"penalty": "l1"})]
    compressed = [kind(**options, tol=1e-8).fit(X, y) for kind, y, options in machines]
    monkeypatch.setattr(training_data, "MIN_VALUES_TO_COMPRESS", np.inf)
    for model, (kind, y, options) in zip(compressed, machines, strict=True):
        plain = kind(**options, tol=1e-8).fit(X, y)
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-7)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=2e-3)
        np.testing.assert_allclose(
            model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X),
            plain.decision_function(X) if hasattr(plain, "decision_function") else plain.predict(X),
            atol=5e-3,
        )
