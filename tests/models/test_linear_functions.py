"""Linear decision functions on dense and sparse data of both precisions."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import points
from maxmargin.models import LinearFunctions

RANDOM = np.random.default_rng(0)
DENSE = np.where(RANDOM.random((300, 7)) < 0.5, RANDOM.normal(size=(300, 7)), 0.0)
FORMS = {
    "float64": DENSE,
    "float32": DENSE.astype(np.float32),
    "csr": sparse.csr_array(DENSE),
    "csr float32": sparse.csr_array(DENSE.astype(np.float32)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("functions", [1, 4])
@pytest.mark.parametrize("threads", [1, 2])
def test_values(form, functions, threads, monkeypatch):
    monkeypatch.setattr(points, "CONVERSION_VALUES", 50)  # several batches
    model = LinearFunctions(RANDOM.normal(size=(functions, 7)), RANDOM.normal(size=functions))
    X = FORMS[form]
    exact = X.toarray() if sparse.issparse(X) else X
    expected = exact.astype(np.float64) @ model.weights.T + model.offsets
    np.testing.assert_allclose(model.decision_values(X, threads), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("functions", [1, 3])
def test_no_samples_and_zero_weights(functions):
    model = LinearFunctions(np.zeros((functions, 7)), np.arange(functions) + 0.5)
    assert model.decision_values(np.empty((0, 7)), 1).shape == (0, functions)
    np.testing.assert_array_equal(model.decision_values(DENSE, 1), np.tile(model.offsets, (300, 1)))
