"""Updated moments of the free samples equal recomputed ones."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import Points
from maxmargin.matrices.features import Features
from maxmargin.solvers.linear import newton_equations
from maxmargin.solvers.linear.newton_equations import RunningMoments


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("one_ridge", [False, True])
def test_moments_of_changing_sets(monkeypatch, compressed, centred, one_ridge):
    random = np.random.default_rng(0)
    plain = random.normal(5.0, 1.0, size=(300, 7)) * (random.uniform(size=(300, 7)) < 0.6)
    ridge = np.full(300, 0.5) if one_ridge else random.uniform(0.1, 1.0, size=300)
    rows = Features(Points(sparse.csr_array(plain) if compressed else plain))
    running = RunningMoments(rows, ridge, centred)
    asked = []
    moments_of = Features.moments
    monkeypatch.setattr(Features, "moments", lambda self, *rest: asked.append(self.size) or moments_of(self, *rest))
    members, sigma = random.uniform(size=300) < 0.7, 0.3
    for step in range(20):
        if step:
            members = members ^ (random.uniform(size=300) < 0.02)
        if step == 12:
            sigma = 0.01
        found = running.of(members, sigma)
        factors = (1.0 / (ridge + sigma))[members]
        counted = plain[members] - running.origin
        assert found.total == pytest.approx(factors.sum())
        np.testing.assert_allclose(found.sums, factors @ counted, atol=1e-9)
        np.testing.assert_allclose(
            np.tril(found.squares), np.tril(counted.T @ (factors[:, None] * counted)), rtol=1e-11, atol=1e-9
        )
    assert newton_equations.MAX_UPDATES == 8
    whole = [k for k, size in enumerate(asked) if size > 150]
    assert len(whole) == 3  # the first, the tenth, and the nineteenth or the one after a σ that changes the factors
    assert (running.origin != 0).any() == (centred and not compressed)
