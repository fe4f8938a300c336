"""The system of a Newton step, and updated moments of the free samples, which equal recomputed ones."""

import numpy as np
import pytest
from scipy import sparse

from maxmargin.kernels import Points
from maxmargin.matrices.features import Features
from maxmargin.solvers.linear import newton_equations
from maxmargin.solvers.linear.newton_equations import NewtonEquations, RunningMoments


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


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("constant", [0.0, 3.0])
@pytest.mark.parametrize("way", ["features", "samples", "conjugate gradients"])
@pytest.mark.parametrize("groups", [[0], [-1], [0, 1], [-1, 0, 1, 2]])
def test_system_of_rows_far_from_the_origin(monkeypatch, compressed, constant, way, groups):
    """The reference solves the equations of the same rows near the origin, to which a shift of the offsets leads."""
    count, width = (30, 8) if way == "features" else (12, 8 if way == "conjugate gradients" else 20)
    if way == "conjugate gradients":
        monkeypatch.setattr(newton_equations, "MAX_FACTORISED", 0)
        monkeypatch.setattr(newton_equations, "CG_TOLERANCE", 1e-12)
    random = np.random.default_rng(len(groups))
    group = np.array(groups, dtype=np.int32)[np.arange(count) % len(groups)]
    distance = 2.0**10 if way == "features" else 2.0**16  # moments of features are about the origin
    shift = distance * random.integers(-3, 4, size=width) * (min(groups) >= 0)
    near = np.round(random.normal(size=(count, width)) * 2**20) / 2**20
    far = Features(Points(sparse.csr_array(near + shift) if compressed else near + shift), constant)
    factors, count_of_groups = random.uniform(0.1, 10.0, size=count), max(groups) + 1
    right, bottom = random.normal(size=width + 1), random.normal(size=count_of_groups)
    equations = NewtonEquations(
        far, factors, group, np.full(count_of_groups, 100.0), lambda: (near + shift) @ (near + shift).T + constant**2
    )
    step, offset_step = equations.solve(right, bottom)

    F = np.column_stack([near, np.full(count, constant)])
    ones = (group[:, None] == np.arange(count_of_groups)).astype(float)
    whole = np.block(
        [
            [np.eye(width + 1) + F.T @ (factors[:, None] * F), F.T @ (factors[:, None] * ones)],
            [ones.T @ (factors[:, None] * F), ones.T @ (factors[:, None] * ones)],
        ]
    )
    shifted = right - np.append(shift, 0.0) * bottom.sum()
    expected = np.linalg.solve(whole, np.append(shifted, bottom))
    size = np.abs(expected[: width + 1]).max()
    np.testing.assert_allclose(step, expected[: width + 1], atol=1e-4 * size)
    offsets = expected[width + 1 :] - shift @ expected[:width]
    np.testing.assert_allclose(offset_step, offsets, atol=1e-4 * (1.0 + np.abs(shift).max()) * size)


def test_group_without_a_free_sample_moves_its_offset():
    rows = Features(Points(np.zeros((0, 3))))
    equations = NewtonEquations(rows, np.zeros(0), np.zeros(0, np.int32), np.array([2.0]), lambda: np.zeros((0, 0)))
    step, offset_step = equations.solve(np.array([1.0, -2.0, 0.5, 0.0]), np.array([-3.0]))
    np.testing.assert_array_equal(step, [1.0, -2.0, 0.5, 0.0])
    assert offset_step == -3.0 / (2.0 * newton_equations.MIN_RELATIVE_DIAGONAL)
