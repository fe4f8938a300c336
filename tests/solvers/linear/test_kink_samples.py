"""Samples next to the edge of their loss are put where Newton's step puts them, before anybody looks at all data."""

import numpy as np
import pytest

from maxmargin.formulations import squared_hinge
from maxmargin.kernels import Linear, Points
from maxmargin.matrices import KernelMatrix
from maxmargin.problems import Status, certify
from maxmargin.solvers import SemismoothNewtonSolver, StoppingRule
from maxmargin.solvers.linear import kink_samples
from maxmargin.solvers.linear.kink_samples import EdgeSamples, near_edge


def posed(exact=True, cost=100.0, size=4000):
    """Columns of different sizes, rare ones among them, and a large cost: many steps, and a dual that lags behind."""
    random = np.random.default_rng(3)
    X = random.normal(size=(size, 12)) * [1.0, 30.0, 0.1, 5.0, 1.0, 200.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    X[:, 4] = X[:, 0] + 0.01 * X[:, 4]
    X[:, 6:] = X[:, 6:] > [2.0, 2.3, 2.6, 2.8, 3.0, 1.0]
    signs = np.where(X[:, :6] @ [1.0, 0.02, 3.0, 0.1, 0.5, 0.001] + random.normal(size=size) > 0.3, 1.0, -1.0)
    return squared_hinge.pose(KernelMatrix(Linear(), Points(X)), signs, np.full(size, cost), exact)


@pytest.mark.parametrize("exact", [True, False])
def test_the_optimum_is_the_same_and_takes_fewer_steps(exact, monkeypatch):
    monkeypatch.setattr(kink_samples, "LONG_PASS", 1)
    problem, rule = posed(exact), StoppingRule(violation=1e-9, relative_gap=1e-9)
    settled = SemismoothNewtonSolver(rule).solve(problem)
    monkeypatch.setattr(EdgeSamples, "pay", staticmethod(lambda rows: False))
    plain = SemismoothNewtonSolver(rule).solve(problem)
    assert settled.status is plain.status is Status.CONVERGED
    values = [certify(problem, one.dual, one.weights) for one in (settled, plain)]
    assert values[0].dual == pytest.approx(values[1].dual, rel=2e-9)
    assert all(value.relative_gap <= 1e-9 for value in values)
    assert settled.counters.iterations < plain.counters.iterations


def ones(size):
    """Samples that are all alike: the image of every one is the first of the weights."""
    return squared_hinge.pose(KernelMatrix(Linear(), Points(np.ones((size, 1)))), np.ones(size), np.ones(size), False)


SLACK = np.linspace(-1.0, 1.0, 200)


def test_the_nearest_are_chosen_and_never_too_many():
    problem = posed(size=1000)
    slack = np.random.default_rng(0).uniform(-3.0, 3.0, size=1000)
    far = np.abs(slack)
    chosen = near_edge(problem, slack, np.full(1000, 0.1))
    np.testing.assert_array_equal(chosen, np.flatnonzero(far <= 0.1 * kink_samples.REACH))
    fewer = near_edge(problem, slack, np.full(1000, 10.0))
    assert 0 < len(fewer) <= kink_samples.PART * 1000
    assert far[fewer].max() < np.delete(far, fewer).min()


def test_those_who_do_not_settle_change_nothing():
    problem = ones(200)
    edge = EdgeSamples(problem, problem.matrix.features(), SLACK, np.full(200, 0.1))
    first, asked = (np.array([0.02, 0.0]), np.zeros(0)), []

    def there_and_back(between, own, total):
        asked.append(between)
        return first[0] * (-1.0) ** len(asked), first[1]

    assert edge.settle(first, SLACK > 0, there_and_back) is first
    assert len(asked) == 1


def test_those_who_settle_are_on_the_sides_that_their_step_has():
    problem = ones(200)
    edge = EdgeSamples(problem, problem.matrix.features(), SLACK, np.full(200, 0.1))
    first, second = ((np.array([along, 0.0]), np.zeros(0)) for along in (0.02, 0.021))
    asked = []
    step = edge.settle(first, SLACK > 0, lambda *changed: asked.append(changed) or second)
    assert step is second
    between, own, total = asked[-1]
    np.testing.assert_array_equal(between, SLACK > 0.021)
    left = (SLACK > 0) & (SLACK < 0.021)  # their responses are taken away
    assert total == pytest.approx(-(SLACK / problem.ridge)[left].sum())
    np.testing.assert_allclose(own, [total, 0.0])
