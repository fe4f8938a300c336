"""Units of problems of extreme magnitudes: ordinary problems have none; solutions and reports are scaled back."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.matrices import PrecomputedMatrix
from maxmargin.problems import Counters, DualProblem, Progress, Solution, Status, certify
from maxmargin.solvers import PairwiseSolver, SharedCallback, StoppingRule, Trace
from maxmargin.solvers.recorder import RecordedCallback, Recorder
from maxmargin.testing.named_problems import CONVEX
from maxmargin.training.pipeline import solve_in_units
from maxmargin.training.problem_scale import (
    MAX_BOUND,
    MAX_VARIABLE,
    ProblemScale,
    check_representable,
    overflow_message,
)


def small_problem(
    kernel: float = 1.0, linear: float = 1.0, bound: float = 1.0, ridge: float = 0.0, total: float = 0.0
) -> DualProblem:
    """Return a problem of six variables with these magnitudes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3))
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    return DualProblem(
        PrecomputedMatrix(kernel * (X @ X.T)),
        linear * signs,
        np.where(signs > 0, 0.0, -bound),
        np.where(signs > 0, bound, 0.0),
        np.full(6, ridge),
        total=np.array([total]),
    )


@pytest.mark.parametrize("name", sorted(CONVEX))
def test_ordinary_problems_have_no_units(name: str) -> None:
    assert ProblemScale.of(CONVEX[name]()) is None


@pytest.mark.parametrize(
    "magnitudes",
    [
        {"kernel": 1e300},
        {"kernel": 1e-300},
        {"linear": 1e150},
        {"linear": 1e-250},
        {"bound": 1e300},
        {"bound": 1e-300},
        {"bound": np.inf, "ridge": 1e-300},
        {"bound": np.inf, "ridge": 1e300},
        {"bound": 1e30, "total": 5e29, "linear": 0.0},
        {"kernel": 1e-200, "bound": 1e-300, "linear": 1e200},
    ],
    ids=str,
)
def test_scaled_problems_are_ordinary(magnitudes: dict[str, float]) -> None:
    problem = small_problem(**magnitudes)
    units = ProblemScale.of(problem)
    assert units is not None
    scaled = units.problem(problem)
    assert np.abs(scaled.matrix.diagonal()).max() <= 2.0
    assert np.abs(scaled.linear).max() <= 1.0
    for bound in (scaled.lower, scaled.upper):
        assert np.abs(bound[np.isfinite(bound)]).max(initial=0.0) <= MAX_BOUND
    assert (scaled.ridge[problem.ridge > 0] >= scaled.matrix.diagonal()[problem.ridge > 0] / MAX_VARIABLE).all()
    assert np.abs(scaled.total).max() <= 2.0
    assert (np.isinf(scaled.upper) == np.isinf(problem.upper)).all()


@pytest.mark.parametrize("exponent", [-160, 120])
def test_solution_is_that_of_the_ordinary_problem(exponent: int) -> None:
    factor = 2.0**exponent
    plain, solver = small_problem(), PairwiseSolver(stopping=StoppingRule(1e-10))
    problem = small_problem(kernel=factor, bound=1.0 / factor)
    units = ProblemScale.of(problem)
    assert units is not None
    expected = certify(plain, solver.solve(plain).dual)
    solution = solve_in_units(problem, solver, None, SharedCallback(None), units)
    found = certify(problem, solution.dual)
    assert found.dual == pytest.approx(expected.dual / factor, rel=1e-9)
    assert found.violation == pytest.approx(expected.violation, abs=1e-9)
    assert solution.gradient == pytest.approx(problem.gradient(solution.dual), abs=1e-9)
    assert np.isin(solution.dual[plain.upper == 0], problem.lower).any() or (solution.dual > problem.lower).all()


def test_reports_and_records_are_in_the_original_units() -> None:
    problem = small_problem(linear=2.0**200, bound=2.0**205)
    units = ProblemScale.of(problem)
    assert units is not None
    recorded: list[np.ndarray] = []

    class Points(Recorder):
        def is_due(self) -> bool:
            return True

        def record(self, start: np.ndarray, counters: Counters) -> None:
            recorded.append(start)

    trace = Trace(steps=1, points=True)
    callback = RecordedCallback(SharedCallback(trace), Points())
    solution = solve_in_units(problem, PairwiseSolver(), None, callback, units)
    last = trace.entries[-1]
    assert last.point is not None
    assert np.abs(solution.dual).max() > 1e50
    np.testing.assert_array_equal(last.point, solution.dual)
    certificate = certify(problem, solution.dual)
    assert last.dual == pytest.approx(certificate.dual, rel=1e-9)
    assert last.primal == pytest.approx(certificate.primal, rel=1e-6)
    assert recorded
    assert np.abs(recorded[-1]).max() > 1e50


def test_tolerances_have_the_units_of_the_targets_and_are_not_below_rounding() -> None:
    problem = small_problem(linear=2.0**100)
    units = ProblemScale.of(problem)
    assert units is not None
    scaled = units.problem(problem)
    rule = units.rule(StoppingRule(violation=2.0**80, gap=2.0**90), scaled)
    assert rule.violation == 2.0 ** (80 - units.gradient)
    assert rule.gap == 2.0 ** (90 - units.value)
    assert 0 < units.rule(StoppingRule(violation=1e-3), scaled).violation < 1e-14
    assert units.rule(StoppingRule(violation=1e-13, relative_gap=1e-4), scaled).violation == 1e-13


def test_units_of_a_penalty_on_absolute_weights_scale_only_the_features() -> None:
    units = ProblemScale.of(small_problem(kernel=2.0**200, bound=np.inf, ridge=1.0), l1=True)
    assert units is not None
    assert units.gradient == 0
    assert units.matrix == pytest.approx(200, abs=4)
    start = units.start(np.array([1.0]))
    assert start is not None
    assert units.original_start(start)[0] == 1.0


def test_starts_and_progress_return() -> None:
    units = ProblemScale.of(small_problem(linear=2.0**100))
    assert units is not None
    dual = np.arange(6.0)
    start = units.start(dual)
    assert start is not None
    np.testing.assert_array_equal(units.original_start(start), dual)
    report = units.progress(Progress(1, 1.0, 2.0, 1.0, 6, 0.0))
    assert report.violation == 2.0**units.gradient
    assert report.gap == 2.0**units.value
    assert units.start(None) is None


def test_an_objective_that_overflows_is_named_with_its_magnitudes() -> None:
    problem = small_problem(linear=1e200, bound=1e250)
    solution = Solution(problem.upper + problem.lower, None, Status.CONVERGED, Counters())
    with pytest.raises(
        ValueError, match=r"overflows float64: with targets or margins up to 1e\+200, costs up to 1e\+250"
    ):
        check_representable(problem, certify(problem, solution.dual))
    assert "kernel gave values that are not finite" in overflow_message(small_problem(kernel=np.inf))
