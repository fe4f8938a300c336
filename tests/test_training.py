"""The training pipeline: a solver's claim is verified."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from maxmargin.formulations import c_classification
from maxmargin.kernels import Linear
from maxmargin.problems import Counters, Solution, Status, certify
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.testing.named_problems import classification, hard_margin, overlapping, two_clouds
from maxmargin.training import train


@dataclass(frozen=True)
class Boaster:
    """Claims to have converged after `steps` steps, and gets a little further every time it is asked."""

    steps: int
    claim: Status = Status.CONVERGED
    stopping: StoppingRule = field(default_factory=StoppingRule)
    calls: list = field(default_factory=list)
    audited = False

    def solve(self, problem, start=None, callback=None):
        self.calls.append(start)
        limited = StoppingRule(violation=1e-9, max_iterations=self.steps)
        solution = PairwiseSolver(stopping=limited).solve(problem, start)
        return Solution(solution.dual, solution.gradient, self.claim, Counters(iterations=self.steps))


@pytest.mark.parametrize("claim", [Status.CONVERGED, Status.PRECISION])
def test_an_unproven_claim_is_sent_back_and_then_denied(claim):
    problem = overlapping()
    boaster = Boaster(steps=2, claim=claim)
    machine = train(problem, boaster, np.arange(problem.size), c_classification)
    assert len(boaster.calls) == 4
    assert all(start is not None for start in boaster.calls[1:])
    assert machine.status is Status.PRECISION
    assert machine.certificate.violation > 1e-3
    assert machine.counters.iterations == 8


@pytest.mark.parametrize("claim", [Status.CONVERGED, Status.PRECISION])
def test_a_point_that_is_proved_is_accepted_whatever_the_solver_thought(claim):
    problem = overlapping()
    machine = train(problem, Boaster(steps=100_000, claim=claim), np.arange(problem.size), c_classification)
    assert machine.status is Status.CONVERGED
    late = Boaster(steps=40, claim=claim)
    machine = train(problem, late, np.arange(problem.size), c_classification)
    assert machine.status is Status.CONVERGED
    assert 1 < len(late.calls) <= 4


def test_limits_hold_over_all_reviews():
    problem = overlapping()
    solver = PairwiseSolver(stopping=StoppingRule(violation=1e-9, max_iterations=7))
    machine = train(problem, solver, np.arange(problem.size), c_classification)
    assert machine.status is Status.MAX_ITERATIONS
    assert machine.counters.iterations == 7


def test_a_hard_margin_starts_from_the_hulls():
    problem = hard_margin()
    machine = train(problem, PairwiseSolver(), np.arange(problem.size), c_classification)
    assert machine.status is Status.CONVERGED
    assert machine.counters.iterations > 0
    direct = certify(problem, PairwiseSolver().solve(problem).dual)
    assert machine.certificate.dual == pytest.approx(direct.dual, rel=1e-9)


def test_far_away_data_are_not_called_inseparable():
    X, signs = two_clouds(60, 5, 8.0)
    near = train(classification(X, signs, Linear(), np.inf), PairwiseSolver(), np.arange(60), c_classification)
    far = train(classification(X + 3e6, signs, Linear(), np.inf), PairwiseSolver(), np.arange(60), c_classification)
    assert far.status is not Status.UNBOUNDED
    assert far.certificate.dual == pytest.approx(near.certificate.dual, rel=1e-2)


def test_an_interruption_during_verification_keeps_the_model(monkeypatch):
    problem = overlapping()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("maxmargin.training.trained_model.violation_of", interrupted)
    machine = train(problem, PairwiseSolver(), np.arange(problem.size), c_classification)
    assert machine.status is Status.INTERRUPTED
    assert np.isfinite(machine.expansion.offset)
    monkeypatch.undo()
    assert machine.certificate.violation <= 1e-3
