"""Newton steps that are consistent for the samples near the kinks of their loss."""

import numpy as np
import pytest

from maxmargin.formulations import squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import Status, certify
from maxmargin.solvers import SemismoothNewtonSolver, StoppingRule
from maxmargin.solvers.linear import kink_samples
from maxmargin.solvers.linear.kink_samples import KinkSamples, samples_near_kinks


def posed(exact=True, cost=100.0, size=4000):
    """Return a problem with unscaled and rare columns and a large cost: many steps, slow convergence of the dual."""
    random = np.random.default_rng(3)
    X = random.normal(size=(size, 12)) * [1.0, 30.0, 0.1, 5.0, 1.0, 200.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    X[:, 4] = X[:, 0] + 0.01 * X[:, 4]
    X[:, 6:] = X[:, 6:] > [2.0, 2.3, 2.6, 2.8, 3.0, 1.0]
    signs = np.where(X[:, :6] @ [1.0, 0.02, 3.0, 0.1, 0.5, 0.001] + random.normal(size=size) > 0.3, 1.0, -1.0)
    return squared_hinge.pose(KernelMatrix(Linear(), Points(X)), signs, np.full(size, cost), exact)


@pytest.mark.parametrize("exact", [True, False])
def test_same_optimum_in_fewer_steps(exact, monkeypatch):
    monkeypatch.setattr(kink_samples, "MIN_STORED_VALUES", 1)
    problem, rule = posed(exact), StoppingRule(violation=1e-9, relative_gap=1e-9)
    consistent = SemismoothNewtonSolver(rule).solve(problem)
    monkeypatch.setattr(KinkSamples, "pay_off", staticmethod(lambda rows: False))
    plain = SemismoothNewtonSolver(rule).solve(problem)
    assert consistent.status is plain.status is Status.CONVERGED
    values = [certify(problem, one.dual, one.weights) for one in (consistent, plain)]
    assert values[0].dual == pytest.approx(values[1].dual, rel=2e-9)
    assert all(value.relative_gap <= 1e-9 for value in values)
    assert consistent.counters.iterations < plain.counters.iterations


def ones(size):
    """Return a problem of equal samples: every decision value is the first weight."""
    return squared_hinge.pose(KernelMatrix(Linear(), Points(np.ones((size, 1)))), np.ones(size), np.ones(size), False)


SLACK = np.linspace(-1.0, 1.0, 200)


def test_nearest_samples_are_chosen_within_the_limit():
    problem = posed(size=1000)
    slack = np.random.default_rng(0).uniform(-3.0, 3.0, size=1000)
    far = np.abs(slack)
    chosen = samples_near_kinks(problem, slack, np.full(1000, 0.1))
    np.testing.assert_array_equal(chosen, np.flatnonzero(far <= 0.1 * kink_samples.NEAR_FRACTION))
    fewer = samples_near_kinks(problem, slack, np.full(1000, 10.0))
    assert 0 < len(fewer) <= kink_samples.MAX_FRACTION * 1000
    assert far[fewer].max() < np.delete(far, fewer).min()


def test_alternating_sides_leave_the_step_unchanged():
    problem = ones(200)
    kinks = KinkSamples(problem, problem.matrix.features(), SLACK, np.full(200, 0.1))
    first, asked = (np.array([0.02, 0.0]), np.zeros(0)), []

    def alternate(free, dual_weights, total):
        asked.append(free)
        return first[0] * (-1.0) ** len(asked), first[1]

    assert kinks.consistent_step(first, SLACK > 0, alternate) is first
    assert len(asked) == 1


def test_consistent_step_has_the_assumed_sides():
    problem = ones(200)
    kinks = KinkSamples(problem, problem.matrix.features(), SLACK, np.full(200, 0.1))
    first, second = ((np.array([along, 0.0]), np.zeros(0)) for along in (0.02, 0.021))
    asked = []
    step = kinks.consistent_step(first, SLACK > 0, lambda *changed: asked.append(changed) or second)
    assert step is second
    free, dual_weights, total = asked[-1]
    np.testing.assert_array_equal(free, SLACK > 0.021)
    left = (SLACK > 0) & (SLACK < 0.021)  # their responses become 0
    assert total == pytest.approx(-(SLACK / problem.ridge)[left].sum())
    np.testing.assert_allclose(dual_weights, [total, 0.0])
