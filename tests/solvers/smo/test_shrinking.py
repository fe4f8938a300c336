"""Shrinking of the pairwise solver, and the check of all variables near the end."""

import numpy as np
import pytest

from maxmargin.backends.optimality import can_be_selected
from maxmargin.kernels import Gaussian
from maxmargin.problems import certify
from maxmargin.solvers import PairwiseSolver, StoppingRule
from maxmargin.solvers.smo.smo_state import SELECTION_RULES, SmoState
from maxmargin.testing.named_problems import classification, two_clouds


def problem_with_bounded_variables(size=200):
    return classification(*two_clouds(size, 2, 1.0), Gaussian(0.7), 1.0)


def advanced_state(steps=60):
    """Return a state after some pair steps, with the variables shrunk that cannot be selected."""
    problem = problem_with_bounded_variables()
    state = SmoState(problem, np.zeros(problem.size), 2**20, keep_bounded_part=True)
    while state.iterations < steps:
        state.steps(SELECTION_RULES["second_order"], 1e-3, steps - state.iterations, 10.0)
    state.shrink()
    assert 0 < state.active < state.size
    return problem, state


def test_shrinking_leaves_out_what_cannot_be_selected():
    _, state = advanced_state()
    assert can_be_selected(state).all()
    before = state.active
    state.unshrink()
    assert can_be_selected(state).sum() == before


class TestReshrink:
    def test_brings_back_wrongly_shrunk_variables(self):
        problem, state = advanced_state()
        wrong = state.order[0]
        state.reorder(np.roll(np.arange(state.active), -1), state.active - 1)  # the first is now behind the active ones
        assert wrong not in state.order[: state.active]
        state.reshrink()
        assert wrong in state.order[: state.active]
        everything = np.empty(state.size)
        everything[state.order] = state.gradient
        np.testing.assert_allclose(everything, problem.gradient(state.point()[0]), atol=1e-12)

    def test_leaves_out_what_cannot_be_selected(self):
        _, state = advanced_state()
        state.steps(SELECTION_RULES["second_order"], 1e-3, 40, 10.0)  # others have reached a bound meanwhile
        active = state.active
        state.reshrink()
        assert 0 < state.active < active
        kept = state.active
        state.unshrink()
        keep = can_be_selected(state)
        assert keep[:kept].all()
        assert not keep[kept:].any()

    def test_keeps_the_order_of_what_was_active(self):
        _, state = advanced_state()
        before = list(state.order)
        state.reshrink()
        positions = [before.index(variable) for variable in state.order[: state.active]]
        assert positions == sorted(positions)

    @pytest.mark.parametrize("shrinking", [True, False])
    def test_is_called_once_near_the_end(self, shrinking, monkeypatch):
        violations, real = [], SmoState.reshrink
        monkeypatch.setattr(SmoState, "reshrink", lambda state: violations.append(state.violation) or real(state))
        problem = classification(*two_clouds(400, 2, 0.5), Gaussian(2.0), 100.0)
        rule = StoppingRule(violation=1e-4)
        solution = PairwiseSolver(shrinking=shrinking, finish_below=0, stopping=rule).solve(problem)
        assert certify(problem, solution.dual).violation <= 1e-4 + 1e-12
        assert len(violations) == int(shrinking)
        assert all(1e-4 < violation <= 1e-3 for violation in violations)
