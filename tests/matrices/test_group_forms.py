"""The form bᵀMb by groups of variables."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import Gaussian, Laplacian, Linear, Points, Polynomial
from maxmargin.matrices import KernelMatrix
from maxmargin.matrices import group_forms as module
from maxmargin.matrices.group_forms import form_error, group_forms


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.3), Laplacian(0.2), Polynomial(3, 0.5, 1.0), Linear(), Gaussian(1.0) + Linear()]
)
@pytest.mark.parametrize("groups", [1, 4, 150])
@pytest.mark.parametrize("compressed", [False, True])
def test_forms(monkeypatch, kernel, groups, compressed):
    monkeypatch.setattr(module, "VALUES_AT_ONCE", 1000)
    random = np.random.default_rng(0)
    X = random.standard_normal((150, 5))
    X[random.random(X.shape) < 0.4] = 0.0
    vector = random.standard_normal(150)
    matrix = KernelMatrix(kernel, Points(sparse.csr_array(X) if compressed else X), 2)
    starts = np.sort(random.choice(149, groups - 1, replace=False) + 1)
    starts = np.concatenate([[0], starts]).astype(np.int64)
    group = np.searchsorted(starts, np.arange(150), side="right") - 1
    members = (group[:, None] == np.arange(groups)) * vector[:, None]
    forms = group_forms(matrix, vector, starts)
    np.testing.assert_allclose(forms, members.T @ kernel(X) @ members, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(forms, forms.T)
    factors = random.random(groups)
    value, error = factors @ forms @ factors, form_error(matrix, factors[group] * vector, groups)
    scaled = factors[group] * vector
    assert abs(value - scaled @ kernel(X) @ scaled) <= error < 1e-6 * (1 + np.abs(value) + np.abs(kernel(X)).sum())
