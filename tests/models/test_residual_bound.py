"""An upper bound on the form bᵀKb from landmark features."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import Gaussian, Laplacian, Points, Polynomial
from maxmargin.models import residual_bound
from maxmargin.models.residual_bound import bound_quadratic_form


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.2), Gaussian(1e-4), Gaussian(50.0), Laplacian(0.1), Polynomial(2, 1.0, 1.0)]
)
@pytest.mark.parametrize("landmarks", [1, 20, 200])
@pytest.mark.parametrize("form", [np.asarray, lambda X: X.astype(np.float32), sparse.csr_array])
def test_it_bounds_the_form(monkeypatch, kernel, landmarks, form):
    monkeypatch.setattr(residual_bound, "ROWS_AT_ONCE", 64)
    random = np.random.default_rng(0)
    X = form(random.standard_normal((200, 4)))
    exact = kernel(X)
    for vector in (random.standard_normal(200), np.ones(200), random.random(200) * (random.random(200) < 0.2)):
        bound = bound_quadratic_form(kernel, Points(X[:landmarks]), Points(X), vector, 2)
        assert bound >= vector @ exact @ vector * (1 - 1e-12)
        assert bound <= 2.1 * np.abs(vector).sum() ** 2 * exact.diagonal().max()


def test_it_is_close_where_the_landmarks_span_the_samples():
    random = np.random.default_rng(0)
    X = random.standard_normal((100, 3))
    vector = random.standard_normal(100)
    kernel = Polynomial(2, 1.0, 1.0)  # of ten features
    bound = bound_quadratic_form(kernel, Points(X[:30]), Points(X), vector)
    assert bound == pytest.approx(vector @ kernel(X) @ vector, rel=1e-3)
