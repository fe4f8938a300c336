"""Checkpoints: a state from a file is verified, and writing takes a limited part of the time."""

from dataclasses import replace

import numpy as np
import pytest

from maxmargin.formulations import c_classification
from maxmargin.problems import Counters, Solution, Status, feasible_start
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.testing.named_problems import LINEAR, overlapping
from maxmargin.training import Session, train
from maxmargin.training import checkpoint as checkpoints
from maxmargin.training.checkpoint import Checkpoint, checksum
from maxmargin.training.checkpoint_file import CheckpointError, FitIdentity, ProblemState

IDENTITY = FitIdentity("SVC", {}, {})
SOLVER = PairwiseSolver(stopping=StoppingRule(violation=1e-6))


@pytest.fixture
def posed():
    problem = overlapping()
    return problem, np.arange(problem.size)


@pytest.fixture
def session(tmp_path):
    checkpoint = Checkpoint.open(tmp_path / "file", 1000.0, IDENTITY)
    return replace(Session.begin(None, None), checkpoint=checkpoint)


class Counted(PairwiseSolver):
    """Counts its solves."""

    def solve(self, problem, start=None, callback=None):
        SOLVES.append(None if start is None else start.copy())
        return super().solve(problem, start, callback)


SOLVES: list = []


def trained(posed, session, solver=None):
    SOLVES.clear()
    problem, samples = posed
    return train(problem, Counted(stopping=SOLVER.stopping), samples, c_classification, None, session)


def put(posed, session, state):
    session.checkpoint.put(checksum(*posed), state)


def test_a_finished_problem_is_verified_and_not_solved(posed, session):
    first = trained(posed, session)
    assert len(SOLVES) == 1
    again = trained(posed, session)
    assert not SOLVES
    np.testing.assert_array_equal(again.dual, first.dual)
    assert again.status is Status.CONVERGED
    assert again.counters.iterations == first.counters.iterations


@pytest.mark.parametrize("crafted", ["wrong point", "infeasible", "wrong gradient", "no gradient", "wrong size"])
def test_a_crafted_solution_is_only_a_start(crafted, posed, session):
    first = trained(posed, session)
    problem = posed[0]
    dual, gradient = first.dual, problem.gradient(first.dual)
    if crafted == "wrong point":
        dual = np.zeros(problem.size)
        gradient = problem.gradient(dual)
    elif crafted == "infeasible":
        dual = 2.0 * dual
    elif crafted == "wrong gradient":
        gradient = gradient + 1.0
    elif crafted == "no gradient":
        gradient = None
    else:
        gradient = gradient[:-1]
    put(posed, session, ProblemState(None, Solution(dual, gradient, Status.CONVERGED, Counters()), Counters()))
    found = trained(posed, session)
    assert len(SOLVES) == 1
    np.testing.assert_array_equal(SOLVES[0], feasible_start(problem, dual))
    assert found.status is Status.CONVERGED
    assert found.certificate.violation <= 1e-6


def test_a_start_of_another_size_is_an_error(posed, session):
    put(posed, session, ProblemState(np.ones(2), None, Counters()))
    with pytest.raises(CheckpointError, match=f"2 numbers for a problem that needs {posed[0].size}"):
        trained(posed, session)


def test_a_start_worse_than_zero_is_not_used(session):
    problem = LINEAR["squared_hinge"]()
    posed = problem, np.arange(problem.size)
    first = trained(posed, replace(session, checkpoint=None))
    far = np.where(np.isinf(problem.upper), 1e35, -1e35)
    put(posed, session, ProblemState(far, None, Counters()))
    found = trained(posed, session)
    assert SOLVES == [None]
    np.testing.assert_array_equal(found.dual, first.dual)
    put(posed, session, ProblemState(0.5 * first.dual, None, Counters()))
    trained(posed, session)
    np.testing.assert_array_equal(SOLVES[0], 0.5 * first.dual)


def test_problems_are_told_apart(posed):
    problem, samples = posed
    others = [
        (replace(problem, linear=problem.linear + 1e-12), samples),
        (replace(problem, upper=2.0 * problem.upper), samples),
        (replace(problem, ridge=problem.ridge + 1.0), samples),
        (problem, samples[::-1]),
    ]
    assert len({checksum(problem, samples), *(checksum(*other) for other in others)}) == 5
    assert checksum(problem, samples) == checksum(replace(problem), samples.astype(np.int32))


def test_writing_takes_a_limited_part_of_the_time(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(checkpoints, "perf_counter", lambda: now[0])
    monkeypatch.setattr(checkpoints, "write_checkpoint", lambda *about: now.__setitem__(0, now[0] + 6.0))
    checkpoint = Checkpoint.open(tmp_path / "file", 60.0, IDENTITY)
    checkpoint._saved = now[0]
    assert not checkpoint.is_due(now[0])
    now[0] += 60.0
    assert checkpoint.is_due(160.0)
    checkpoint.save()
    now[0] += 119.0
    assert not checkpoint.is_due(0.0)
    now[0] += 1.0
    assert checkpoint.is_due(0.0)
    assert checkpoint.writes == 1
    assert checkpoint.writing_seconds == pytest.approx(6.0)


def test_an_end_without_a_step_keeps_what_was_recorded(posed, session):
    problem, samples = posed
    recorder = session.recorder(problem, samples)
    nothing = Solution(np.zeros(problem.size), None, Status.MAX_SECONDS, Counters())
    recorder.close(nothing, nothing.dual)
    assert not session.checkpoint.state.problems  # the next solve chooses its own start
    recorder.record(np.ones(problem.size), Counters(iterations=5))
    recorder.close(nothing, nothing.dual)
    [state] = session.checkpoint.state.problems.values()
    np.testing.assert_array_equal(state.start, np.ones(problem.size))
    assert not session.checkpoint.complete
