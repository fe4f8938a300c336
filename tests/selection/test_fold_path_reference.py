"""The native solver of folds beside the reference in plain Python."""

import numpy as np
import pytest
from tests.reference import fold_path

from maxmargin import _native
from maxmargin.selection.fold_path import PathMemory


def fold(seed, count, C):
    """Overlapping classes, the first ones of each in order, so that the problem is a run of the matrix."""
    random = np.random.default_rng(seed)
    y = np.repeat([-1.0, 1.0], count // 2)
    X = random.normal(size=(count, 2)) + 0.7 * y[:, None]
    matrix = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)) + 0.01 * np.eye(count)
    lower, upper = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    return fold_path.Problem(matrix, y, lower, upper, np.zeros(count), np.zeros(count, dtype=np.int32))


def solved(problem, tolerance):
    """Return the dual vector and the outcome of the native solver."""
    size = len(problem.linear)
    dual, outcome = np.zeros(size), np.full(4, -1, dtype=np.int64)
    _native.solve_fold_problem(
        problem.matrix,
        _native.FoldProblem(
            columns=np.arange(size),
            linear=problem.linear,
            group=problem.group,
            groups=1,
            lower=problem.lower,
            upper=problem.upper,
            ridge=problem.ridge,
            kink=np.empty(0),
            outside=np.empty(0, dtype=np.int64),
        ),
        _native.FoldStart(dual=dual, gradient=np.empty(size), before=np.empty((0, size)), factor=0.0, must_scale=False),
        _native.FoldResults(offsets=np.zeros(1), outside=np.empty(0), outcome=outcome),
        _native.StepLimits(tolerance=tolerance, max_steps=100_000, max_seconds=np.inf),
        PathMemory().of(size),
        np.zeros(1, dtype=np.int32),
    )
    return dual, outcome


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("count", "C"), [(40, 1.0), (160, 0.1), (160, 10.0), (160, 100.0)])
def test_solutions_are_those_of_the_reference(seed, count, C):
    problem = fold(seed, count, C)
    dual, outcome = solved(problem, 1e-6)
    expected, rounds, equations = fold_path.solve(problem, np.zeros(count), 1e-6)
    assert outcome[0] == 0
    assert problem.violation(expected) <= 1e-6
    assert problem.violation(dual) <= 1e-6
    np.testing.assert_allclose(problem.matrix @ dual, problem.matrix @ expected, atol=1e-5)
    assert outcome[3] == (1 if C == 100 else 0)
    if C <= 10:  # with the equations in between, native parts have gradients in single precision
        assert (rounds, equations) == (outcome[2], outcome[3])
        assert rounds >= (3 if C == 10 else 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ridge", [0.0, 1e-5])
def test_several_solutions_of_the_equations(seed, ridge):
    """Noisy labels and a narrow kernel: many variables become free, or reach a bound, from one solution to the next."""
    random, count = np.random.default_rng(seed), 400
    X, y = random.uniform(-1, 1, size=(count, 2)), np.sort(random.choice([-1.0, 1.0], count))
    matrix = np.exp(-8.0 * ((X[:, None] - X) ** 2).sum(axis=2)) + 1e-6 * np.eye(count)
    lower, upper = np.minimum(0.0, 1e3 * y), np.maximum(0.0, 1e3 * y)
    problem = fold_path.Problem(matrix, y, lower, upper, np.full(count, ridge), np.zeros(count, dtype=np.int32))
    dual, outcome = solved(problem, 1e-4)
    assert outcome[0] == 0
    assert outcome[3] >= 4
    assert problem.violation(dual) <= 1.001e-4
    assert ((dual >= lower) & (dual <= upper)).all()
    assert abs(dual.sum()) <= 1e-9 * np.abs(dual).sum()
