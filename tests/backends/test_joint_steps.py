"""The twin of joint steps in NumPy: feasible, never lower, and at the optimum of single pair steps."""

from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin.backends.interface import RunningTotals, StopReason
from maxmargin.backends.numpy_backend import NumpySubproblem
from maxmargin.kernels import Gaussian
from reference.joint_steps import SLOTS, JointNumpySubproblem

N = 1100


def parent(kinked, ridge, C=1.0):
    """Variables of a classification or regression problem of one group, at 0, and their matrix."""
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 5))
    labels = np.where(X[:, 0] + 0.5 * random.normal(size=N) > 0, C, -C)
    lower, upper = (np.full(N, -C), np.full(N, C)) if kinked else (np.minimum(0, labels), np.maximum(0, labels))
    variables = SimpleNamespace(
        dual=np.zeros(N), gradient=X[:, 0].copy() if kinked else labels / C,
        lower=lower, upper=upper, curvature=np.full(N, 1.0 + ridge), ridge=np.full(N, ridge),
        kink=np.full(N, 0.1 * kinked),
        group=np.zeros(N, dtype=np.int32), groups=1, bounded=True, totals=RunningTotals(), threads=1,
    )  # fmt: skip
    return variables, Gaussian(0.2)(X, X).astype(np.float32)


@pytest.mark.parametrize(
    ("kinked", "ridge", "C"), [(False, 0.0, 1.0), (True, 0.0, 1.0), (False, 0.5, 1.0), (False, 0.0, 16.0)]
)
def test_optimum_of_single_steps(kinked, ridge, C):
    found = []
    for kind in (NumpySubproblem, JointNumpySubproblem):
        variables, values = parent(kinked, ridge, C)
        part, before, reason = kind(variables, np.arange(N), values), 0.0, StopReason.PAUSED
        while reason is StopReason.PAUSED:
            reason = part.pair_steps(1e-3, 200, np.inf)
            assert part.totals.dual_value >= before
            before = part.totals.dual_value
        assert reason is StopReason.OPTIMAL
        assert part.violation <= 1e-3
        assert abs(part.dual.sum()) <= 1e-10 * C
        assert ((part.lower <= part.dual) & (part.dual <= part.upper)).all()
        exact = variables.gradient - values.astype(float) @ part.dual - ridge * part.dual
        np.testing.assert_allclose(part.gradient, exact, atol=1e-10 * C)
        found.append(before)
    assert found[1] == pytest.approx(found[0], abs=1e-3 * np.abs(part.dual).sum())


def test_slots_offer_the_ends_of_the_gradient():
    variables, values = parent(kinked=False, ridge=0.0)
    part = JointNumpySubproblem(variables, np.arange(N), values)
    part.gradient = np.random.default_rng(1).normal(size=N)
    offered = part.offered(np.empty(0, dtype=np.int64))
    assert len(offered) == len(np.unique(offered)) <= 2 * SLOTS
    may_grow, may_fall = part.dual < part.upper, part.dual > part.lower
    assert np.where(may_grow, part.gradient, -np.inf).argmax() in offered
    assert np.where(may_fall, part.gradient, np.inf).argmin() in offered
    assert not np.isin(part.offered(offered), offered).any()
